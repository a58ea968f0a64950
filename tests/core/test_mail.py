"""Letters: every state × every command, wrong callers, limits, repeats."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.mail import (
    LATE_KIND,
    AckMail,
    AnswerMail,
    EscalateMail,
    Mail,
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
    PostMail,
    ReadMail,
    mail_list_keys,
)
from dragoman.core.task_state import CreateTask
from dragoman.core.timestamps import TIMESTAMP_RANGE
from tests.core.world import (
    ALICE,
    BOB,
    FILE,
    HUB,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
    events_of,
    task,
)
from tests.requirements import proves

pytestmark = proves("MAIL-POST")

HOUR = 3_600_000
LETTER = PostMail(("bob",), "lunch?", "at noon", id="m")
QUESTION = replace(
    LETTER, kind="HELP_REQUEST", ack_wanted=True, answer_wanted=True, due_in_ms=HOUR, bead="T"
)


def with_letters(*commands: PostMail) -> World:
    """World with a task T and the letters that alice has posted."""
    world = World(task("T"))
    for command in commands:
        world.do(ALICE, command)
    return world


def in_state(state: str) -> World:
    """World with alice's question to bob in this state."""
    world = with_letters(QUESTION)
    steps: dict[str, tuple[tuple[Any, Command, int], ...]] = {
        "posted": (),
        "read": ((BOB, ReadMail("m"), NOW),),
        "acked": ((BOB, AckMail("m"), NOW),),
        "escalated": ((HUB, EscalateMail("m", ("olga",)), NOW + HOUR),),
        "answered": ((BOB, AnswerMail("m", "n"), NOW),),
    }
    for actor, command, now in steps[state]:
        world.do(actor, command, now)
    return world


EXPECTED_RECORDS: dict[str, dict[str, str]] = {
    "posted": {"read": "read", "ack": "acked", "answer": "answered", "escalate": "escalated"},
    "read": {"ack": "acked", "answer": "answered", "escalate": "escalated"},
    "acked": {"answer": "answered", "escalate": "unanswered"},
    "escalated": {"read": "read", "ack": "acked", "answer": "answered"},
    "answered": {},
}
"""State × command -> expected record; a missing cell records nothing."""

COMMANDS: dict[str, tuple[Any, Command]] = {
    "read": (BOB, ReadMail("m")),
    "ack": (BOB, AckMail("m")),
    "answer": (BOB, AnswerMail("m", "n")),
    "escalate": (HUB, EscalateMail("m", ("olga",))),
}
EVENTS = {
    "read": MailRead("m", "bob"),
    "acked": MailAcked("m", "bob"),
    "answered": MailAnswered("m", "bob", "n"),
    "escalated": MailEscalated("m", ("bob",), ("olga",), "T"),
    "unanswered": MailEscalated("m", ("bob",), ("olga",), "T", only_answer=True),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("state", EXPECTED_RECORDS)
def test_command_in_every_state_matches_the_table(state: str, name: str) -> None:
    world, (actor, command) = in_state(state), COMMANDS[name]
    expected = EXPECTED_RECORDS[state].get(name)
    decision = world.do(actor, command, NOW + HOUR)
    recorded = [event for event in events_of(decision) if not isinstance(event, MailPosted)]
    assert recorded == ([EVENTS[expected]] if expected else [])
    assert (decision.receipt.stream, decision.receipt.thread) == ("mail:m", "T")
    assert events_of(world.do(actor, command, NOW + HOUR)) == []


def test_request_may_post_only_one_letter_without_id() -> None:
    world = with_letters()
    world.do(ALICE, replace(LETTER, id=""))
    assert world.code(ALICE, replace(LETTER, id="", subject="another")) == "already_exists"


def test_overdue_letter_is_escalated_by_mail() -> None:
    world = in_state("posted")
    *_, notice = events_of(world.do(HUB, EscalateMail("m", ("olga", "alice")), NOW + HOUR))
    assert isinstance(notice, MailPosted)
    assert (notice.to, notice.kind, notice.reply_to, notice.thread) == (
        ("olga",),
        LATE_KIND,
        "m",
        "T",
    )
    assert notice.unknown == ("olga",)
    assert notice.subject == "Late: an answer to letter m"


def test_overdue_letter_is_recorded_without_recipients() -> None:
    world = in_state("posted")
    assert events_of(world.do(HUB, EscalateMail("m"), NOW + HOUR)) == [
        MailEscalated("m", ("bob",), (), "T")
    ]


OPEN = ("open:T", "about:T", "asked:bob", "attention")


@pytest.mark.parametrize(
    ("state", "lists"),
    [
        ("posted", {"in:bob", "unread:bob", "pending:bob", *OPEN, "waiting"}),
        ("read", {"in:bob", "pending:bob", *OPEN}),
        ("acked", {"in:bob", *OPEN}),
        (
            "escalated",
            {
                "in:bob",
                "unread:bob",
                "pending:bob",
                *OPEN,
                "waiting",
                "overdue",
            },
        ),
        ("answered", {"in:bob"}),
    ],
)
def test_letter_is_listed_by_state(state: str, lists: set[str]) -> None:
    mail = in_state(state).mails["m"]
    assert set(mail_list_keys(mail)) == lists | {"thread:T", "from:alice"}
    assert len(mail_list_keys(mail)) == len(set(mail_list_keys(mail)))
    assert (mail.deadline is None) == (state in ("escalated", "answered"))


def test_letter_is_posted_to_all_recipients() -> None:
    world = with_letters()
    world.do(HUMAN, RegisterAgent("bob"))
    command = PostMail(
        ("bob", "carol", "bob"),
        "[T] DONE",
        "It works.",
        "DONE",
        cc=("carol", "dora", "dora"),
        auto_copied=("alice", "bob", "erin"),
        bead="T",
        importance="urgent",
        attachments=("out/a.md",),
        sent_at=NOW - 1,
    )
    decision = world.do(ALICE, command)
    assert events_of(decision) == [
        MailPosted(
            "cause-1",
            "alice",
            ("bob", "carol"),
            "T",
            "DONE",
            "[T] DONE",
            "It works.",
            ("dora",),
            ("erin",),
            ("carol", "dora", "erin"),
            "T",
            importance="urgent",
            attachments=("out/a.md",),
            sent_at=NOW - 1,
        )
    ]
    mail = world.mails["cause-1"]
    assert mail.recipients == ("bob", "carol", "dora", "erin")
    assert (mail.posted_at, mail.awaited_acks, mail.awaits_answer) == (NOW, (), False)


@pytest.mark.parametrize(
    ("command", "thread"),
    [
        (PostMail(("bob",), "s", "", thread="t", bead="T", reply_to="m"), "t"),
        (PostMail(("bob",), "s", "", bead="U", reply_to="m"), "T"),
        (PostMail(("bob",), "s", "", bead="U"), "U"),
        (PostMail(("bob",), "s", "", id="n"), "n"),
        (PostMail(("bob",), "s", ""), "cause-1"),
    ],
)
def test_thread_of_letter_follows_precedence(command: PostMail, thread: str) -> None:
    decision = with_letters(QUESTION).do(ALICE, command)
    assert decision.receipt.thread == thread


LONG = "x" * 129
MANY = tuple(f"a{number}" for number in range(1_001))


@proves("LIMIT-TEXT")
@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"to": ()}, "invalid_field"),
        ({"to": ("b b",)}, "invalid_id"),
        ({"cc": ("",)}, "invalid_id"),
        ({"auto_copied": ("-",)}, "invalid_id"),
        ({"to": MANY}, "invalid_field"),
        ({"cc": MANY[1:]}, "invalid_field"),
        ({"to": MANY[1:]}, ""),
        ({"id": LONG}, "invalid_id"),
        ({"id": "a/b"}, "invalid_id"),
        ({"id": "x" * 128}, ""),
        ({"thread": LONG}, "invalid_id"),
        ({"bead": "a b"}, "invalid_id"),
        ({"bead": "bead:ol-1", "thread": "t"}, ""),
        ({"bead": "bead:ol-1"}, ""),
        ({"reply_to": "nothing"}, "mail_not_found"),
        ({"subject": "x" * 501}, "invalid_field"),
        ({"subject": "x" * 500}, ""),
        ({"subject": ""}, ""),
        ({"body": "x" * 200_001}, "invalid_field"),
        ({"kind": "x" * 65}, "invalid_field"),
        ({"attachments": ("a",) * 65}, "invalid_field"),
        ({"attachments": ("x" * 4_001,)}, "invalid_field"),
        ({"attachments": ("a", " ")}, "invalid_field"),
        ({"due_in_ms": 999}, "invalid_field"),
        ({"due_in_ms": 30 * 24 * HOUR + 1}, "invalid_field"),
        ({"due_in_ms": 1_000}, ""),
        ({"sent_at": TIMESTAMP_RANGE[1] + 1}, "invalid_field"),
    ],
    ids=str,
)
def test_letter_fields_are_bounded(fields: dict[str, Any], code: str) -> None:
    assert with_letters().code(ALICE, replace(LETTER, **fields)) == code


def test_letter_id_is_used_once() -> None:
    world = with_letters(LETTER)
    assert world.code(ALICE, replace(LETTER, subject="x")) == "already_exists"
    other = world.do(BOB, LETTER)
    assert other.receipt.stream == "mail:cause-1", "another sender's gets one of the hub's own"
    assert world.mails["m"].sender == "alice"


@proves("MAIL-REPEAT")
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"to": ("bob", "bob")},
        {"sent_at": NOW - HOUR},
        {"thread": "T"},
        {"ack_wanted": False},
        {"auto_copied": ("olga",)},
    ],
)
def test_same_letter_under_same_id_is_a_repeat(changes: dict[str, Any]) -> None:
    world = with_letters(QUESTION)
    repeated = world.do(ALICE, replace(QUESTION, **changes), NOW + HOUR)
    assert events_of(repeated) == []
    assert (repeated.receipt.stream, repeated.receipt.thread) == ("mail:m", "T")
    assert repeated.receipt.is_repeat


@proves("MAIL-REPEAT")
@pytest.mark.parametrize(
    "changes",
    [
        {"to": ("carol",)},
        {"cc": ("carol",)},
        {"subject": "x"},
        {"body": "x"},
        {"kind": "x"},
        {"bead": "U"},
        {"thread": "x"},
        {"importance": "high"},
        {"attachments": ("x",)},
        {"ack_wanted": True},
    ],
)
def test_different_letter_under_same_id_is_refused(changes: dict[str, Any]) -> None:
    assert with_letters(LETTER).code(ALICE, replace(LETTER, **changes)) == "already_exists"


def test_thread_of_task_is_its_bare_name() -> None:
    assert with_letters().do(ALICE, replace(LETTER, bead="bead:ol-1")).receipt.thread == "ol-1"


@pytest.mark.parametrize("actor", [OBSERVER, FILE], ids=lambda actor: actor.role)
def test_read_only_role_may_not_write_letters(actor: Any) -> None:
    world = with_letters(QUESTION)
    assert world.code(actor, LETTER) == "not_authorized"
    assert world.code(actor, AnswerMail("m", "n")) == "not_authorized"


@pytest.mark.parametrize(
    "command", [ReadMail, AckMail, AnswerMail, EscalateMail], ids=lambda kind: kind.__name__
)
def test_unknown_letter_is_refused(command: Any) -> None:
    for id, code in (("nothing", "mail_not_found"), ("a b", "invalid_id"), ("", "invalid_id")):
        assert with_letters().code(HUMAN, command(id)) == code


@proves("MAIL-ACK")
def test_recipients_read_and_ack_for_themselves_only() -> None:
    world = with_letters(replace(QUESTION, to=("bob", "carol"), cc=("hera",)))
    for command in (ReadMail("m"), AckMail("m")):
        answer = world.decide(ALICE, command)
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.detail) == ("not_authorized", "m is not addressed to alice")
    world.do(BOB, AckMail("m"))
    world.do(HUMAN, AckMail("m"))
    mail = world.mails["m"]
    assert (mail.acked_by, mail.read_by) == (("bob", "hera"), ("bob", "hera"))
    assert mail.awaited_acks == ("carol",), "those who have it as a copy need not ack it"


@proves("MAIL-ACK")
def test_answer_ends_the_wait_but_acks_only_for_answerer() -> None:
    world = with_letters(replace(QUESTION, to=("bob", "carol")))
    world.do(BOB, AnswerMail("m"))
    mail = world.mails["m"]
    assert (mail.answer, mail.acked_by, mail.read_by) == ("cause-1", ("bob",), ("bob",))
    assert (mail.awaited_acks, mail.awaits_answer) == ((), False)
    answered_by_role = with_letters(QUESTION)
    answered_by_role.do(HUMAN, AnswerMail("m", "n", ("human",)))
    mail = answered_by_role.mails["m"]
    assert (mail.answer, mail.acked_by, mail.awaited_acks) == ("n", (), ())


@proves("MAIL-HELP")
def test_recipients_and_named_roles_may_answer() -> None:
    world = with_letters(replace(QUESTION, cc=("carol",)))
    refused = world.decide(Actor("agent", "dora"), AnswerMail("m", "n", ("human",)))
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == (
        "not_authorized",
        "m was not sent to agent:dora: its answer comes from bob, carol",
    )
    assert world.code(HUMAN, AnswerMail("m", "n")) == "not_authorized"
    world.do(Actor("agent", "carol"), AnswerMail("m", "n"))
    assert world.mails["m"].answer == "n"


@proves("MAIL-HELP", "MAIL-REPEAT")
def test_answer_with_taken_id_is_recorded_under_its_new_id() -> None:
    world = with_letters(QUESTION, replace(LETTER, id="n"))
    world.do(BOB, AnswerMail("m", "n"))
    assert world.mails["m"].answer == "cause-1"


@proves("MAIL-ACK")
def test_escalation_starts_at_deadline_and_depends_on_role() -> None:
    world = with_letters(QUESTION)
    early = world.do(HUB, EscalateMail("m"), NOW + HOUR - 1)
    assert events_of(early) == []
    assert world.code(BOB, EscalateMail("m"), NOW + HOUR) == "not_authorized"
    escalation = EscalateMail("m", ("olga", "bob", "olga"))
    late = world.do(ORCHESTRATOR, escalation, NOW + HOUR)
    assert events_of(late)[0] == MailEscalated("m", ("bob",), ("olga", "bob"), "T")


@proves("MAIL-ACK")
def test_escalation_names_awaited_recipients_and_task() -> None:
    world = with_letters(replace(QUESTION, to=("bob", "carol"), bead="U"))
    world.do(BOB, AckMail("m"))
    late = world.do(HUB, EscalateMail("m"), NOW + HOUR)
    assert events_of(late) == [MailEscalated("m", ("carol",))]
    open_only = with_letters(replace(QUESTION, ack_wanted=False, bead=""))
    late = open_only.do(HUB, EscalateMail("m"), NOW + HOUR)
    assert events_of(late) == [MailEscalated("m", ("bob",), only_answer=True)]


@proves("MAIL-ACK")
def test_letter_without_deadline_is_never_overdue() -> None:
    for command in (LETTER, replace(QUESTION, due_in_ms=0)):
        assert events_of(with_letters(command).do(HUB, EscalateMail("m"), NOW + 99 * HOUR)) == []


def test_deadline_is_capped_at_year_9999() -> None:
    world = World(task("T"))
    world.do(ALICE, QUESTION, TIMESTAMP_RANGE[1])
    assert world.mails["m"].due_by == TIMESTAMP_RANGE[1]


def test_letter_about_later_created_task_finds_it() -> None:
    world = World()
    world.do(ALICE, QUESTION)
    world.do(HUMAN, CreateTask("t", "T"))
    late = world.do(HUB, EscalateMail("m"), NOW + HOUR)
    assert events_of(late) == [MailEscalated("m", ("bob",), (), "T")]


def test_new_letter_has_only_posted_fields() -> None:
    world = with_letters(LETTER)
    posted = Mail(
        "m", "alice", ("bob",), "m", "", "lunch?", "at noon", unknown=("bob",), posted_at=NOW
    )
    assert world.mails["m"] == posted


@proves("MAIL-POST")
def test_letter_in_a_thread_of_a_malformed_name_is_refused() -> None:
    assert World().code(ALICE, PostMail(("bob",), "Hello", "", thread="no/t")) == "invalid_id"
