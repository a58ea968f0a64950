"""Letters: every state × every command, wrong callers, limits, and what is done twice."""

from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AckMail,
    AnswerMail,
    AnyCommand,
    CreateTask,
    EscalateMail,
    PostMail,
    ReadMail,
    RegisterAgent,
)
from dragoman.core.deciding.mail.mailing import LATE
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
)
from dragoman.core.moments import SPAN
from dragoman.core.states.letter import Mail, lists_of_mail
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


def world(*commands: PostMail) -> World:
    """A world with a task T and the letters that alice has posted."""
    built = World(task("T"))
    for command in commands:
        built.do(ALICE, command)
    return built


def in_state(state: str) -> World:
    """Alice's question to bob, so far gone."""
    built = world(QUESTION)
    steps: dict[str, tuple[tuple[Any, AnyCommand, int], ...]] = {
        "posted": (),
        "read": ((BOB, ReadMail("m"), NOW),),
        "acked": ((BOB, AckMail("m"), NOW),),
        "escalated": ((HUB, EscalateMail("m", ("olga",)), NOW + HOUR),),
        "answered": ((BOB, AnswerMail("m", "n"), NOW),),
    }
    for actor, command, now in steps[state]:
        built.do(actor, command, now)
    return built


TABLE: dict[str, dict[str, str]] = {
    "posted": {"read": "read", "ack": "acked", "answer": "answered", "escalate": "escalated"},
    "read": {"ack": "acked", "answer": "answered", "escalate": "escalated"},
    "acked": {"answer": "answered", "escalate": "unanswered"},
    "escalated": {"read": "read", "ack": "acked", "answer": "answered"},
    "answered": {},
}
"""State × command -> what is put on record; nothing where there is no cell."""

COMMANDS: dict[str, tuple[Any, AnyCommand]] = {
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
@pytest.mark.parametrize("state", TABLE)
def test_every_cell_is_as_the_table_says_and_twice_is_once(state: str, name: str) -> None:
    built, (actor, command) = in_state(state), COMMANDS[name]
    happened = TABLE[state].get(name)
    decision = built.do(actor, command, NOW + HOUR)
    recorded = [event for event in events_of(decision) if not isinstance(event, MailPosted)]
    assert recorded == ([EVENTS[happened]] if happened else [])
    assert (decision.receipt.stream, decision.receipt.thread) == ("mail:m", "T")
    assert events_of(built.do(actor, command, NOW + HOUR)) == []


def test_a_request_hands_in_one_letter_without_an_id() -> None:
    built = world()
    built.do(ALICE, replace(LETTER, id=""))
    assert built.code(ALICE, replace(LETTER, id="", subject="another")) == "already_exists"


def test_what_is_late_is_told_by_a_letter_of_its_own() -> None:
    built = in_state("posted")
    *_, notice = events_of(built.do(HUB, EscalateMail("m", ("olga", "alice")), NOW + HOUR))
    assert isinstance(notice, MailPosted)
    assert (notice.to, notice.kind, notice.reply_to, notice.thread) == (("olga",), LATE, "m", "T")
    assert notice.unknown == ("olga",)
    assert notice.subject == "Late: an answer to letter m"


def test_what_is_late_is_on_record_though_there_is_nobody_to_tell() -> None:
    built = in_state("posted")
    assert events_of(built.do(HUB, EscalateMail("m"), NOW + HOUR)) == [
        MailEscalated("m", ("bob",), (), "T")
    ]


OPEN = ("open:T", "about:T", "asked:bob")


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
def test_where_it_lies(state: str, lists: set[str]) -> None:
    mail = in_state(state).mails["m"]
    assert set(lists_of_mail(mail)) == lists | {"thread:T", "from:alice"}
    assert len(lists_of_mail(mail)) == len(set(lists_of_mail(mail)))
    assert (mail.deadline is None) == (state in ("escalated", "answered"))


def test_a_letter_is_posted_by_its_caller_into_every_box() -> None:
    built = world()
    built.do(HUMAN, RegisterAgent("bob"))
    command = PostMail(
        ("bob", "carol", "bob"),
        "[T] DONE",
        "It works.",
        "DONE",
        cc=("carol", "dora", "dora"),
        copied=("alice", "bob", "erin"),
        bead="T",
        importance="urgent",
        attachments=("out/a.md",),
        sent_at=NOW - 1,
    )
    decision = built.do(ALICE, command)
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
    mail = built.mails["cause-1"]
    assert mail.recipients == ("bob", "carol", "dora", "erin")
    assert (mail.posted_at, mail.waits_for, mail.is_open) == (NOW, (), False)


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
def test_its_thread(command: PostMail, thread: str) -> None:
    decision = world(QUESTION).do(ALICE, command)
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
        ({"copied": ("-",)}, "invalid_id"),
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
        ({"sent_at": SPAN[1] + 1}, "invalid_field"),
    ],
    ids=str,
)
def test_limits(fields: dict[str, Any], code: str) -> None:
    assert world().code(ALICE, replace(LETTER, **fields)) == code


def test_an_id_is_used_once() -> None:
    built = world(LETTER)
    assert built.code(ALICE, replace(LETTER, subject="x")) == "already_exists"
    other = built.do(BOB, LETTER)
    assert other.receipt.stream == "mail:cause-1", "another sender's gets one of the hub's own"
    assert built.mails["m"].sender == "alice"


@proves("MAIL-REPEAT")
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"to": ("bob", "bob")},
        {"sent_at": NOW - HOUR},
        {"thread": "T"},
        {"ack_wanted": False},
        {"copied": ("olga",)},
    ],
)
def test_the_same_letter_under_its_id_is_a_repeat(said: dict[str, Any]) -> None:
    built = world(QUESTION)
    again = built.do(ALICE, replace(QUESTION, **said), NOW + HOUR)
    assert events_of(again) == []
    assert (again.receipt.stream, again.receipt.thread) == ("mail:m", "T")
    assert again.receipt.before


@proves("MAIL-REPEAT")
@pytest.mark.parametrize(
    "said",
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
def test_another_letter_under_its_id_is_refused(said: dict[str, Any]) -> None:
    assert world(LETTER).code(ALICE, replace(LETTER, **said)) == "already_exists"


def test_the_thread_of_a_task_has_its_bare_name() -> None:
    assert world().do(ALICE, replace(LETTER, bead="bead:ol-1")).receipt.thread == "ol-1"


@pytest.mark.parametrize("actor", [OBSERVER, FILE], ids=lambda actor: actor.role)
def test_who_may_only_read_writes_no_letters(actor: Any) -> None:
    built = world(QUESTION)
    assert built.code(actor, LETTER) == "not_authorized"
    assert built.code(actor, AnswerMail("m", "n")) == "not_authorized"


@pytest.mark.parametrize(
    "command", [ReadMail, AckMail, AnswerMail, EscalateMail], ids=lambda kind: kind.__name__
)
def test_a_letter_that_there_is_not(command: Any) -> None:
    for id, code in (("nothing", "mail_not_found"), ("a b", "invalid_id"), ("", "invalid_id")):
        assert world().code(HUMAN, command(id)) == code


@proves("MAIL-ACK")
def test_only_a_recipient_reads_and_acks_and_each_for_itself() -> None:
    built = world(replace(QUESTION, to=("bob", "carol"), cc=("hera",)))
    for command in (ReadMail("m"), AckMail("m")):
        answer = built.ask(ALICE, command)
        assert isinstance(answer, Refusal)
        assert (answer.code, answer.detail) == ("not_authorized", "m is not addressed to alice")
    built.do(BOB, AckMail("m"))
    built.do(HUMAN, AckMail("m"))
    mail = built.mails["m"]
    assert (mail.acked_by, mail.read_by) == (("bob", "hera"), ("bob", "hera"))
    assert mail.waits_for == ("carol",), "those who have it as a copy need not ack it"


@proves("MAIL-ACK")
def test_an_answer_ends_the_wait_for_everybody_but_acks_for_nobody_else() -> None:
    built = world(replace(QUESTION, to=("bob", "carol")))
    built.do(BOB, AnswerMail("m"))
    mail = built.mails["m"]
    assert (mail.answer, mail.acked_by, mail.read_by) == ("cause-1", ("bob",), ("bob",))
    assert (mail.waits_for, mail.is_open) == ((), False)
    stranger = world(QUESTION)
    stranger.do(HUMAN, AnswerMail("m", "n", ("human",)))
    mail = stranger.mails["m"]
    assert (mail.answer, mail.acked_by, mail.waits_for) == ("n", (), ())


@proves("MAIL-HELP")
def test_whoever_has_it_may_answer_and_the_roles_that_are_named() -> None:
    built = world(replace(QUESTION, cc=("carol",)))
    refused = built.ask(Actor("agent", "dora"), AnswerMail("m", "n", ("human",)))
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.detail) == (
        "not_authorized",
        "m was not sent to agent:dora: its answer comes from bob, carol",
    )
    assert built.code(HUMAN, AnswerMail("m", "n")) == "not_authorized"
    built.do(Actor("agent", "carol"), AnswerMail("m", "n"))
    assert built.mails["m"].answer == "n"


@proves("MAIL-HELP", "MAIL-REPEAT")
def test_an_answer_whose_id_another_sender_has_is_known_by_the_one_that_it_got() -> None:
    built = world(QUESTION, replace(LETTER, id="n"))
    built.do(BOB, AnswerMail("m", "n"))
    assert built.mails["m"].answer == "cause-1"


@proves("MAIL-ACK")
def test_what_is_late_is_told_at_the_millisecond_by_the_hub_or_who_runs_the_show() -> None:
    built = world(QUESTION)
    early = built.do(HUB, EscalateMail("m"), NOW + HOUR - 1)
    assert events_of(early) == []
    assert built.code(BOB, EscalateMail("m"), NOW + HOUR) == "not_authorized"
    told = EscalateMail("m", ("olga", "bob", "olga"))
    late = built.do(ORCHESTRATOR, told, NOW + HOUR)
    assert events_of(late)[0] == MailEscalated("m", ("bob",), ("olga", "bob"), "T")


@proves("MAIL-ACK")
def test_it_says_whom_it_waits_for_and_its_task_if_there_is_one() -> None:
    built = world(replace(QUESTION, to=("bob", "carol"), bead="U"))
    built.do(BOB, AckMail("m"))
    late = built.do(HUB, EscalateMail("m"), NOW + HOUR)
    assert events_of(late) == [MailEscalated("m", ("carol",))]
    open_only = world(replace(QUESTION, ack_wanted=False, bead=""))
    late = open_only.do(HUB, EscalateMail("m"), NOW + HOUR)
    assert events_of(late) == [MailEscalated("m", ("bob",), only_answer=True)]


@proves("MAIL-ACK")
def test_what_waits_for_nothing_is_never_late() -> None:
    for command in (LETTER, replace(QUESTION, due_in_ms=0)):
        assert events_of(world(command).do(HUB, EscalateMail("m"), NOW + 99 * HOUR)) == []


def test_the_end_of_time_is_no_obstacle() -> None:
    built = World(task("T"))
    built.do(ALICE, QUESTION, SPAN[1])
    assert built.mails["m"].due_by == SPAN[1]


def test_a_letter_about_a_task_that_comes_later_finds_it_then() -> None:
    built = World()
    built.do(ALICE, QUESTION)
    built.do(HUMAN, CreateTask("t", "T"))
    late = built.do(HUB, EscalateMail("m"), NOW + HOUR)
    assert events_of(late) == [MailEscalated("m", ("bob",), (), "T")]


def test_a_letter_starts_with_nothing_but_what_was_posted() -> None:
    built = world(LETTER)
    posted = Mail("m", "alice", ("bob",), "m", "", "lunch?", "at noon", NOW, unknown=("bob",))
    assert built.mails["m"] == posted
