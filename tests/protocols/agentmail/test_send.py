"""Sending letters: recipients, inboxes, acks, deadlines and repeats."""

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.mail import PostMail
from dragoman.core.task_state import CreateTask
from dragoman.engine.operation import Fault, Plan, RawMessage
from dragoman.engine.request import Accepted, Rejected
from dragoman.engine.router import make_plan, needs_io
from dragoman.engine.store_facts import StoreFacts
from dragoman.protocols import agentmail
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, findings
from tests.protocols.agentmail.hub import (
    BEAD,
    CHIRON,
    MINUTE,
    OLGA,
    MailHub,
    Row,
    letter,
    offering,
)
from tests.requirements import proves

OBSERVER = Actor("observer", "otto")
NOTE = letter("lunch?", bead="", to=["bob"])


# Recipients


@proves("MAIL-ADDRESS")
def test_groups_and_roles_expand_to_their_members() -> None:
    hub = MailHub(agentmail.Choices(groups={"cooks": ("bob", "carol"), "nobody": ()}))
    for name in ("ann", "ben"):
        hub.register(name)
    hub.register("olga", "orchestrator")
    sent = hub.send(ALICE, {**NOTE, "to": ["@cooks", "ann", "bob"], "cc": "@agents, olga"})
    mail = hub.mail(sent["id"])
    assert (mail.to, mail.cc) == (("bob", "carol", "ann"), ("ben", "olga"))
    assert hub.inbox(CAROL) == [sent["id"]]
    for field, named, expected in (
        ("to", "@cucks", "there is no group '@cucks'; there are @agents"),
        ("cc", "@cucks", "there is no group '@cucks'; there are @agents"),
        ("to", "@humans", "nobody is in '@humans'"),
        ("cc", ["@nobody"], "nobody is in '@nobody'"),
    ):
        answer = hub.call("mail.send", {**NOTE, field: named}, ALICE)
        assert isinstance(answer, Rejected)
        assert (answer.code, answer.path) == ("invalid_field", field)
        assert expected in answer.detail


@proves("MAIL-ADDRESS")
@pytest.mark.parametrize(
    ("type", "to"),
    [
        ("PROGRESS", ("olga",)),
        ("DONE", ("olga",)),
        ("HELP_REQUEST", ("sage",)),
        ("SPAWN_REQUEST", ("starter",)),
    ],
)
def test_letter_without_recipients_goes_to_the_default_of_its_type(
    type: str, to: tuple[str, ...]
) -> None:
    hub = MailHub(agentmail.Choices(helper="sage", spawner="starter"))
    hub.register("olga", "orchestrator")
    assert hub.mail(hub.send(OLGA, letter(type))["id"]).to == to


@proves("MAIL-ADDRESS")
def test_plain_letter_needs_a_recipient() -> None:
    hub = MailHub()
    assert hub.code("mail.send", letter("lunch?"), ALICE) == "invalid_field"
    assert hub.mail(hub.send(ALICE, letter("PROGRESS"))["id"]).to == ("orchestrator",)
    reply = hub.send(BOB, {**NOTE, "to": [], "reply_to": hub.inbox(ALICE, box="sent")[0]})
    assert hub.mail(reply["id"]).to == ("alice",), "a reply goes to whoever wrote"


_NEEDS_STORE: tuple[dict[str, Any], ...] = (
    letter("lunch?", to=["bob"]),
    letter("PROGRESS", bead="", to=["bob"]),
    {**NOTE, "subject": "lunch: today?"},
    {**NOTE, "subject": "Re: lunch?"},
    {**NOTE, "to": "@agents"},
    {**NOTE, "cc": ["@humans"]},
    {**NOTE, "id": "m-1"},
    {**NOTE, "reply_to": "m-1"},
    {**NOTE, "thread_id": "t"},
)


@proves("MAIL-ADDRESS")
@pytest.mark.parametrize(
    ("row", "needs_store"),
    [
        *((row, True) for row in _NEEDS_STORE),
        (NOTE, False),
        ({**NOTE, "to": "bob, carol", "cc": "dora", "ack_required": True}, False),
        ({**NOTE, "to": []}, False),
        ({**NOTE, "from": "bob"}, False),
    ],
)
def test_only_letters_that_need_the_store_leave_the_event_loop(
    row: dict[str, Any], needs_store: bool
) -> None:
    dialect, no_store = agentmail.dialect(), StoreFacts(cast(Any, None), lambda _task, _ref: False)
    parsed = dialect.parse(RawMessage(row))
    assert parsed is not None
    assert needs_io(parsed, ALICE) is needs_store
    if not needs_store:
        assert isinstance(make_plan(parsed, ALICE, no_store), Plan | Fault), "without the store"


@proves("MAIL-ADDRESS")
def test_letter_to_an_unregistered_recipient_waits_until_it_registers() -> None:
    hub = MailHub()
    hub.register("bob")
    both = hub.send(ALICE, {**NOTE, "to": ["bob", "carol"]})["id"]
    known = hub.send(ALICE, NOTE)["id"]
    assert hub.mail(both).unknown == ("carol",)
    assert hub.mail(known).unknown == ()
    assert hub.inbox(OLGA, box="waiting") == [both]
    assert hub.inbox(ALICE, box="waiting") == [both]
    hub.register("carol")
    assert hub.inbox(OLGA, box="waiting") == [], "it waits for nobody unknown any more"
    assert hub.inbox(CAROL, unread=True) == [both]
    hub.ask("mail.read", {"id": both}, CAROL)
    assert hub.inbox(CAROL, unread=True) == []
    assert hub.inbox(BOB, unread=True) == [both, known], "each has read for itself"


@proves("MAIL-ADDRESS")
def test_unregistered_recipient_can_ack_its_letters() -> None:
    hub = MailHub()
    sent = hub.send(ALICE, NOTE)["id"]
    assert hub.inbox(OLGA, box="waiting") == [sent]
    hub.ask("mail.ack", {"id": sent}, BOB)
    assert hub.inbox(OLGA, box="waiting") == []


@proves("MAIL-POST")
def test_any_reader_may_read_any_inbox_without_marking_letters() -> None:
    hub = MailHub()
    sent = hub.send(ALICE, NOTE)["id"]
    for reader in (OLGA, OBSERVER, BOB, CAROL):
        (row,) = hub.rows(reader, agent="bob")
        assert (row["id"], row["read"], row["read_by"]) == (sent, False, ())
    assert hub.inbox(CAROL, agent="alice", box="sent") == [sent]
    assert hub.code("mail.inbox", {"agent": "b b"}, OLGA) == "invalid_id"
    assert hub.inbox(BOB, unread=True) == [sent], "looking at it is not reading it"


@proves("MAIL-POST")
def test_inbox_filters_letters() -> None:
    hub = MailHub()
    for row in (
        letter("PROGRESS", to=["bob"]),
        letter("PROGRESS", bead="ol-2", to=["bob"]),
        offering(to=["bob"]),
        {**NOTE, "thread_id": BEAD},
    ):
        hub.send(ALICE, row)
    hub.send(CAROL, NOTE)
    first, second, third, fourth, fifth = hub.inbox(BOB)
    assert hub.inbox(BOB, type="progress") == [first, second]
    assert hub.inbox(BOB, bead_id=BEAD) == [first, third]
    assert hub.inbox(BOB, thread_id=BEAD) == [first, third, fourth]
    assert hub.inbox(BOB, **{"from": "carol"}) == [fifth]
    assert hub.inbox(BOB, pending=True) == [third]
    assert hub.inbox(BOB, pending=True, unread=True) == [third]
    hub.ask("mail.read", {"id": third}, BOB)
    assert hub.inbox(BOB, pending=True) == [third]
    assert hub.inbox(BOB, pending=True, unread=True) == []
    assert hub.inbox(ALICE, box="sent") == [first, second, third, fourth]
    assert hub.inbox(BOB, before=0, limit=2) == [fifth, fourth]


@proves("MAIL-TYPE-FILTER")
@pytest.mark.parametrize("other", ["PROGRES", "PROGRE\u017fS", "progre\xdf"])
def test_inbox_refuses_an_unknown_type(other: str) -> None:
    hub = MailHub()
    hub.send(ALICE, NOTE)
    answer = hub.call("mail.inbox", {"type": other}, BOB)
    assert isinstance(answer, Rejected)
    assert answer.code == "invalid_field"
    expected = f"type: {other!a} is not a type of letter; known: BEAD_ACCEPTED"
    assert answer.detail.startswith(expected)
    assert len(hub.inbox(BOB, type="unknown")) == 1
    assert hub.inbox(BOB, type="LATE") == hub.inbox(BOB, type="wave_complete") == []


@proves("MAIL-POST")
def test_cursor_continues_after_the_last_page() -> None:
    hub = MailHub()
    sent = [hub.send(ALICE, NOTE)["id"] for _ in range(5)]
    found, cursor = list[str](), 0
    while page := hub.ask("mail.inbox", {"after": cursor, "limit": 2}, BOB)["messages"]:
        found += [row["id"] for row in page]
        cursor = page[-1]["position"]
    assert found == sent
    assert hub.ask("mail.inbox", {"after": cursor}, BOB) == {
        "messages": [],
        "cursor": cursor,
        "more": False,
    }


@proves("MAIL-POST")
@pytest.mark.parametrize("operation", ["mail.thread", "mail.summary"])
def test_invalid_thread_id_is_refused(operation: str) -> None:
    assert MailHub().code(operation, {"thread_id": "a b"}, ALICE) == "invalid_id"


@proves("MAIL-POST")
def test_row_has_the_fields_of_its_letter() -> None:
    hub = MailHub()
    hub.register("bob")
    row = offering(
        to=["bob"],
        cc="carol",
        importance="high",
        attachments=["out/report.md"],
        timestamp="2026-02-09T14:00:00Z",
    )
    sent = hub.send(ALICE, row)["id"]
    hub.ask("mail.ack", {"id": sent}, CAROL)
    shown = hub.rows(BOB)[0]
    assert shown["type"] == "OFFERING_READY"
    assert (shown["from"], shown["to"], shown["cc"]) == ("alice", ("bob",), ("carol",))
    assert (shown["importance"], shown["ack_required"]) == ("high", True)
    assert (shown["sent_at"], shown["timestamp"]) == (
        "2026-02-09T14:00:00.000Z",
        "2026-02-09T14:30:00.000Z",
    )
    assert (shown["acknowledged"], shown["read"]) == (False, False)
    assert (shown["acked_by"], shown["waits_for"]) == (("carol",), ("bob",))
    assert shown["parsed"]["commit_sha"] == "0a1b2c3"
    assert hub.rows(CAROL)[0]["acknowledged"] is True


@proves("MAIL-POST")
@pytest.mark.parametrize("around", ["", "payload"])
def test_unknown_fields_of_a_row_are_passed_on_separately(around: str) -> None:
    hub = MailHub()
    extra: Row = {"topic": "builds", "overdue": True, "project": {"name": "x"}}
    row: Row = {**NOTE, "from": "alice", "id": "m-1", "bcc": [], "created_ts": None, **extra}
    hub.router.send({around: row} if around else row, speaker=ALICE)
    shown = hub.ask("mail.show", {"id": "m-1"}, BOB)
    assert (shown["extra_fields"], shown["overdue"]) == (extra, False)
    hub.send(ALICE, {**NOTE, "id": "m-2"})
    assert "extra_fields" not in hub.ask("mail.show", {"id": "m-2"}, BOB)
    hub.do(ALICE, PostMail(("bob",), "x", "y", id="m-3"))
    assert "extra_fields" not in hub.ask("mail.show", {"id": "m-3"}, BOB)


@proves("MAIL-POST")
def test_importance_is_case_insensitive() -> None:
    hub = MailHub()
    assert hub.mail(hub.send(ALICE, {**NOTE, "importance": "URGENT"})["id"]).importance == (
        "urgent"
    )


@proves("MAIL-POST")
@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01T00:00:00Z"])
def test_unreadable_timestamp_does_not_prevent_delivery(text: str) -> None:
    hub = MailHub()
    assert hub.mail(hub.send(ALICE, {**NOTE, "timestamp": text})["id"]).sent_at is None


@proves("MAIL-POST")
def test_invalid_letter_is_refused_with_its_path() -> None:
    hub = MailHub()
    for row, path in (
        ({**NOTE, "importance": "huge"}, "importance"),
        ({**NOTE, "to": 7}, "to"),
        ({**NOTE, "bcc": ["carol"]}, "bcc"),
        ({**NOTE, "bcc": "carol"}, "bcc"),
        ({"subject": "x"}, "body_md"),
    ):
        answer = hub.call("mail.send", row, ALICE)
        assert isinstance(answer, Rejected)
        assert (answer.code, answer.path) == ("invalid_field", path)
    assert hub.router.send({"subject": "x", "body": "y"}, speaker=ALICE) is None
    assert hub.router.send('{"subject": "x", "body_md": ', speaker=ALICE) is None
    faulty = hub.router.send({**NOTE, "importance": "huge"}, speaker=ALICE)
    assert isinstance(faulty, Rejected)
    assert hub.code("mail.send", NOTE, OBSERVER) == "not_authorized"


@proves("MAIL-POST")
@pytest.mark.parametrize("around", ["payload", "message", "content"])
def test_wrapped_letter_is_recognized(around: str) -> None:
    hub = MailHub()
    answer = hub.router.send({around: {**NOTE, "from": "alice"}}, via="inbox")
    assert isinstance(answer, Accepted)
    assert (answer.dialect, answer.kind, answer.actor) == ("agentmail", "UNKNOWN", "alice")


@proves("MAIL-POST")
def test_async_calls_behave_like_synchronous_ones() -> None:
    hub = MailHub()

    async def call_all() -> tuple[Any, ...]:
        return (
            await hub.router.send_async(NOTE, speaker=ALICE),
            await hub.router.send_async({"subject": "x"}, speaker=ALICE),
            await hub.router.call_async("mail.inbox", {}, BOB),
            await hub.router.call_async("mail.inbox", {"limit": 0}, BOB),
        )

    sent, unrecognized, found, wrong = asyncio.run(call_all())
    assert unrecognized is None
    assert [row["id"] for row in found.reply["messages"]] == [sent.reply["id"]]
    assert (wrong.code, wrong.path) == ("invalid_field", "limit")


@proves("MAIL-POST")
def test_queries_record_nothing() -> None:
    hub = MailHub()
    hub.send(ALICE, NOTE)
    head = hub.store.head()
    hub.ask("mail.thread", {"thread_id": "none"}, ALICE)
    hub.inbox(ALICE, agent="bob")
    assert hub.code("mail.inbox", {"limit": 1_001}, ALICE) == "invalid_field"
    assert hub.store.head() == head


@proves("MAIL-POST")
@pytest.mark.parametrize(("named", "code"), [("a b", "invalid_id"), ("none", "mail_not_found")])
def test_reply_to_an_unknown_letter_is_refused(named: str, code: str) -> None:
    answer = MailHub().call("mail.send", {**NOTE, "reply_to": named}, ALICE)
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == (code, "reply_to")


@proves("MAIL-POST")
def test_reply_continues_the_thread_of_its_letter() -> None:
    hub = MailHub()
    first = hub.send(ALICE, {**NOTE, "thread_id": "t-1"})["id"]
    reply = hub.send(BOB, {**NOTE, "to": ["alice"], "reply_to": first})
    assert reply["thread_id"] == "t-1"
    aside = hub.send(BOB, {**NOTE, "reply_to": first, "thread_id": "t-2"})
    assert aside["thread_id"] == "t-2"


# Acks


@proves("MAIL-ACK", "MAIL-POST")
def test_each_recipient_acks_once_and_others_are_refused() -> None:
    hub = MailHub()
    sent = hub.send(ALICE, offering(to=["bob", "carol"]))["id"]
    assert hub.code("mail.ack", {"id": sent}, ALICE) == "not_authorized"
    assert hub.code("mail.ack", {"id": "nothing"}, BOB) == "mail_not_found"
    for _ in range(2):
        assert hub.ask("mail.ack", {"id": sent}, BOB) == {"id": sent, "acknowledged": True}
    mail = hub.mail(sent)
    assert (mail.acked_by, mail.read_by, mail.awaited_acks) == (("bob",), ("bob",), ("carol",))
    acks = [event for _, event in hub.lab.lines() if event == "mail.acked"]
    assert len(acks) == 1


@proves("MAIL-ACK")
def test_concurrent_acks_both_count() -> None:
    hub = MailHub()
    sent = hub.send(ALICE, offering(to=["bob", "carol"]))["id"]

    async def both() -> list[Any]:
        calls = (
            hub.router.call_async("mail.ack", {"id": sent}, actor) for actor in (BOB, CAROL, BOB)
        )
        return await asyncio.gather(*calls)

    assert all(isinstance(answer, Accepted) for answer in asyncio.run(both()))
    assert hub.mail(sent).acked_by == ("bob", "carol")
    assert hub.mail(sent).deadline is None


@proves("MAIL-ADDRESS")
def test_reply_to_an_own_letter_goes_to_its_recipients() -> None:
    hub = MailHub()
    first = hub.send(ALICE, {**NOTE, "to": ["bob", "carol"]})["id"]
    again = hub.send(ALICE, {**NOTE, "to": [], "reply_to": first})["id"]
    assert hub.mail(again).to == ("bob", "carol")
    answer = hub.send(BOB, {**NOTE, "to": [], "reply_to": again})["id"]
    assert hub.mail(answer).to == ("alice",)


@proves("MAIL-ACK")
def test_late_letter_is_overdue_before_its_escalation() -> None:
    hub = MailHub(agentmail.Choices(ack_within_ms=10 * MINUTE))
    first, _, last = [
        hub.send(ALICE, offering(to=["bob"], ack_required=ack_required))["id"]
        for ack_required in (True, False, True)
    ]
    hub.pass_(10)
    second = hub.send(ALICE, offering(to=["bob"]))["id"]
    hub.do(HUMAN, CreateTask("t", "parent", ready=True))
    assert hub.inbox(OLGA, box="overdue") == [first, last]
    hub.lab.clock.advance(10 * MINUTE)
    assert hub.inbox(OLGA, box="overdue") == [first, last, second], "no duty was done meanwhile"
    assert hub.inbox(OLGA, box="overdue", before=0) == [second, last, first]
    page = hub.ask("mail.inbox", {"box": "overdue", "limit": 2}, OLGA)
    assert page["more"]
    assert hub.inbox(OLGA, box="overdue", after=page["cursor"]) == [second]
    assert hub.rows(BOB)[-1]["overdue"] is True
    hub.ask("mail.ack", {"id": second}, BOB)
    assert hub.inbox(OLGA, box="overdue") == [first, last]


@proves("MAIL-ACK")
def test_late_ack_is_escalated_once_and_still_counts() -> None:
    hub = MailHub(agentmail.Choices(ack_within_ms=10 * MINUTE))
    hub.register("olga", "orchestrator")
    sent = hub.send(ALICE, offering(to=["bob", "carol"]))["id"]
    hub.ask("mail.ack", {"id": sent}, BOB)
    hub.pass_(9)
    assert "mail.escalated" not in hub.types()
    hub.pass_(1)
    hub.pass_(100)
    escalations = [line for line in hub.events() if line["type"] == "mail.escalated"]
    assert [line["payload"]["waitingFor"] for line in escalations] == [["carol"]]
    assert escalations[0]["taskId"] == hub.task().aof_id
    (notice,) = hub.rows(OLGA)
    assert (notice["from"], notice["reply_to"], notice["type"]) == ("hub", sent, "UNKNOWN")
    assert hub.inbox(OLGA, box="overdue") == [sent]
    assert hub.rows(CAROL)[0]["overdue"] is True
    hub.ask("mail.ack", {"id": sent}, CAROL)
    assert hub.inbox(OLGA, box="overdue") == []
    assert findings(hub.store) == []


@proves("MAIL-ACK")
def test_letter_overrides_ack_requirement_and_deadline() -> None:
    hub = MailHub()
    required = hub.send(ALICE, {**NOTE, "ack_required": True, "ack_within_ms": 2 * MINUTE})["id"]
    unneeded = hub.send(ALICE, offering(to=["bob"], ack_required=False))["id"]
    assert hub.mail(required).due_by == hub.lab.clock.now() + 2 * MINUTE
    assert hub.mail(unneeded).due_by is None
    hub.pass_(60)
    assert (hub.mail(required).is_escalated, hub.mail(unneeded).is_escalated) == (True, False)
    assert "taskId" not in next(e for e in hub.events() if e["type"] == "mail.escalated")


@proves("MAIL-ACK-WITHIN")
@pytest.mark.parametrize("ack_required", [True, False])
@pytest.mark.parametrize("within", [-1, 0, 1, 31 * 24 * 60 * MINUTE])
def test_invalid_ack_deadline_is_refused(ack_required: bool, within: int) -> None:
    row = {**NOTE, "ack_required": ack_required, "ack_within_ms": within}
    answer = MailHub().call("mail.send", row, BOB)
    assert isinstance(answer, Rejected)
    assert (answer.code, answer.path) == ("invalid_field", "ack_within_ms")
    assert answer.detail.startswith("the time to answer is ")


@proves("MAIL-POST")
def test_reply_names_its_letter() -> None:
    hub = MailHub()
    first = hub.send(ALICE, NOTE)["id"]
    reply = hub.send(BOB, {**NOTE, "to": ["alice"], "reply_to": first})
    assert hub.mail(reply["id"]).reply_to == first
    assert reply["thread_id"] == hub.mail(first).thread


# Repeated letters


@proves("MAIL-REPEAT")
@pytest.mark.parametrize(
    "identity", [{"id": "m-1"}, {"id": 17}, {"timestamp": "2026-02-09T14:00:00Z"}]
)
def test_repeated_letter_gets_the_same_reply(identity: dict[str, Any]) -> None:
    hub = MailHub()
    row = letter("PROGRESS", "Step: x", to=["bob"], **identity)
    first = hub.send(ALICE, row)
    head = hub.store.head()
    again = hub.call("mail.send", dict(reversed(row.items())), ALICE)
    assert isinstance(again, Accepted)
    assert (again.repeated, again.reply) == (True, first)
    wrapped = hub.router.send({"message": row}, speaker=ALICE)
    assert isinstance(wrapped, Accepted)
    assert (wrapped.repeated, wrapped.reply) == (True, first)
    assert hub.store.head() == head
    assert len(hub.inbox(BOB)) == 1


@proves("MAIL-REPEAT", "MAIL-REFUSED-EFFECT")
def test_repeated_letter_does_not_retry_its_refused_effect() -> None:
    hub = MailHub()
    hub.send(ALICE, letter("BEAD_ACCEPTED"))
    row = offering(to=["olga"], id="m-1")
    first = hub.send(BOB, row)
    assert first["effect"]["code"] == "unauthorized_agent"
    hub.pass_(21)
    hub.send(BOB, letter("BEAD_ACCEPTED"))
    head = hub.store.head()
    assert hub.send(BOB, row) == first
    assert (hub.store.head(), hub.task().status) == (head, "in-progress")
    lease = hub.lab.lease(BEAD)
    assert lease is not None
    assert lease.heartbeats == 2, "a sign of life all the same"


@proves("MAIL-REPEAT")
def test_repeated_answer_gets_the_same_thread() -> None:
    hub = MailHub()
    question = hub.send(ALICE, letter("HELP_REQUEST", bead=""))["id"]
    row = letter("HELP_RESPONSE", "yes", bead="", to=["alice"], timestamp="2026-02-09T14:00:00Z")
    chiron = Actor("agent", "chiron")
    first = hub.send(chiron, row)
    assert (first["thread_id"], first["effect"]) == (question, {"applied": True})
    assert hub.send(chiron, row) == first


@proves("MAIL-REPEAT", "IDEM-REPEAT")
@pytest.mark.parametrize(
    ("identity", "key"),
    [({"id": "m-1"}, ""), ({"timestamp": "2026-02-09T14:00:00Z"}, ""), ({}, "k-1")],
)
def test_repeated_answer_is_recognized_after_the_question_is_closed(
    identity: dict[str, Any], key: str
) -> None:
    hub = MailHub()
    hub.send(ALICE, letter("HELP_REQUEST"))
    row = letter("HELP_RESPONSE", "yes", **identity)
    first, again = (hub.router.call("mail.send", dict(row), CHIRON, key=key) for _ in range(2))
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted), again
    assert (again.repeated, again.reply) == (True, first.reply)
    assert first.reply["effect"] == {"applied": True}
    assert hub.inbox(ALICE) == [first.reply["id"]]
    other = hub.call("mail.send", letter("HELP_RESPONSE", "no"), CHIRON)
    assert isinstance(other, Rejected), "a new answer to nobody"
    assert (other.code, "name at least one recipient" in other.detail) == ("invalid_field", True)


@proves("MAIL-REPEAT")
def test_answer_with_an_id_is_the_same_under_any_key() -> None:
    hub = MailHub()
    question = hub.send(ALICE, letter("HELP_REQUEST", thread_id="elsewhere"))["id"]
    row = letter("HELP_RESPONSE", "yes", id="m-1")
    keys = ("k-1", "k-2", "")
    first, *others = (hub.router.call("mail.send", dict(row), CHIRON, key=key) for key in keys)
    assert isinstance(first, Accepted)
    assert (first.reply["thread_id"], first.reply["effect"]) == ("elsewhere", {"applied": True})
    for again in others:
        assert isinstance(again, Accepted), again
        assert (again.repeated, again.reply["thread_id"]) == (True, "elsewhere")
        assert again.reply["effect"]["code"] == "already_exists", "tried when it first came"
    assert hub.mail(question).answer == "m-1"
    assert hub.inbox(ALICE) == ["m-1"]
    elsewhere = hub.router.call("mail.send", row | {"thread_id": "x"}, CHIRON, key="k-3")
    assert isinstance(elsewhere, Rejected)
    assert elsewhere.code == "already_exists"


@proves("MAIL-REPEAT", "MAIL-ADDRESS")
@pytest.mark.parametrize("to", [{}, {"to": ["@orchestrators"]}, {"to": ["bob"], "cc": "@agents"}])
def test_repeated_letter_keeps_its_recipients_when_groups_have_grown(to: dict[str, Any]) -> None:
    hub = MailHub()
    hub.register("olga", "orchestrator")
    hub.register("ann")
    row = letter("PROGRESS", "Step: x", id="m-1", **to)
    first = hub.router.call("mail.send", dict(row), ALICE, key="k-1")
    reached = hub.mail("m-1").recipients
    hub.register("otto", "orchestrator")
    hub.register("ben")
    again = hub.router.call("mail.send", dict(row), ALICE, key="k-2")
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted), again
    assert (again.repeated, hub.mail("m-1").recipients) == (True, reached)
    other = hub.router.call("mail.send", row | {"to": ["carol"]}, ALICE, key="k-3")
    assert isinstance(other, Rejected), "to somebody whom it did not go to"
    assert other.code == "already_exists"


@proves("MAIL-REPEAT")
def test_letter_without_id_or_time_is_new_each_time() -> None:
    hub = MailHub()
    assert hub.send(ALICE, NOTE)["id"] != hub.send(ALICE, NOTE)["id"]


@proves("MAIL-REPEAT")
def test_letter_id_belongs_to_its_first_sender() -> None:
    hub = MailHub()
    hub.send(ALICE, {**NOTE, "id": "m-1", "timestamp": "2026-02-09T14:00:00Z"})
    later = {**NOTE, "id": "m-1", "timestamp": "2026-02-09T14:05:00Z"}
    assert hub.send(ALICE, later)["id"] == "m-1", "sent again later"
    assert hub.code("mail.send", {**NOTE, "id": "m-1", "subject": "x"}, ALICE) == "already_exists"
    other = hub.send(BOB, {**NOTE, "id": "m-1"})["id"]
    assert other != "m-1", "another sender's letter gets an id of the hub's"
    assert hub.send(BOB, {**NOTE, "id": "m-1"})["id"] == other, "said again, it is the same one"
    assert hub.mail("m-1").sender == "alice"
    assert hub.code("mail.send", {**NOTE, "id": "a b"}, ALICE) == "invalid_id"


@proves("MAIL-REPEAT", "IDEM-REPEAT")
def test_idempotency_key_recognizes_repeats() -> None:
    hub = MailHub()
    first = hub.router.call("mail.send", dict(NOTE), ALICE, key="k-1")
    again = hub.router.call("mail.send", dict(NOTE), ALICE, key="k-1")
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (again.repeated, again.reply) == (True, first.reply)
    other = hub.router.call("mail.send", {**NOTE, "subject": "x"}, ALICE, key="k-1")
    assert isinstance(other, Rejected)
    assert other.code == "key_reused"


@proves("MAIL-REPEAT")
@pytest.mark.parametrize("keys", [("", "k-1"), ("k-1", ""), ("k-1", "k-2")])
def test_letter_with_an_id_is_the_same_under_any_key(keys: tuple[str, str]) -> None:
    hub = MailHub()
    hub.send(ALICE, letter("BEAD_ACCEPTED"))
    row = letter("PROGRESS", "Step: x", to=["bob"], id="m-1")
    first, again = (hub.router.call("mail.send", dict(row), ALICE, key=key) for key in keys)
    assert isinstance(first, Accepted)
    assert isinstance(again, Accepted)
    assert (first.repeated, again.repeated) == (False, True)
    assert (first.reply["id"], first.reply["effect"]) == ("m-1", {"applied": True})
    assert (again.reply["id"], again.reply["effect"]["code"]) == ("m-1", "already_exists")
    assert hub.inbox(BOB) == ["m-1"]
    other = hub.router.call("mail.send", row | {"body_md": "y"}, ALICE, key="k-3")
    assert isinstance(other, Rejected)
    assert other.code == "already_exists"


@proves("MAIL-REPEAT")
def test_letter_with_a_lost_commit_reply_is_stored_once() -> None:
    hub = MailHub()
    hub.store.losses = 1
    first = hub.send(ALICE, letter("BEAD_ACCEPTED", id="m-1"))
    assert first["effect"] == {"applied": True}
    hub.store.losses = 1
    assert hub.send(ALICE, letter("BEAD_ACCEPTED", id="m-1")) == first
    assert hub.task().attempts == 1
    assert len(hub.inbox(Actor("agent", "orchestrator"))) == 1


@proves("MAIL-IDENTITY")
def test_attempt_credential_sends_letters_but_moves_no_other_task() -> None:
    hub = MailHub()
    hub.send(ALICE, letter("BEAD_ACCEPTED"))
    own = replace(ALICE, task=BEAD, fence=1)
    assert hub.effect(own, letter("BEAD_ACCEPTED")) == "applied"
    assert hub.effect(own, letter("PROGRESS", "Step: x")) == "applied"
    assert hub.effect(own, letter("PROGRESS", "Step: x", bead="ol-9")) == "not_authorized"
    hub.send(BOB, letter("BEAD_ACCEPTED", bead="ol-8"))
    assert hub.effect(own, letter("PROGRESS", "Step: x", bead="ol-8")) == "not_authorized"
    assert hub.effect(own, NOTE) == "none"
    hub.pass_(21)
    hub.send(ALICE, letter("BEAD_ACCEPTED"))
    assert hub.effect(own, letter("PROGRESS", "Step: x")) == "lease_lost"
    lease = hub.lab.lease(BEAD)
    assert lease is not None
    assert lease.heartbeats == 1, "what is left of an attempt keeps no other one alive"
    assert hub.effect(HUMAN, letter("PROGRESS", "Step: x")) == "applied"
