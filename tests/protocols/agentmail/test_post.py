"""Letters through the door: addresses, boxes, acks, deadlines, and the same letter twice."""

import asyncio
from typing import Any, cast

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import CreateTask, PostMail
from dragoman.engine.facts import StoreFacts
from dragoman.engine.incoming import Incoming
from dragoman.engine.plan import Taken, Turned, looks, plan_of
from dragoman.protocols import agentmail
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, findings
from tests.protocols.agentmail.office import (
    BEAD,
    CHIRON,
    MINUTE,
    OLGA,
    Office,
    Row,
    letter,
    offering,
)
from tests.requirements import proves

OBSERVER = Actor("observer", "otto")
NOTE = letter("lunch?", bead="", to=["bob"])


# Addresses


@proves("MAIL-ADDRESS")
def test_groups_and_roles_stand_for_those_who_are_in_them() -> None:
    office = Office(agentmail.Choices(groups={"cooks": ("bob", "carol"), "nobody": ()}))
    for name in ("ann", "ben"):
        office.register(name)
    office.register("olga", "orchestrator")
    sent = office.send(ALICE, {**NOTE, "to": ["@cooks", "ann", "bob"], "cc": "@agents, olga"})
    mail = office.mail(sent["id"])
    assert (mail.to, mail.cc) == (("bob", "carol", "ann"), ("ben", "olga"))
    assert office.inbox(CAROL) == [sent["id"]]
    for field, named, said in (
        ("to", "@cucks", "there is no group '@cucks'; there are @agents"),
        ("cc", "@cucks", "there is no group '@cucks'; there are @agents"),
        ("to", "@humans", "nobody is in '@humans'"),
        ("cc", ["@nobody"], "nobody is in '@nobody'"),
    ):
        answer = office.call("mail.send", {**NOTE, field: named}, ALICE)
        assert isinstance(answer, Turned)
        assert (answer.code, answer.path) == ("invalid_field", field)
        assert said in answer.detail


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
def test_a_letter_to_nobody_goes_to_whoever_such_letters_go_to(
    type: str, to: tuple[str, ...]
) -> None:
    office = Office(agentmail.Choices(helper="sage", spawner="starter"))
    office.register("olga", "orchestrator")
    assert office.mail(office.send(OLGA, letter(type))["id"]).to == to


@proves("MAIL-ADDRESS")
def test_and_a_plain_one_needs_a_recipient() -> None:
    office = Office()
    assert office.code("mail.send", letter("lunch?"), ALICE) == "invalid_field"
    assert office.mail(office.send(ALICE, letter("PROGRESS"))["id"]).to == ("orchestrator",)
    reply = office.send(BOB, {**NOTE, "to": [], "reply_to": office.inbox(ALICE, box="sent")[0]})
    assert office.mail(reply["id"]).to == ("alice",), "a reply goes to whoever wrote"


_ASKS_THE_STORE: tuple[dict[str, Any], ...] = (
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
    ("said", "is_asked"),
    [
        *((said, True) for said in _ASKS_THE_STORE),
        (NOTE, False),
        ({**NOTE, "to": "bob, carol", "cc": "dora", "ack_required": True}, False),
        ({**NOTE, "to": []}, False),
        ({**NOTE, "from": "bob"}, False),
    ],
)
def test_only_a_letter_for_which_the_store_is_asked_leaves_the_loop(
    said: dict[str, Any], is_asked: bool
) -> None:
    dialect, no_store = agentmail.dialect(), StoreFacts(cast(Any, None), lambda _task, _ref: False)
    heard = dialect.hear(Incoming(said))
    assert heard is not None
    assert looks(heard, ALICE) is is_asked
    if not is_asked:
        assert plan_of(dialect, heard, ALICE, no_store).commands, "it is planned all the same"


@proves("MAIL-ADDRESS")
def test_a_letter_to_somebody_unknown_waits_and_is_visible_until_it_is_read() -> None:
    office = Office()
    office.register("bob")
    both = office.send(ALICE, {**NOTE, "to": ["bob", "carol"]})["id"]
    known = office.send(ALICE, NOTE)["id"]
    assert office.mail(both).unknown == ("carol",)
    assert office.mail(known).unknown == ()
    assert office.inbox(OLGA, box="waiting") == [both]
    assert office.inbox(ALICE, box="waiting") == [both]
    office.register("carol")
    assert office.inbox(OLGA, box="waiting") == [], "it waits for nobody unknown any more"
    assert office.inbox(CAROL, unread=True) == [both]
    office.ask("mail.read", {"id": both}, CAROL)
    assert office.inbox(CAROL, unread=True) == []
    assert office.inbox(BOB, unread=True) == [both, known], "each has read for itself"


@proves("MAIL-ADDRESS")
def test_one_who_never_registers_has_its_letters_all_the_same() -> None:
    office = Office()
    sent = office.send(ALICE, NOTE)["id"]
    assert office.inbox(OLGA, box="waiting") == [sent]
    office.ask("mail.ack", {"id": sent}, BOB)
    assert office.inbox(OLGA, box="waiting") == []


@proves("MAIL-POST")
def test_everybody_may_look_into_every_box_and_changes_nothing_by_it() -> None:
    office = Office()
    sent = office.send(ALICE, NOTE)["id"]
    for reader in (OLGA, OBSERVER, BOB, CAROL):
        (row,) = office.rows(reader, agent="bob")
        assert (row["id"], row["read"], row["read_by"]) == (sent, False, ())
    assert office.inbox(CAROL, agent="alice", box="sent") == [sent]
    assert office.code("mail.inbox", {"agent": "b b"}, OLGA) == "invalid_id"
    assert office.inbox(BOB, unread=True) == [sent], "looking at it is not reading it"


@proves("MAIL-POST")
def test_a_box_is_sifted() -> None:
    office = Office()
    for row in (
        letter("PROGRESS", to=["bob"]),
        letter("PROGRESS", bead="ol-2", to=["bob"]),
        offering(to=["bob"]),
        {**NOTE, "thread_id": BEAD},
    ):
        office.send(ALICE, row)
    office.send(CAROL, NOTE)
    first, second, third, fourth, fifth = office.inbox(BOB)
    assert office.inbox(BOB, type="progress") == [first, second]
    assert office.inbox(BOB, bead_id=BEAD) == [first, third]
    assert office.inbox(BOB, thread_id=BEAD) == [first, third, fourth]
    assert office.inbox(BOB, **{"from": "carol"}) == [fifth]
    assert office.inbox(BOB, pending=True) == [third]
    assert office.inbox(BOB, pending=True, unread=True) == [third]
    office.ask("mail.read", {"id": third}, BOB)
    assert office.inbox(BOB, pending=True) == [third]
    assert office.inbox(BOB, pending=True, unread=True) == []
    assert office.inbox(ALICE, box="sent") == [first, second, third, fourth]
    assert office.inbox(BOB, before=0, limit=2) == [fifth, fourth]


@proves("MAIL-TYPE-FILTER")
@pytest.mark.parametrize("other", ["PROGRES", "PROGRE\u017fS", "progre\xdf"])
def test_a_box_is_not_sifted_by_a_type_that_there_is_not(other: str) -> None:
    office = Office()
    office.send(ALICE, NOTE)
    answer = office.call("mail.inbox", {"type": other}, BOB)
    assert isinstance(answer, Turned)
    assert answer.code == "invalid_field"
    said = f"type: {other!a} is not a type of letter; known: BEAD_ACCEPTED"
    assert answer.detail.startswith(said)
    assert len(office.inbox(BOB, type="unknown")) == 1
    assert office.inbox(BOB, type="LATE") == office.inbox(BOB, type="wave_complete") == []


@proves("MAIL-POST")
def test_a_page_goes_on_where_the_last_one_ended() -> None:
    office = Office()
    sent = [office.send(ALICE, NOTE)["id"] for _ in range(5)]
    found, cursor = list[str](), 0
    while page := office.ask("mail.inbox", {"after": cursor, "limit": 2}, BOB)["messages"]:
        found += [row["id"] for row in page]
        cursor = page[-1]["position"]
    assert found == sent
    assert office.ask("mail.inbox", {"after": cursor}, BOB) == {
        "messages": [],
        "cursor": cursor,
        "more": False,
    }


@proves("MAIL-POST")
@pytest.mark.parametrize("operation", ["mail.thread", "mail.summary"])
def test_a_thread_that_cannot_be_one_is_refused(operation: str) -> None:
    assert Office().code(operation, {"thread_id": "a b"}, ALICE) == "invalid_id"


@proves("MAIL-POST")
def test_what_a_row_says() -> None:
    office = Office()
    office.register("bob")
    row = offering(
        to=["bob"],
        cc="carol",
        importance="high",
        attachments=["out/report.md"],
        timestamp="2026-02-09T14:00:00Z",
    )
    sent = office.send(ALICE, row)["id"]
    office.ask("mail.ack", {"id": sent}, CAROL)
    shown = office.rows(BOB)[0]
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
    assert office.rows(CAROL)[0]["acknowledged"] is True


@proves("MAIL-POST")
@pytest.mark.parametrize("around", ["", "payload"])
def test_what_a_row_says_besides_is_passed_on_apart_from_the_words_of_the_hub(around: str) -> None:
    office = Office()
    besides: Row = {"topic": "builds", "overdue": True, "project": {"name": "x"}}
    row: Row = {**NOTE, "from": "alice", "id": "m-1", "bcc": [], "created_ts": None, **besides}
    office.door.send({around: row} if around else row, speaker=ALICE)
    shown = office.ask("mail.show", {"id": "m-1"}, BOB)
    assert (shown["passed_on"], shown["overdue"]) == (besides, False)
    office.send(ALICE, {**NOTE, "id": "m-2"})
    assert "passed_on" not in office.ask("mail.show", {"id": "m-2"}, BOB)
    office.do(ALICE, PostMail(("bob",), "x", "y", id="m-3"))
    assert "passed_on" not in office.ask("mail.show", {"id": "m-3"}, BOB)


@proves("MAIL-POST")
def test_how_important_a_letter_is_may_be_written_in_any_case() -> None:
    office = Office()
    assert office.mail(office.send(ALICE, {**NOTE, "importance": "URGENT"})["id"]).importance == (
        "urgent"
    )


@proves("MAIL-POST")
@pytest.mark.parametrize("text", ["yesterday", "", "2026-13-01T00:00:00Z"])
def test_a_time_that_cannot_be_read_keeps_no_letter_back(text: str) -> None:
    office = Office()
    assert office.mail(office.send(ALICE, {**NOTE, "timestamp": text})["id"]).sent_at is None


@proves("MAIL-POST")
def test_what_is_no_letter_is_refused_with_its_place() -> None:
    office = Office()
    for row, path in (
        ({**NOTE, "importance": "huge"}, "importance"),
        ({**NOTE, "to": 7}, "to"),
        ({**NOTE, "bcc": ["carol"]}, "bcc"),
        ({**NOTE, "bcc": "carol"}, "bcc"),
        ({"subject": "x"}, "body_md"),
    ):
        answer = office.call("mail.send", row, ALICE)
        assert isinstance(answer, Turned)
        assert (answer.code, answer.path) == ("invalid_field", path)
    assert office.door.send({"subject": "x", "body": "y"}, speaker=ALICE) is None
    assert office.door.send('{"subject": "x", "body_md": ', speaker=ALICE) is None
    faulty = office.door.send({**NOTE, "importance": "huge"}, speaker=ALICE)
    assert isinstance(faulty, Turned)
    assert office.code("mail.send", NOTE, OBSERVER) == "not_authorized"


@proves("MAIL-POST")
@pytest.mark.parametrize("around", ["payload", "message", "content"])
def test_a_letter_may_be_wrapped(around: str) -> None:
    office = Office()
    answer = office.door.send({around: {**NOTE, "from": "alice"}}, via="inbox")
    assert isinstance(answer, Taken)
    assert (answer.dialect, answer.kind, answer.actor) == ("agentmail", "UNKNOWN", "alice")


@proves("MAIL-POST")
def test_the_doors_that_wait_say_the_same() -> None:
    office = Office()

    async def soon() -> tuple[Any, ...]:
        return (
            await office.door.send_soon(NOTE, speaker=ALICE),
            await office.door.send_soon({"subject": "x"}, speaker=ALICE),
            await office.door.call_soon("mail.inbox", {}, BOB),
            await office.door.call_soon("mail.inbox", {"limit": 0}, BOB),
        )

    sent, nobodys, found, wrong = asyncio.run(soon())
    assert nobodys is None
    assert [row["id"] for row in found.reply["messages"]] == [sent.reply["id"]]
    assert (wrong.code, wrong.path) == ("invalid_field", "limit")


@proves("MAIL-POST")
def test_what_is_only_looked_up_is_not_recorded() -> None:
    office = Office()
    office.send(ALICE, NOTE)
    head = office.store.head()
    office.ask("mail.thread", {"thread_id": "none"}, ALICE)
    office.inbox(ALICE, agent="bob")
    assert office.code("mail.inbox", {"limit": 1_001}, ALICE) == "invalid_field"
    assert office.store.head() == head


@proves("MAIL-POST")
@pytest.mark.parametrize(("named", "code"), [("a b", "invalid_id"), ("none", "mail_not_found")])
def test_a_reply_to_what_there_is_not_is_refused(named: str, code: str) -> None:
    answer = Office().call("mail.send", {**NOTE, "reply_to": named}, ALICE)
    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == (code, "reply_to")


@proves("MAIL-POST")
def test_a_reply_goes_on_with_the_thread_of_its_letter() -> None:
    office = Office()
    first = office.send(ALICE, {**NOTE, "thread_id": "t-1"})["id"]
    reply = office.send(BOB, {**NOTE, "to": ["alice"], "reply_to": first})
    assert reply["thread_id"] == "t-1"
    aside = office.send(BOB, {**NOTE, "reply_to": first, "thread_id": "t-2"})
    assert aside["thread_id"] == "t-2"


# Acks


@proves("MAIL-ACK", "MAIL-POST")
def test_an_ack_comes_once_from_each_recipient_and_from_nobody_else() -> None:
    office = Office()
    sent = office.send(ALICE, offering(to=["bob", "carol"]))["id"]
    assert office.code("mail.ack", {"id": sent}, ALICE) == "not_authorized"
    assert office.code("mail.ack", {"id": "nothing"}, BOB) == "mail_not_found"
    for _ in range(2):
        assert office.ask("mail.ack", {"id": sent}, BOB) == {"id": sent, "acknowledged": True}
    mail = office.mail(sent)
    assert (mail.acked_by, mail.read_by, mail.waits_for) == (("bob",), ("bob",), ("carol",))
    acks = [event for _, event in office.lab.lines() if event == "mail.acked"]
    assert len(acks) == 1


@proves("MAIL-SHORT-IDS")
def test_letters_are_read_and_acked_by_the_beginning_of_their_ids() -> None:
    office = Office()
    for id in ("letter-one", "letter-two"):
        office.send(ALICE, offering(to=["bob"], id=id))
    assert office.ask("mail.show", {"id": "letter-o"}, BOB)["id"] == "letter-one"
    assert office.ask("mail.read", {"id": "letter-o"}, BOB) == {"id": "letter-one", "read": True}
    told = office.ask("mail.ack", {"id": "letter-t"}, BOB)
    assert told == {"id": "letter-two", "acknowledged": True}
    for operation in ("mail.show", "mail.read", "mail.ack"):
        assert office.code(operation, {"id": "letter"}, BOB) == "ambiguous_name"
    given = office.send(ALICE, offering(to=["bob"]))["id"]
    assert office.ask("mail.ack", {"id": given.upper()}, BOB)["id"] == given


@proves("MAIL-ACK")
def test_two_acks_at_the_same_time_both_count() -> None:
    office = Office()
    sent = office.send(ALICE, offering(to=["bob", "carol"]))["id"]

    async def both() -> list[Any]:
        calls = (office.door.call_soon("mail.ack", {"id": sent}, who) for who in (BOB, CAROL, BOB))
        return await asyncio.gather(*calls)

    assert all(isinstance(answer, Taken) for answer in asyncio.run(both()))
    assert office.mail(sent).acked_by == ("bob", "carol")
    assert office.mail(sent).deadline is None


@proves("MAIL-ADDRESS")
def test_a_reply_to_a_letter_of_ones_own_goes_to_whom_that_was() -> None:
    office = Office()
    first = office.send(ALICE, {**NOTE, "to": ["bob", "carol"]})["id"]
    again = office.send(ALICE, {**NOTE, "to": [], "reply_to": first})["id"]
    assert office.mail(again).to == ("bob", "carol")
    answer = office.send(BOB, {**NOTE, "to": [], "reply_to": again})["id"]
    assert office.mail(answer).to == ("alice",)


@proves("MAIL-ACK")
def test_a_late_letter_is_overdue_before_anybody_was_told() -> None:
    office = Office(agentmail.Choices(ack_within_ms=10 * MINUTE))
    first, _, last = [
        office.send(ALICE, offering(to=["bob"], ack_required=wanted))["id"]
        for wanted in (True, False, True)
    ]
    office.pass_(10)
    second = office.send(ALICE, offering(to=["bob"]))["id"]
    office.do(HUMAN, CreateTask("t", "parent", ready=True))
    assert office.inbox(OLGA, box="overdue") == [first, last]
    office.lab.clock.advance(10 * MINUTE)
    assert office.inbox(OLGA, box="overdue") == [first, last, second], "no duty was done meanwhile"
    assert office.inbox(OLGA, box="overdue", before=0) == [second, last, first]
    page = office.ask("mail.inbox", {"box": "overdue", "limit": 2}, OLGA)
    assert page["more"]
    assert office.inbox(OLGA, box="overdue", after=page["cursor"]) == [second]
    assert office.rows(BOB)[-1]["overdue"] is True
    office.ask("mail.ack", {"id": second}, BOB)
    assert office.inbox(OLGA, box="overdue") == [first, last]


@proves("MAIL-ACK")
def test_a_late_ack_is_told_once_and_counts_all_the_same() -> None:
    office = Office(agentmail.Choices(ack_within_ms=10 * MINUTE))
    office.register("olga", "orchestrator")
    sent = office.send(ALICE, offering(to=["bob", "carol"]))["id"]
    office.ask("mail.ack", {"id": sent}, BOB)
    office.pass_(9)
    assert "mail.escalated" not in office.types()
    office.pass_(1)
    office.pass_(100)
    told = [line for line in office.events() if line["type"] == "mail.escalated"]
    assert [line["payload"]["waitingFor"] for line in told] == [["carol"]]
    assert told[0]["taskId"] == office.task().aof_id
    (notice,) = office.rows(OLGA)
    assert (notice["from"], notice["reply_to"], notice["type"]) == ("hub", sent, "UNKNOWN")
    assert office.inbox(OLGA, box="overdue") == [sent]
    assert office.rows(CAROL)[0]["overdue"] is True
    office.ask("mail.ack", {"id": sent}, CAROL)
    assert office.inbox(OLGA, box="overdue") == []
    assert findings(office.store) == []


@proves("MAIL-ACK")
def test_a_letter_may_ask_for_an_ack_and_say_until_when_or_ask_for_none() -> None:
    office = Office()
    asked = office.send(ALICE, {**NOTE, "ack_required": True, "ack_within_ms": 2 * MINUTE})["id"]
    spared = office.send(ALICE, offering(to=["bob"], ack_required=False))["id"]
    assert office.mail(asked).due_by == office.lab.clock.now() + 2 * MINUTE
    assert office.mail(spared).due_by is None
    office.pass_(60)
    assert (office.mail(asked).is_escalated, office.mail(spared).is_escalated) == (True, False)
    assert "taskId" not in next(e for e in office.events() if e["type"] == "mail.escalated")


@proves("MAIL-ACK-WITHIN")
@pytest.mark.parametrize("ack_required", [True, False])
@pytest.mark.parametrize("within", [-1, 0, 1, 31 * 24 * 60 * MINUTE])
def test_what_is_no_time_to_wait_for_an_ack_is_refused(ack_required: bool, within: int) -> None:
    row = {**NOTE, "ack_required": ack_required, "ack_within_ms": within}
    answer = Office().call("mail.send", row, BOB)
    assert isinstance(answer, Turned)
    assert (answer.code, answer.path) == ("invalid_field", "ack_within_ms")
    assert answer.detail.startswith("the time to answer is ")


@proves("MAIL-POST")
def test_a_reply_names_its_letter_by_the_beginning_of_its_id() -> None:
    office = Office()
    asked = office.send(ALICE, NOTE)["id"]
    reply = office.send(BOB, {**NOTE, "to": ["alice"], "reply_to": asked[:-4].upper()})
    assert office.mail(reply["id"]).reply_to == asked
    assert reply["thread_id"] == office.mail(asked).thread


# The same letter twice


@proves("MAIL-REPEAT")
@pytest.mark.parametrize(
    "told_by", [{"id": "m-1"}, {"id": 17}, {"timestamp": "2026-02-09T14:00:00Z"}]
)
def test_the_same_letter_again_is_answered_as_before(told_by: dict[str, Any]) -> None:
    office = Office()
    row = letter("PROGRESS", "Step: x", to=["bob"], **told_by)
    first = office.send(ALICE, row)
    head = office.store.head()
    again = office.call("mail.send", dict(reversed(row.items())), ALICE)
    assert isinstance(again, Taken)
    assert (again.repeated, again.reply) == (True, first)
    wrapped = office.door.send({"message": row}, speaker=ALICE)
    assert isinstance(wrapped, Taken)
    assert (wrapped.repeated, wrapped.reply) == (True, first)
    assert office.store.head() == head
    assert len(office.inbox(BOB)) == 1


@proves("MAIL-REPEAT", "MAIL-REFUSED-EFFECT")
def test_a_refused_effect_is_told_again_and_not_tried_again() -> None:
    office = Office()
    office.send(ALICE, letter("BEAD_ACCEPTED"))
    row = offering(to=["olga"], id="m-1")
    first = office.send(BOB, row)
    assert first["effect"]["code"] == "unauthorized_agent"
    office.pass_(21)
    office.send(BOB, letter("BEAD_ACCEPTED"))
    head = office.store.head()
    assert office.send(BOB, row) == first
    assert (office.store.head(), office.task().status) == (head, "in-progress")
    lease = office.lab.lease(BEAD)
    assert lease is not None
    assert lease.beats == 2, "a sign of life all the same"


@proves("MAIL-REPEAT")
def test_an_answer_again_is_told_its_thread_again() -> None:
    office = Office()
    asked = office.send(ALICE, letter("HELP_REQUEST", bead=""))["id"]
    row = letter("HELP_RESPONSE", "yes", bead="", to=["alice"], timestamp="2026-02-09T14:00:00Z")
    chiron = Actor("agent", "chiron")
    first = office.send(chiron, row)
    assert (first["thread_id"], first["effect"]) == (asked, {"applied": True})
    assert office.send(chiron, row) == first


@proves("MAIL-REPEAT", "IDEM-REPEAT")
@pytest.mark.parametrize(
    ("told_by", "key"),
    [({"id": "m-1"}, ""), ({"timestamp": "2026-02-09T14:00:00Z"}, ""), ({}, "k-1")],
)
def test_an_answer_to_whoever_asked_is_the_same_when_nobody_asks_any_more(
    told_by: dict[str, Any], key: str
) -> None:
    office = Office()
    office.send(ALICE, letter("HELP_REQUEST"))
    row = letter("HELP_RESPONSE", "yes", **told_by)
    first, again = (office.door.call("mail.send", dict(row), CHIRON, key=key) for _ in range(2))
    assert isinstance(first, Taken)
    assert isinstance(again, Taken), again
    assert (again.repeated, again.reply) == (True, first.reply)
    assert first.reply["effect"] == {"applied": True}
    assert office.inbox(ALICE) == [first.reply["id"]]
    other = office.call("mail.send", letter("HELP_RESPONSE", "no"), CHIRON)
    assert isinstance(other, Turned), "a new answer to nobody"
    assert (other.code, "name at least one recipient" in other.detail) == ("invalid_field", True)


@proves("MAIL-REPEAT")
def test_an_answer_in_the_thread_of_its_question_is_the_same_under_any_key() -> None:
    office = Office()
    asked = office.send(ALICE, letter("HELP_REQUEST", thread_id="elsewhere"))["id"]
    row = letter("HELP_RESPONSE", "yes", id="m-1")
    keys = ("k-1", "k-2", "")
    first, *others = (office.door.call("mail.send", dict(row), CHIRON, key=key) for key in keys)
    assert isinstance(first, Taken)
    assert (first.reply["thread_id"], first.reply["effect"]) == ("elsewhere", {"applied": True})
    for again in others:
        assert isinstance(again, Taken), again
        assert (again.repeated, again.reply["thread_id"]) == (True, "elsewhere")
        assert again.reply["effect"]["code"] == "already_exists", "tried when it first came"
    assert office.mail(asked).answer == "m-1"
    assert office.inbox(ALICE) == ["m-1"]
    elsewhere = office.door.call("mail.send", row | {"thread_id": "x"}, CHIRON, key="k-3")
    assert isinstance(elsewhere, Turned)
    assert elsewhere.code == "already_exists"


@proves("MAIL-REPEAT", "MAIL-ADDRESS")
@pytest.mark.parametrize("to", [{}, {"to": ["@orchestrators"]}, {"to": ["bob"], "cc": "@agents"}])
def test_a_letter_is_the_same_when_others_have_come_to_whom_it_would_go_now(
    to: dict[str, Any],
) -> None:
    office = Office()
    office.register("olga", "orchestrator")
    office.register("ann")
    row = letter("PROGRESS", "Step: x", id="m-1", **to)
    first = office.door.call("mail.send", dict(row), ALICE, key="k-1")
    reached = office.mail("m-1").recipients
    office.register("otto", "orchestrator")
    office.register("ben")
    again = office.door.call("mail.send", dict(row), ALICE, key="k-2")
    assert isinstance(first, Taken)
    assert isinstance(again, Taken), again
    assert (again.repeated, office.mail("m-1").recipients) == (True, reached)
    other = office.door.call("mail.send", row | {"to": ["carol"]}, ALICE, key="k-3")
    assert isinstance(other, Turned), "to somebody whom it did not go to"
    assert other.code == "already_exists"


@proves("MAIL-REPEAT")
def test_a_letter_without_id_or_time_is_new_each_time() -> None:
    office = Office()
    assert office.send(ALICE, NOTE)["id"] != office.send(ALICE, NOTE)["id"]


@proves("MAIL-REPEAT")
def test_an_id_is_one_letters_own() -> None:
    office = Office()
    office.send(ALICE, {**NOTE, "id": "m-1", "timestamp": "2026-02-09T14:00:00Z"})
    later = {**NOTE, "id": "m-1", "timestamp": "2026-02-09T14:05:00Z"}
    assert office.send(ALICE, later)["id"] == "m-1", "sent again later"
    assert (
        office.code("mail.send", {**NOTE, "id": "m-1", "subject": "x"}, ALICE) == "already_exists"
    )
    other = office.send(BOB, {**NOTE, "id": "m-1"})["id"]
    assert other != "m-1", "another sender's letter gets an id of the hub's"
    assert office.send(BOB, {**NOTE, "id": "m-1"})["id"] == other, "said again, it is the same one"
    assert office.mail("m-1").sender == "alice"
    assert office.code("mail.send", {**NOTE, "id": "a b"}, ALICE) == "invalid_id"


@proves("MAIL-REPEAT", "IDEM-REPEAT")
def test_a_key_of_the_callers_own_tells_repeats_too() -> None:
    office = Office()
    first = office.door.call("mail.send", dict(NOTE), ALICE, key="k-1")
    again = office.door.call("mail.send", dict(NOTE), ALICE, key="k-1")
    assert isinstance(first, Taken)
    assert isinstance(again, Taken)
    assert (again.repeated, again.reply) == (True, first.reply)
    other = office.door.call("mail.send", {**NOTE, "subject": "x"}, ALICE, key="k-1")
    assert isinstance(other, Turned)
    assert other.code == "key_reused"


@proves("MAIL-REPEAT")
@pytest.mark.parametrize("keys", [("", "k-1"), ("k-1", ""), ("k-1", "k-2")])
def test_a_letter_with_an_id_is_the_same_under_any_key(keys: tuple[str, str]) -> None:
    office = Office()
    office.send(ALICE, letter("BEAD_ACCEPTED"))
    row = letter("PROGRESS", "Step: x", to=["bob"], id="m-1")
    first, again = (office.door.call("mail.send", dict(row), ALICE, key=key) for key in keys)
    assert isinstance(first, Taken)
    assert isinstance(again, Taken)
    assert (first.repeated, again.repeated) == (False, True)
    assert (first.reply["id"], first.reply["effect"]) == ("m-1", {"applied": True})
    assert (again.reply["id"], again.reply["effect"]["code"]) == ("m-1", "already_exists")
    assert office.inbox(BOB) == ["m-1"]
    other = office.door.call("mail.send", row | {"body_md": "y"}, ALICE, key="k-3")
    assert isinstance(other, Turned)
    assert other.code == "already_exists"


@proves("MAIL-REPEAT")
def test_a_letter_whose_commit_was_lost_on_the_way_is_there_once() -> None:
    office = Office()
    office.store.losses = 1
    first = office.send(ALICE, letter("BEAD_ACCEPTED", id="m-1"))
    assert first["effect"] == {"applied": True}
    office.store.losses = 1
    assert office.send(ALICE, letter("BEAD_ACCEPTED", id="m-1")) == first
    assert office.task().attempts == 1
    assert len(office.inbox(Actor("agent", "orchestrator"))) == 1


@proves("MAIL-IDENTITY")
def test_an_attempts_credential_writes_letters_but_moves_no_other_task() -> None:
    office = Office()
    office.send(ALICE, letter("BEAD_ACCEPTED"))
    own = replace(ALICE, task=BEAD, fence=1)
    assert office.effect(own, letter("BEAD_ACCEPTED")) == "applied"
    assert office.effect(own, letter("PROGRESS", "Step: x")) == "applied"
    assert office.effect(own, letter("PROGRESS", "Step: x", bead="ol-9")) == "not_authorized"
    office.send(BOB, letter("BEAD_ACCEPTED", bead="ol-8"))
    assert office.effect(own, letter("PROGRESS", "Step: x", bead="ol-8")) == "not_authorized"
    assert office.effect(own, NOTE) == "none"
    office.pass_(21)
    office.send(ALICE, letter("BEAD_ACCEPTED"))
    assert office.effect(own, letter("PROGRESS", "Step: x")) == "lease_lost"
    lease = office.lab.lease(BEAD)
    assert lease is not None
    assert lease.beats == 1, "what is left of an attempt keeps no other one alive"
    assert office.effect(HUMAN, letter("PROGRESS", "Step: x")) == "applied"
