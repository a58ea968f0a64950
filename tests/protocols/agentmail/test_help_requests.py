"""Help requests: recipients, answers and escalation."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.base import Role, Status
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.protocols.agentmail import Parser, filter_pending
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, findings
from tests.protocols.agentmail.hub import (
    BEAD,
    CHIRON,
    OLGA,
    MailHub,
    Row,
    help_request,
    letter,
    offering,
)
from tests.requirements import proves

pytestmark = proves("MAIL-HELP")


@pytest.fixture
def hub() -> MailHub:
    """Give a hub with orchestrators and a helper, where alice works on the bead."""
    hub = MailHub()
    hub.register("olga", "orchestrator")
    hub.register("otis", "orchestrator")
    hub.register("chiron")
    hub.register("alice")
    assert hub.effect(ALICE, letter("BEAD_ACCEPTED")) == "applied"
    return hub


def test_help_request_goes_to_helper_and_orchestrators_and_keeps_the_status(hub: MailHub) -> None:
    before = hub.task()
    sent = hub.send(ALICE, help_request())
    mail = hub.mail(sent["id"])
    assert (mail.to, mail.auto_copied) == (("chiron",), ("olga", "otis"))
    assert (mail.thread, mail.ack_wanted, mail.awaited_acks) == (BEAD, True, ("chiron",))
    assert hub.inbox(CHIRON, pending=True) == [sent["id"]]
    assert sent["id"] in hub.inbox(OLGA, unread=True)
    assert hub.inbox(OLGA, pending=True) == []
    after = hub.task()
    assert (after.status, after.notes) == (before.status, before.notes + 1)


def test_helper_is_copied_on_requests_to_others(hub: MailHub) -> None:
    sent = hub.send(ALICE, help_request(to=["bob"], cc="olga"))
    mail = hub.mail(sent["id"])
    assert (mail.to, mail.cc, mail.auto_copied) == (("bob",), ("olga",), ("chiron", "otis"))


@proves("MAIL-ECHO")
def test_plain_reply_explains_how_to_answer(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    row: Row = {
        "subject": f"Re: [{BEAD}] HELP_REQUEST",
        "body_md": "Go left.",
        "reply_to": question,
    }
    effect = hub.send(CHIRON, row)["effect"]
    assert not effect["applied"]
    assert "; answer it with a HELP_RESPONSE; to send a new HELP_REQUEST," in effect["detail"]
    assert hub.mail(question).awaits_answer


@proves("MAIL-POST")
def test_answer_without_a_bead_takes_that_of_its_question(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    row: Row = {"subject": "HELP_RESPONSE", "body_md": "Go left.", "reply_to": question}
    answer = hub.send(CHIRON, row)
    assert answer["bead_id"] == BEAD
    for name in (BEAD, f"bead:{BEAD}"):
        assert hub.inbox(ALICE, bead_id=name) == [answer["id"]]
    hub.send(CHIRON, {"subject": "Lunch", "body_md": "?", "to": ["alice"]})
    assert hub.inbox(ALICE, bead_id=BEAD) == [answer["id"]]


@proves("MAIL-POST")
def test_thread_is_found_by_any_name_of_its_task(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    name = hub.task().aof_id
    answer = letter("HELP_RESPONSE", "Go left.", bead="", thread_id=name, id="a-1")
    sent = hub.send(CHIRON, answer)
    assert (sent["thread_id"], sent["effect"]) == (BEAD, {"applied": True})
    assert hub.mail(question).answer == sent["id"]
    assert hub.send(CHIRON, answer)["thread_id"] == BEAD
    plain = {"to": ["bob"], "subject": "Lunch", "body_md": "", "thread_id": name}
    assert hub.send(ALICE, plain)["thread_id"] == BEAD
    for alias in (name, BEAD, f"bead:{BEAD}"):
        assert question in hub.inbox(OLGA, bead_id=alias)
        assert question in hub.inbox(OLGA, thread_id=alias)
        page = hub.ask("mail.thread", {"thread_id": alias}, OLGA)
        assert (page["thread_id"], len(page["messages"])) == (BEAD, 4)
        assert hub.ask("mail.summary", {"thread_id": alias}, OLGA)["messages"] == 4


@proves("MAIL-POST")
def test_thread_older_than_a_task_alias_is_readable_but_closed(hub: MailHub) -> None:
    plain = {"to": ["bob"], "subject": "Lunch", "body_md": "", "thread_id": "ol-9", "id": "m-1"}
    hub.send(ALICE, plain)
    hub.do(HUMAN, CreateTask("t", "other", ready=True, aliases=("intent:ol-9",)))
    assert hub.send(ALICE, plain)["thread_id"] == "ol-9"
    assert hub.send(ALICE, plain | {"id": "m-2"})["thread_id"] == "other"
    assert len(hub.ask("mail.thread", {"thread_id": "ol-9"}, BOB)["messages"]) == 1
    assert hub.inbox(BOB, thread_id="ol-9") == ["m-1", "m-2"]


def test_answer_in_the_thread_closes_and_acks_the_request(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    answer = hub.send(CHIRON, letter("HELP_RESPONSE", "Go left.", bead="", thread_id=BEAD))
    assert answer["effect"] == {"applied": True}
    mail = hub.mail(question)
    assert (mail.answer, mail.acked_by, mail.awaits_answer) == (answer["id"], ("chiron",), False)
    assert (mail.awaited_acks, mail.deadline) == ((), None)
    assert hub.inbox(CHIRON, pending=True) == []
    assert hub.mail(answer["id"]).to == ("alice",), "it goes to whoever asked"
    assert hub.rows(ALICE)[0]["parsed"]["guidance"] == "Go left."
    hub.pass_(600)
    assert "mail.escalated" not in hub.types()


@pytest.mark.parametrize("named", ["bead", "reply_to", "box"])
def test_answer_finds_its_request_by_bead_reply_or_inbox(hub: MailHub, named: str) -> None:
    question = hub.send(ALICE, help_request())["id"]
    rows = {
        "bead": letter("HELP_RESPONSE", "Go left."),
        "reply_to": letter("HELP_RESPONSE", "Go left.", bead="", reply_to=question),
        "box": letter("HELP_RESPONSE", "Go left.", bead="", to=["alice"]),
    }
    sent = hub.send(CHIRON, rows[named])
    assert sent["thread_id"] == BEAD
    assert hub.mail(question).answer == sent["id"]


def test_ack_alone_does_not_close_a_request(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    hub.ask("mail.ack", {"id": question}, CHIRON)
    mail = hub.mail(question)
    assert (mail.awaited_acks, mail.awaits_answer) == ((), True)
    assert hub.inbox(CHIRON, pending=True) == []
    hub.pass_(30)
    assert hub.mail(question).is_escalated


def test_unanswered_request_is_escalated_once_with_its_task(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request(to=["bob"]))["id"]
    hub.register("oda", "orchestrator")
    hub.send(ALICE, letter("PROGRESS", "Step: x"))
    hub.pass_(29)
    assert "mail.escalated" not in hub.types()
    hub.pass_(1)
    hub.pass_(60)
    escalations = [line for line in hub.events() if line["type"] == "mail.escalated"]
    assert [(line["taskId"], line["actor"]) for line in escalations] == [(hub.task().aof_id, "hub")]
    assert escalations[0]["payload"] == {
        "mail": question,
        "waitingFor": ["bob"],
        "told": ["oda", "olga", "otis"],
    }
    assert question in hub.inbox(OLGA, box="overdue")
    assert hub.rows(Actor("orchestrator", "oda"))[-1]["reply_to"] == question, (
        "who came since hears of it now"
    )


def test_late_answer_still_closes_a_request(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    hub.pass_(30)
    assert hub.mail(question).is_escalated
    answer = hub.send(OLGA, letter("HELP_RESPONSE", "Go right."))
    mail = hub.mail(question)
    assert (mail.answer, mail.acked_by) == (answer["id"], ("olga",))
    assert mail.awaited_acks == (), "nobody waits for the helper any more"
    assert hub.inbox(OLGA, box="overdue") == []
    assert findings(hub.store) == []


def test_first_answer_counts_and_later_ones_are_plain_letters(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    first = hub.send(CHIRON, letter("HELP_RESPONSE", "Go left."))
    second = hub.send(BOB, letter("HELP_RESPONSE", "Go right.", to=["alice"]))
    assert second["effect"]["applied"] is False
    replied = hub.send(
        BOB, letter("HELP_RESPONSE", "No, really.", bead="", reply_to=question, to=["alice"])
    )
    assert replied["effect"]["applied"] is False
    assert hub.mail(question).answer == first["id"]
    assert hub.inbox(ALICE) == [first["id"], second["id"], replied["id"]]


def test_answer_closes_all_questions_of_its_bead_in_the_thread(hub: MailHub) -> None:
    questions = [hub.send(ALICE, help_request(text))["id"] for text in ("Which way?", "And how?")]
    other = hub.send(ALICE, help_request(bead="ol-9", thread_id=BEAD))["id"]
    answer = hub.send(CHIRON, letter("HELP_RESPONSE", "Left, on foot."))["id"]
    assert [hub.mail(id).answer for id in (*questions, other)] == [answer, answer, ""]
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert [question["id"] for question in summary["open_questions"]] == [other]


def test_answer_with_reply_to_closes_that_question_only(hub: MailHub) -> None:
    questions = [hub.send(ALICE, help_request(text))["id"] for text in ("Which way?", "And how?")]
    hub.send(CHIRON, letter("HELP_RESPONSE", "Left.", reply_to=questions[0]))
    assert [hub.mail(id).awaits_answer for id in questions] == [False, True]


def test_sender_cannot_answer_its_own_request(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    for row in (
        letter("HELP_RESPONSE", "I know now.", to=["chiron"]),
        letter("HELP_RESPONSE", "I know now.", reply_to=question, to=["chiron"]),
    ):
        assert hub.effect(ALICE, row) == "none"
    assert hub.mail(question).awaits_answer


def test_answer_without_a_question_needs_a_recipient(hub: MailHub) -> None:
    assert hub.code("mail.send", letter("HELP_RESPONSE", "Left."), CHIRON) == "invalid_field"
    assert hub.effect(CHIRON, letter("HELP_RESPONSE", "Left.", to=["alice"])) == "none"
    effect = hub.send(CHIRON, letter("HELP_RESPONSE", "Left.", to=["alice"]))["effect"]
    assert effect["detail"].startswith("it answers no open question")
    gone = letter("HELP_RESPONSE", "Left.", reply_to="nowhere")
    assert hub.code("mail.send", gone, CHIRON) == "mail_not_found"


@proves("DIALECTS-MEET")
@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_request_is_closed_with_its_task(hub: MailHub, status: Status) -> None:
    question = hub.send(ALICE, help_request())["id"]
    hub.send(ALICE, offering())
    assert hub.mail(question).awaits_answer, "the work is only in review"
    hub.do(HUMAN, MoveTask(BEAD, status))
    closed = hub.mail(question)
    assert (closed.awaits_answer, closed.awaited_acks) == (False, ())
    assert hub.inbox(CHIRON, pending=True) == []
    told = hub.mail(hub.inbox(CHIRON, unread=True)[-1])
    assert told.subject == f"No answer is needed any more to letter {question}"
    late = letter("HELP_RESPONSE", "Go left.", reply_to=question)
    assert hub.send(CHIRON, late)["effect"]["applied"] is False, "it is delivered as any letter"
    assert findings(hub.store) == []


@proves("DIALECTS-MEET")
def test_answered_request_of_an_ended_task_is_left_alone(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    assert hub.effect(CHIRON, letter("HELP_RESPONSE", "Go left.")) == "applied"
    hub.send(ALICE, offering())
    answer = hub.mail(question).answer
    hub.do(HUMAN, MoveTask(BEAD, "done"))
    assert hub.mail(question).answer == answer


def test_question_without_a_bead_has_its_own_thread(hub: MailHub) -> None:
    question = hub.send(CAROL, help_request(bead=""))
    assert question["thread_id"] == question["id"]
    answer = hub.send(CHIRON, letter("HELP_RESPONSE", "Go left.", bead="", to=["carol"]))
    assert answer["thread_id"] == question["id"]
    assert hub.mail(question["id"]).answer == answer["id"]


MALLORY = Actor("agent", "mallory")


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"to": ["alice"]}, "not_authorized"),
        ({"to": ["mallory2"]}, "invalid_field"),
        ({"to": ["alice"], "thread_id": "elsewhere"}, "invalid_field"),
    ],
    ids=["other sender", "other recipient", "other thread"],
)
def test_unrelated_agent_cannot_close_a_request_by_reply(hub: MailHub, row: Row, code: str) -> None:
    question = hub.send(ALICE, help_request())["id"]
    answer = letter("HELP_RESPONSE", "lol", bead="", reply_to=question, **row)
    assert hub.effect(MALLORY, answer) == code
    assert hub.mail(question).awaits_answer
    assert hub.inbox(CHIRON, pending=True) == [question]
    hub.pass_(30)
    assert "mail.escalated" in hub.types(), "it is told as late all the same"


def test_unrelated_agent_cannot_close_a_request_by_bead(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    assert hub.effect(MALLORY, letter("HELP_RESPONSE", "lol")) == "not_authorized"
    assert hub.mail(question).awaits_answer


@pytest.mark.parametrize("role", ["orchestrator", "coordinator", "human"])
def test_orchestrator_coordinator_and_human_may_answer(hub: MailHub, role: Role) -> None:
    question = hub.send(ALICE, help_request())["id"]
    assert hub.effect(Actor(role, "newcomer"), letter("HELP_RESPONSE", "Left.")) == "applied"
    assert not hub.mail(question).awaits_answer


def test_answer_closes_the_question_addressed_to_its_sender(hub: MailHub) -> None:
    own = hub.send(ALICE, help_request(to=["bob"]))["id"]
    other = hub.send(ALICE, help_request())["id"]
    assert hub.effect(BOB, letter("HELP_RESPONSE", "Left.")) == "applied"
    assert [hub.mail(id).awaits_answer for id in (own, other)] == [False, True]


def test_bead_named_in_guidance_is_not_the_bead_of_the_answer(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    advice = letter("HELP_RESPONSE", "Look at how it was done there.", "Bead: ol-9")
    sent = hub.send(CHIRON, advice)
    assert (sent["bead_id"], sent["effect"]) == (BEAD, {"applied": True})
    again = hub.send(ALICE, help_request("And then?"))["id"]
    bare = letter("HELP_RESPONSE", "As there:", "Bead: ol-9", bead="", thread_id=BEAD)
    assert hub.effect(CHIRON, bare) == "applied"
    assert [hub.mail(id).awaits_answer for id in (question, again)] == [False, False]


def test_question_in_its_own_thread_is_found_by_bead(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request(thread_id="q-1"))["id"]
    answer = hub.send(CHIRON, letter("HELP_RESPONSE", "Left."))
    assert (answer["thread_id"], hub.mail(question).answer) == ("q-1", answer["id"])


def test_copied_helper_can_answer_from_its_inbox(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request(bead="", to=["bob"]))["id"]
    answer = hub.send(CHIRON, letter("HELP_RESPONSE", "Left.", bead="", to=["alice"]))
    assert hub.mail(question).answer == answer["id"]


def test_reply_that_repeats_the_request_type_is_not_a_request(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    for row in ({"reply_to": question}, {"to": ["alice"]}):
        reply = {"subject": f"Re: [{BEAD}] HELP_REQUEST", "body_md": "Go left.", **row}
        sent = hub.send(CHIRON, reply)
        mail = hub.mail(sent["id"])
        assert (sent["effect"]["applied"], mail.awaits_answer, mail.ack_wanted) == (
            False,
            False,
            False,
        )
        assert mail.auto_copied == ()
    assert hub.mail(question).awaits_answer, "only an answer closes it"
    hub.send(ALICE, letter("PROGRESS", "Step: meanwhile"))
    hub.send(CHIRON, {"subject": "Re: HELP_REQUEST", "body_md": "?", "reply_to": question})
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["counts"]["HELP_REQUEST"], summary["counts"]["UNKNOWN"]) == (1, 3)
    assert [one["id"] for one in summary["open_questions"]] == [question]
    hub.pass_(30)
    assert hub.types().count("mail.escalated") == 1


@pytest.mark.parametrize(
    ("known", "to"), [(("olga", "otis"), ("olga", "otis")), ((), ("orchestrator",))]
)
def test_help_request_of_the_helper_goes_to_orchestrators(
    known: tuple[str, ...], to: tuple[str, ...]
) -> None:
    hub = MailHub()
    for name in known:
        hub.register(name, "orchestrator")
    mail = hub.mail(hub.send(CHIRON, help_request())["id"])
    assert (mail.to, mail.auto_copied, mail.awaits_answer) == (to, (), True)
    assert hub.inbox(CHIRON) == []


def test_summary_lists_open_questions_and_acks(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request())["id"]
    hub.send(MALLORY, letter("HELP_RESPONSE", "lol"))
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert [one["id"] for one in summary["open_questions"]] == [question]
    assert [one["id"] for one in summary["open_acks"]] == [question]
    hub.ask("mail.ack", {"id": question}, CHIRON)
    summary = hub.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert [one["id"] for one in summary["open_questions"]] == [question]
    assert not summary["open_acks"]


@proves("MAIL-ACK-SEEN")
def test_ack_fields_of_a_row_depend_on_the_reader(hub: MailHub) -> None:
    question = hub.send(ALICE, help_request(to=["bob", "chiron"]))["id"]

    def ack_fields(actor: Actor) -> tuple[bool, bool]:
        row = hub.ask("mail.show", {"id": question}, actor)
        return row["ack_required"], row["acknowledged"]

    def pending(actor: Actor) -> list[object]:
        rows = hub.ask("mail.thread", {"thread_id": BEAD}, actor)["messages"]
        return [one.id for one in filter_pending(Parser().parse_many(rows))]

    readers = (ALICE, BOB, CHIRON, OLGA)
    assert [ack_fields(one) for one in readers] == [(True, False)] * 4
    assert [pending(one) for one in readers] == [[question]] * 4
    hub.ask("mail.ack", {"id": question}, BOB)
    assert [ack_fields(one)[1] for one in readers] == [False, True, False, False], "chiron has not"
    hub.ask("mail.ack", {"id": question}, OLGA)
    assert ack_fields(OLGA) == (True, True), "nobody waits for hers, but she has given it"
    hub.send(CHIRON, letter("HELP_RESPONSE", "Left."))
    assert [ack_fields(one) for one in readers] == [(True, True)] * 4, "an answer ends the wait"
    plain = hub.send(ALICE, {"to": ["bob"], "subject": "Lunch", "body_md": "?"})["id"]
    row = hub.ask("mail.show", {"id": plain}, OLGA)
    assert (row["ack_required"], row["acknowledged"]) == (False, False)
