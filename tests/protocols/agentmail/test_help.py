"""Help cases: who hears of them, what closes them, and what happens when nobody answers."""

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask, MoveTask
from dragoman.core.events import Role
from dragoman.protocols.agentmail import Parser, filter_pending
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, findings
from tests.protocols.agentmail.office import (
    BEAD,
    CHIRON,
    OLGA,
    Office,
    Row,
    help_request,
    letter,
    offering,
)
from tests.requirements import proves

pytestmark = proves("MAIL-HELP")


@pytest.fixture
def office() -> Office:
    """Give an office with an orchestrator and a helper, in which alice works on the bead."""
    built = Office()
    built.register("olga", "orchestrator")
    built.register("otis", "orchestrator")
    built.register("chiron")
    built.register("alice")
    assert built.effect(ALICE, letter("BEAD_ACCEPTED")) == "applied"
    return built


def test_it_goes_to_the_helper_and_to_all_orchestrators_and_changes_no_status(
    office: Office,
) -> None:
    before = office.task()
    sent = office.send(ALICE, help_request())
    mail = office.mail(sent["id"])
    assert (mail.to, mail.copied) == (("chiron",), ("olga", "otis"))
    assert (mail.thread, mail.ack_wanted, mail.waits_for) == (BEAD, True, ("chiron",))
    assert office.inbox(CHIRON, pending=True) == [sent["id"]]
    assert sent["id"] in office.inbox(OLGA, unread=True)
    assert office.inbox(OLGA, pending=True) == []
    after = office.task()
    assert (after.status, after.notes) == (before.status, before.notes + 1)


def test_whoever_else_is_asked_the_helper_hears_of_it(office: Office) -> None:
    sent = office.send(ALICE, help_request(to=["bob"], cc="olga"))
    mail = office.mail(sent["id"])
    assert (mail.to, mail.cc, mail.copied) == (("bob",), ("olga",), ("chiron", "otis"))


@proves("MAIL-ECHO")
def test_a_reply_that_is_no_answer_says_what_would_be_one(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    row: Row = {"subject": f"Re: [{BEAD}] HELP_REQUEST", "body_md": "Go left.", "reply_to": asked}
    effect = office.send(CHIRON, row)["effect"]
    assert not effect["applied"]
    assert "; what answers it is a HELP_RESPONSE; to say HELP_REQUEST anew," in effect["detail"]
    assert office.mail(asked).is_open


@proves("MAIL-POST")
def test_an_answer_without_a_bead_is_about_that_of_what_it_answers(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    row: Row = {"subject": "HELP_RESPONSE", "body_md": "Go left.", "reply_to": asked}
    answer = office.send(CHIRON, row)
    assert answer["bead_id"] == BEAD
    for name in (BEAD, f"bead:{BEAD}"):
        assert office.inbox(ALICE, bead_id=name) == [answer["id"]]
    office.send(CHIRON, {"subject": "Lunch", "body_md": "?", "to": ["alice"]})
    assert office.inbox(ALICE, bead_id=BEAD) == [answer["id"]]


@proves("MAIL-POST")
def test_a_thread_may_be_called_by_any_name_of_its_task(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    name = office.task().aof_id
    answer = letter("HELP_RESPONSE", "Go left.", bead="", thread_id=name, id="a-1")
    sent = office.send(CHIRON, answer)
    assert (sent["thread_id"], sent["effect"]) == (BEAD, {"applied": True})
    assert office.mail(asked).answer == sent["id"]
    assert office.send(CHIRON, answer)["thread_id"] == BEAD
    plain = {"to": ["bob"], "subject": "Lunch", "body_md": "", "thread_id": name}
    assert office.send(ALICE, plain)["thread_id"] == BEAD
    for word in (name, BEAD, f"bead:{BEAD}"):
        assert asked in office.inbox(OLGA, bead_id=word)
        assert asked in office.inbox(OLGA, thread_id=word)
        told = office.ask("mail.thread", {"thread_id": word}, OLGA)
        assert (told["thread_id"], len(told["messages"])) == (BEAD, 4)
        assert office.ask("mail.summary", {"thread_id": word}, OLGA)["messages"] == 4


@proves("MAIL-POST")
def test_a_thread_that_was_there_before_a_task_had_its_name_is_found_and_not_written_to_again(
    office: Office,
) -> None:
    plain = {"to": ["bob"], "subject": "Lunch", "body_md": "", "thread_id": "ol-9", "id": "m-1"}
    office.send(ALICE, plain)
    office.do(HUMAN, CreateTask("t", "other", ready=True, aliases=("intent:ol-9",)))
    assert office.send(ALICE, plain)["thread_id"] == "ol-9"
    assert office.send(ALICE, plain | {"id": "m-2"})["thread_id"] == "other"
    assert len(office.ask("mail.thread", {"thread_id": "ol-9"}, BOB)["messages"]) == 1
    assert office.inbox(BOB, thread_id="ol-9") == ["m-1", "m-2"]


def test_an_answer_in_the_thread_closes_and_acks_it(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    answer = office.send(CHIRON, letter("HELP_RESPONSE", "Go left.", bead="", thread_id=BEAD))
    assert answer["effect"] == {"applied": True}
    mail = office.mail(asked)
    assert (mail.answer, mail.acked_by, mail.is_open) == (answer["id"], ("chiron",), False)
    assert (mail.waits_for, mail.deadline) == ((), None)
    assert office.inbox(CHIRON, pending=True) == []
    assert office.mail(answer["id"]).to == ("alice",), "it goes to whoever asked"
    assert office.rows(ALICE)[0]["parsed"]["guidance"] == "Go left."
    office.pass_(600)
    assert "mail.escalated" not in office.types()


@pytest.mark.parametrize("named", ["bead", "reply_to", "box"])
def test_it_is_found_by_bead_by_letter_or_in_the_helpers_box(office: Office, named: str) -> None:
    asked = office.send(ALICE, help_request())["id"]
    rows = {
        "bead": letter("HELP_RESPONSE", "Go left."),
        "reply_to": letter("HELP_RESPONSE", "Go left.", bead="", reply_to=asked),
        "box": letter("HELP_RESPONSE", "Go left.", bead="", to=["alice"]),
    }
    sent = office.send(CHIRON, rows[named])
    assert sent["thread_id"] == BEAD
    assert office.mail(asked).answer == sent["id"]


def test_an_ack_alone_does_not_close_it(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    office.ask("mail.ack", {"id": asked}, CHIRON)
    mail = office.mail(asked)
    assert (mail.waits_for, mail.is_open) == ((), True)
    assert office.inbox(CHIRON, pending=True) == []
    office.pass_(30)
    assert office.mail(asked).is_escalated


def test_unanswered_it_is_told_once_with_its_task(office: Office) -> None:
    asked = office.send(ALICE, help_request(to=["bob"]))["id"]
    office.register("oda", "orchestrator")
    office.send(ALICE, letter("PROGRESS", "Step: x"))
    office.pass_(29)
    assert "mail.escalated" not in office.types()
    office.pass_(1)
    office.pass_(60)
    told = [line for line in office.events() if line["type"] == "mail.escalated"]
    assert [(line["taskId"], line["actor"]) for line in told] == [(office.task().aof_id, "hub")]
    assert told[0]["payload"] == {
        "mail": asked,
        "waitingFor": ["bob"],
        "told": ["oda", "olga", "otis"],
    }
    assert asked in office.inbox(OLGA, box="overdue")
    assert office.rows(Actor("orchestrator", "oda"))[-1]["reply_to"] == asked, (
        "who came since hears of it now"
    )


def test_a_late_answer_still_closes_it(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    office.pass_(30)
    assert office.mail(asked).is_escalated
    answer = office.send(OLGA, letter("HELP_RESPONSE", "Go right."))
    mail = office.mail(asked)
    assert (mail.answer, mail.acked_by) == (answer["id"], ("olga",))
    assert mail.waits_for == (), "nobody waits for the helper any more"
    assert office.inbox(OLGA, box="overdue") == []
    assert findings(office.store) == []


def test_the_first_answer_counts_and_later_ones_are_letters(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    first = office.send(CHIRON, letter("HELP_RESPONSE", "Go left."))
    second = office.send(BOB, letter("HELP_RESPONSE", "Go right.", to=["alice"]))
    assert second["effect"]["applied"] is False
    replied = office.send(
        BOB, letter("HELP_RESPONSE", "No, really.", bead="", reply_to=asked, to=["alice"])
    )
    assert replied["effect"]["applied"] is False
    assert office.mail(asked).answer == first["id"]
    assert office.inbox(ALICE) == [first["id"], second["id"], replied["id"]]


def test_one_answer_in_a_thread_is_for_all_that_was_asked_there(office: Office) -> None:
    asked = [office.send(ALICE, help_request(text))["id"] for text in ("Which way?", "And how?")]
    other = office.send(ALICE, help_request(bead="ol-9", thread_id=BEAD))["id"]
    answer = office.send(CHIRON, letter("HELP_RESPONSE", "Left, on foot."))["id"]
    assert [office.mail(id).answer for id in (*asked, other)] == [answer, answer, ""]
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert [question["id"] for question in summary["open_questions"]] == [other]


def test_but_one_that_names_its_letter_is_for_that_one_only(office: Office) -> None:
    asked = [office.send(ALICE, help_request(text))["id"] for text in ("Which way?", "And how?")]
    office.send(CHIRON, letter("HELP_RESPONSE", "Left.", reply_to=asked[0]))
    assert [office.mail(id).is_open for id in asked] == [False, True]


def test_nobody_answers_itself(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    for row in (
        letter("HELP_RESPONSE", "I know now.", to=["chiron"]),
        letter("HELP_RESPONSE", "I know now.", reply_to=asked, to=["chiron"]),
    ):
        assert office.effect(ALICE, row) == "none"
    assert office.mail(asked).is_open


def test_an_answer_to_nothing_needs_a_recipient(office: Office) -> None:
    assert office.code("mail.send", letter("HELP_RESPONSE", "Left."), CHIRON) == "invalid_field"
    assert office.effect(CHIRON, letter("HELP_RESPONSE", "Left.", to=["alice"])) == "none"
    told = office.send(CHIRON, letter("HELP_RESPONSE", "Left.", to=["alice"]))["effect"]
    assert told["detail"].startswith("no open question waits for it")
    gone = letter("HELP_RESPONSE", "Left.", reply_to="nowhere")
    assert office.code("mail.send", gone, CHIRON) == "mail_not_found"


def test_a_case_outlives_its_task(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    office.send(ALICE, offering())
    office.do(HUMAN, MoveTask(BEAD, "done"))
    assert office.effect(CHIRON, letter("HELP_RESPONSE", "Go left.")) == "applied"
    assert not office.mail(asked).is_open


def test_a_question_about_no_bead_has_a_thread_of_its_own(office: Office) -> None:
    asked = office.send(CAROL, help_request(bead=""))
    assert asked["thread_id"] == asked["id"]
    answer = office.send(CHIRON, letter("HELP_RESPONSE", "Go left.", bead="", to=["carol"]))
    assert answer["thread_id"] == asked["id"]
    assert office.mail(asked["id"]).answer == answer["id"]


MALLORY = Actor("agent", "mallory")


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ({"to": ["alice"]}, "not_authorized"),
        ({"to": ["mallory2"]}, "invalid_field"),
        ({"to": ["alice"], "thread_id": "elsewhere"}, "invalid_field"),
    ],
    ids=["stranger", "past the asker", "elsewhere"],
)
def test_a_stranger_closes_no_case(office: Office, row: Row, code: str) -> None:
    asked = office.send(ALICE, help_request())["id"]
    answer = letter("HELP_RESPONSE", "lol", bead="", reply_to=asked, **row)
    assert office.effect(MALLORY, answer) == code
    assert office.mail(asked).is_open
    assert office.inbox(CHIRON, pending=True) == [asked]
    office.pass_(30)
    assert "mail.escalated" in office.types(), "it is told as late all the same"


def test_nor_does_one_by_naming_the_bead(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    assert office.effect(MALLORY, letter("HELP_RESPONSE", "lol")) == "not_authorized"
    assert office.mail(asked).is_open


@pytest.mark.parametrize("role", ["orchestrator", "coordinator", "human"])
def test_whoever_runs_the_show_may_answer(office: Office, role: Role) -> None:
    asked = office.send(ALICE, help_request())["id"]
    assert office.effect(Actor(role, "newcomer"), letter("HELP_RESPONSE", "Left.")) == "applied"
    assert not office.mail(asked).is_open


def test_whoever_asked_elsewhere_too_is_answered_where_the_sender_was_asked(
    office: Office,
) -> None:
    own = office.send(ALICE, help_request(to=["bob"]))["id"]
    other = office.send(ALICE, help_request())["id"]
    assert office.effect(BOB, letter("HELP_RESPONSE", "Left.")) == "applied"
    assert [office.mail(id).is_open for id in (own, other)] == [False, True]


def test_a_bead_that_the_advice_names_is_not_what_it_is_about(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    advice = letter("HELP_RESPONSE", "Look at how it was done there.", "Bead: ol-9")
    sent = office.send(CHIRON, advice)
    assert (sent["bead_id"], sent["effect"]) == (BEAD, {"applied": True})
    again = office.send(ALICE, help_request("And then?"))["id"]
    bare = letter("HELP_RESPONSE", "As there:", "Bead: ol-9", bead="", thread_id=BEAD)
    assert office.effect(CHIRON, bare) == "applied"
    assert [office.mail(id).is_open for id in (asked, again)] == [False, False]


def test_a_question_in_a_thread_of_its_own_is_found_by_its_bead(office: Office) -> None:
    asked = office.send(ALICE, help_request(thread_id="q-1"))["id"]
    answer = office.send(CHIRON, letter("HELP_RESPONSE", "Left."))
    assert (answer["thread_id"], office.mail(asked).answer) == ("q-1", answer["id"])


def test_who_has_it_as_a_copy_finds_it_in_its_box(office: Office) -> None:
    asked = office.send(ALICE, help_request(bead="", to=["bob"]))["id"]
    answer = office.send(CHIRON, letter("HELP_RESPONSE", "Left.", bead="", to=["alice"]))
    assert office.mail(asked).answer == answer["id"]


def test_a_reply_that_bears_the_type_of_the_question_is_no_new_question(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    for row in ({"reply_to": asked}, {"to": ["alice"]}):
        reply = {"subject": f"Re: [{BEAD}] HELP_REQUEST", "body_md": "Go left.", **row}
        sent = office.send(CHIRON, reply)
        mail = office.mail(sent["id"])
        assert (sent["effect"]["applied"], mail.is_open, mail.ack_wanted) == (False, False, False)
        assert mail.copied == ()
    assert office.mail(asked).is_open, "only an answer closes it"
    office.send(ALICE, letter("PROGRESS", "Step: meanwhile"))
    office.send(CHIRON, {"subject": "Re: HELP_REQUEST", "body_md": "?", "reply_to": asked})
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert (summary["counts"]["HELP_REQUEST"], summary["counts"]["UNKNOWN"]) == (1, 3)
    assert [one["id"] for one in summary["open_questions"]] == [asked]
    office.pass_(30)
    assert office.types().count("mail.escalated") == 1


@pytest.mark.parametrize(
    ("known", "to"), [(("olga", "otis"), ("olga", "otis")), ((), ("orchestrator",))]
)
def test_a_helper_who_asks_for_help_does_not_ask_itself(
    known: tuple[str, ...], to: tuple[str, ...]
) -> None:
    office = Office()
    for name in known:
        office.register(name, "orchestrator")
    mail = office.mail(office.send(CHIRON, help_request())["id"])
    assert (mail.to, mail.copied, mail.is_open) == (to, (), True)
    assert office.inbox(CHIRON) == []


def test_a_summary_knows_which_questions_are_open(office: Office) -> None:
    asked = office.send(ALICE, help_request())["id"]
    office.send(MALLORY, letter("HELP_RESPONSE", "lol"))
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert [one["id"] for one in summary["open_questions"]] == [asked]
    assert [one["id"] for one in summary["open_acks"]] == [asked]
    office.ask("mail.ack", {"id": asked}, CHIRON)
    summary = office.ask("mail.summary", {"thread_id": BEAD}, OLGA)
    assert [one["id"] for one in summary["open_questions"]] == [asked]
    assert not summary["open_acks"]


@proves("MAIL-ACK-SEEN")
def test_a_row_says_to_everybody_that_an_ack_is_wanted_and_whether_it_has_come(
    office: Office,
) -> None:
    asked = office.send(ALICE, help_request(to=["bob", "chiron"]))["id"]

    def stands(actor: Actor) -> tuple[bool, bool]:
        row = office.ask("mail.show", {"id": asked}, actor)
        return row["ack_required"], row["acknowledged"]

    def pending(actor: Actor) -> list[object]:
        rows = office.ask("mail.thread", {"thread_id": BEAD}, actor)["messages"]
        return [one.id for one in filter_pending(Parser().parse_many(rows))]

    everybody = (ALICE, BOB, CHIRON, OLGA)
    assert [stands(one) for one in everybody] == [(True, False)] * 4
    assert [pending(one) for one in everybody] == [[asked]] * 4
    office.ask("mail.ack", {"id": asked}, BOB)
    assert [stands(one)[1] for one in everybody] == [False, True, False, False], "chiron has not"
    office.ask("mail.ack", {"id": asked}, OLGA)
    assert stands(OLGA) == (True, True), "nobody waits for hers, but she has given it"
    office.send(CHIRON, letter("HELP_RESPONSE", "Left."))
    assert [stands(one) for one in everybody] == [(True, True)] * 4, "an answer ends the wait"
    plain = office.send(ALICE, {"to": ["bob"], "subject": "Lunch", "body_md": "?"})["id"]
    row = office.ask("mail.show", {"id": plain}, OLGA)
    assert (row["ack_required"], row["acknowledged"]) == (False, False)
