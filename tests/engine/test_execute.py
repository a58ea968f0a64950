"""One request: all or none, each command seeing the ones before it, refusals with their actor."""

from typing import Any

import msgspec
import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import (
    AdoptTask,
    AliasTask,
    AnyCommand,
    ClaimTask,
    CreateTask,
    LinkTask,
    MoveTask,
    NoteTask,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
    WarnTask,
)
from dragoman.core.errors import Refusal
from dragoman.ledger.entry import read_line
from tests.engine.lab import ALICE, BOB, HUMAN, START, TTL, Lab, code, yes
from tests.requirements import proves

OBSERVER = Actor("observer", "otto")
REFUSED = MoveTask("no-such-task", "ready")

CHANGES: dict[str, tuple[AnyCommand, ...]] = {
    "create": (CreateTask("new", "N", aliases=("bead:n",)),),
    "create without an id": (CreateTask("new"), CreateTask("newer")),
    "create and claim": (CreateTask("new", "N", ready=True), ClaimTask("N", "alice")),
    "adopt, claim and report": (
        AdoptTask("bead", "b"),
        ClaimTask("bead:b", "alice"),
        ReportOutcome("bead:b", "done", apply=True),
    ),
    "claim": (ClaimTask("READY", "alice"),),
    "claim the next": (ClaimTask("", "alice"), ClaimTask("", "alice")),
    "heartbeat": (RenewLease("HELD"), NoteTask("HELD", "x")),
    "release": (ReleaseTask("HELD"),),
    "report": (ReportOutcome("HELD", "failed", apply=True),),
    "link": (LinkTask("READY", "blocked-by", "HELD"), LinkTask("HELD", "parent", "OTHER")),
    "alias": (AliasTask("READY", "bead:r"), AliasTask("bead:r", "workq:r")),
    "move": (MoveTask("HELD", "review"), NoteTask("HELD", "done")),
}


def furnished(lab: Lab) -> None:
    """Three tasks: one ready, one that alice holds, one more that is ready."""
    for name in ("READY", "HELD", "OTHER"):
        lab.do(HUMAN, CreateTask(name, name, ready=True))
    lab.do(ALICE, ClaimTask("HELD", "alice"))
    lab.clock.advance(1_000)


@proves("CORE-ALL-OR-NONE")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_tuple_that_is_refused_leaves_nothing_behind(
    lab: Lab, changes: tuple[AnyCommand, ...]
) -> None:
    furnished(lab)
    before = lab.store.picture_of_tasks()
    assert lab.code(ALICE, *changes, REFUSED) == "task_not_found"
    assert lab.store.picture_of_tasks() == before
    assert lab.refused(ALICE) == ["task_not_found"]
    # What was cached is put back too: the same changes are accepted now, and then are there.
    yes(lab.ask(ALICE, *changes))
    assert lab.store.picture_of_tasks() != before


@proves("CORE-ALL-OR-NONE")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_a_refused_tuple_leaves_nothing_to_the_rest_of_its_batch(
    lab: Lab, changes: tuple[AnyCommand, ...]
) -> None:
    furnished(lab)
    other = Lab()
    furnished(other)
    asked = (ClaimTask("", "bob"), CreateTask("by bob"), AdoptTask("bead", "b"))
    first, *rest = lab.batch(
        lab.request(ALICE, *changes, REFUSED), *(lab.request(BOB, one) for one in asked)
    )
    assert code(first) == "task_not_found"
    assert rest == [other.ask(BOB, one) for one in asked], "as if it had never been asked for"
    assert [lab.task(name) for name in ("READY", "HELD", "OTHER")] == [
        other.task(name) for name in ("READY", "HELD", "OTHER")
    ]
    assert lab.store.picture_of_tasks()["numbers"] == other.store.picture_of_tasks()["numbers"]


@proves("CORE-ALL-OR-NONE")
def test_each_command_sees_the_ones_before_it(lab: Lab) -> None:
    receipts = yes(
        lab.ask(
            ALICE,
            AdoptTask("bead", "ol-1", review_required=False),
            ClaimTask("bead:ol-1", "alice"),
            NoteTask("ol-1", "on it"),
            ReportOutcome("ol-1", "done", apply=True),
            CreateTask("next", "N", ready=True, blocked_by=("ol-1",)),
            ClaimTask("", "alice"),
        )
    ).receipts
    assert [(receipt.task, receipt.status) for receipt in receipts] == [
        ("ol-1", "ready"),
        ("ol-1", "in-progress"),
        ("ol-1", "in-progress"),
        ("ol-1", "done"),
        ("N", "ready"),
        ("N", "in-progress"),
    ]
    assert [event for _, event in lab.lines()] == [
        "task.created",
        "task.claimed",
        "task.noted",
        "task.reported",
        "task.transitioned",
        "task.transitioned",
        "task.created",
        "task.backlinked",
        "task.claimed",
    ]


@proves("CORE-ALL-OR-NONE")
def test_the_order_of_a_tuple_matters(lab: Lab) -> None:
    claim, adopt = ClaimTask("bead:b", "alice"), AdoptTask("bead", "b")
    assert lab.code(ALICE, claim, adopt) == "task_not_found"
    assert lab.code(ALICE, adopt, claim) == ""


@proves("CORE-ALL-OR-NONE", "TASK-UNBLOCK")
def test_one_command_may_change_several_streams(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("a", "A"))
    lab.do(HUMAN, CreateTask("b", "B", blocked_by=("A",)), CreateTask("c", "C", blocked_by=("A",)))
    lab.do(HUMAN, MoveTask("A", "cancelled"))
    assert lab.lines()[-3:] == [
        ("task:A", "task.transitioned"),
        ("task:B", "task.unblocked"),
        ("task:C", "task.unblocked"),
    ]


@proves("LEDGER-LINE", "LEDGER-SAID")
def test_all_entries_of_a_request_share_cause_actor_door_and_time(lab: Lab) -> None:
    actor = Actor("agent", "alice", "http")
    request = lab.request(
        actor, CreateTask("a", "A", ready=True), ClaimTask("A", "alice"), said=b'{"x":1}'
    )
    lab.engine.handle_now(request)
    lines = [read_line(entry.line) for entry in lab.store.entries(0, 10)]
    assert {(line.cause, line.actor, line.via, line.at) for line in lines} == {
        (request.id, "agent:alice", "http", START)
    }
    assert [isinstance(line.said, msgspec.Raw) for line in lines] == [True, False]


@proves("LEDGER-SAID", "REFUSAL-RECORDED")
@pytest.mark.parametrize(
    "commands", [(REFUSED,), (CreateTask("a"), REFUSED), (CreateTask("a"), NoteTask("", "x"))]
)
def test_what_was_said_is_kept_with_the_refusal_too(
    lab: Lab, commands: tuple[AnyCommand, ...]
) -> None:
    lab.ask(ALICE, *commands, said=b'{"unknown":"field"}')
    (entry,) = lab.store.entries(0, 10)
    line = read_line(entry.line)
    assert isinstance(line.said, msgspec.Raw)
    assert bytes(line.said) == b'{"unknown":"field"}'


@proves("LEDGER-SAID")
def test_what_was_said_never_changes_a_decision(lab: Lab) -> None:
    plain, wordy = Lab(), lab
    for said, where in ((None, plain), (b'{"status":"done","fence":99}', wordy)):
        where.ask(HUMAN, CreateTask("a", "A", ready=True), said=said)
        where.ask(ALICE, ClaimTask("A", "alice"), said=said)
        where.ask(ALICE, REFUSED, said=said)
    assert plain.task("A") == wordy.task("A")
    assert plain.lines() == wordy.lines()


@proves("REFUSAL-RECORDED")
def test_a_refusal_is_an_entry_with_its_actor_and_never_with_its_target(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("a", "A"))
    before = lab.store.picture_of_tasks()
    refusal = lab.ask(BOB, ClaimTask("A", "bob"))
    assert lab.store.picture_of_tasks() == before
    (entry,) = lab.store.history("actor:agent:bob", 0, 10)
    line = read_line(entry.line)
    assert isinstance(refusal, Refusal)
    assert msgspec.json.decode(line.body) == {
        "command": "task.claim",
        "target": "A",
        "code": "not_ready",
        "detail": refusal.detail,
    }
    assert line.actor == "agent:bob"


@proves("REFUSAL-RECORDED")
def test_a_repeated_refusal_adds_no_entry_within_its_minute(lab: Lab) -> None:
    for _ in range(5):
        assert lab.code(BOB, REFUSED) == "task_not_found"
    assert lab.store.head() == 1
    lab.clock.advance(60_000)
    lab.code(BOB, REFUSED)
    assert lab.store.head() == 2


@proves("REFUSAL-RECORDED")
def test_a_flood_of_refusals_has_its_measure(lab: Lab) -> None:
    lab.batch(*(lab.request(BOB, NoteTask(f"no-{n}", "x")) for n in range(100)))
    for number in range(100, 200):
        lab.code(BOB, NoteTask(f"no-{number}", "x"))
    assert len(lab.refused(BOB)) == 60
    assert lab.code(ALICE, REFUSED) == "task_not_found"
    assert len(lab.refused(ALICE)) == 1, "each actor has its own"


@proves("REFUSAL-RECORDED")
def test_a_polling_agent_adds_nothing(lab: Lab) -> None:
    for _ in range(10):
        assert lab.code(BOB, ClaimTask("", "bob")) == "nothing_ready"
    assert lab.store.head() == 0


@proves("REFUSAL-RECORDED", "ROLE-TABLE")
def test_the_command_that_was_refused_is_the_one_that_is_named(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("a", "A"))
    mover = Actor("file", "mover")
    lab.code(mover, MoveTask("A", "backlog"), NoteTask("A", "x"))
    (entry,) = lab.store.history(mover.stream, 0, 10)
    body = msgspec.json.decode(read_line(entry.line).body)
    assert (body["command"], body["code"]) == ("task.note", "not_authorized")


HOSTILE = (
    "\ud800",
    "a\x00b",
    "../../etc/passwd",
    "A\n",
    "Ａ",
    "x" * 1_000_000,
    "bead:\udfff",
    ":",
)


@proves("NAME-GRAMMAR", "REFUSAL-RECORDED")
@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_hostile_name_is_refused_and_recorded_harmlessly_wherever_it_stands(
    lab: Lab, name: str
) -> None:
    lab.do(HUMAN, CreateTask("a", "A", ready=True))
    commands: tuple[AnyCommand, ...] = (
        NoteTask(name, "x"),
        MoveTask(name, "ready"),
        RenewLease(name),
        ClaimTask(name, "alice"),
        ClaimTask("A", name),
        ClaimTask("A", "alice", name),
        LinkTask("A", "parent", name),
        AliasTask("A", f"bead:{name}"),
        AdoptTask("bead", name),
        AdoptTask(name, "x"),
        CreateTask("x", name),
        CreateTask("x", parent=name),
        CreateTask("x", blocked_by=(name,)),
        CreateTask("x", aliases=(f"bead:{name}",)),
    )
    before = lab.store.picture_of_tasks()
    for number, command in enumerate(commands):
        actor = Actor("agent", "alice", f"door-{number}")
        assert lab.code(actor, command) == "invalid_id", command
    for answer in lab.batch(*(lab.request(BOB, command) for command in commands[:3])):
        assert code(answer) == "invalid_id"
    assert lab.store.picture_of_tasks() == before
    for entry in lab.store.entries(0, 100):
        assert len(entry.line) < 2_000
        assert entry.line.isascii()


@proves("LEASE-FENCE", "LEASE-HEARTBEAT", "LEASE-OFF-LEDGER")
def test_leases_are_kept_beside_the_ledger(lab: Lab) -> None:
    furnished(lab)
    head = lab.store.head()
    for _ in range(3):
        lab.do(ALICE, RenewLease("HELD", 1))
    assert lab.store.head() == head
    lease = lab.lease("HELD")
    assert lease is not None
    assert (lease.beats, lease.expires_at) == (4, START + 1_000 + TTL)
    lab.do(ALICE, ReleaseTask("HELD"))
    assert lab.lease("HELD") is None


@proves("NAME-AOF-ID")
def test_numbers_go_on_across_requests_batches_and_refusals(lab: Lab) -> None:
    lab.do(HUMAN, CreateTask("one"))
    lab.code(HUMAN, CreateTask("lost"), REFUSED)
    answers: list[Any] = lab.batch(
        lab.request(HUMAN, CreateTask("two")),
        lab.request(HUMAN, CreateTask("lost"), CreateTask("lost too"), REFUSED),
        lab.request(HUMAN, CreateTask("three"), CreateTask("four", "F")),
        lab.request(HUMAN, CreateTask("five")),
    )
    made = [a.receipts[0].task for a in answers if code(a) == ""]
    assert made == [f"TASK-2026-02-09-00{n}" for n in (2, 3, 5)]
    assert lab.task("F").aof_id == "TASK-2026-02-09-004"
    assert lab.task("aof:TASK-2026-02-09-004").id == "F"


@proves("NAME-AOF-ID")
def test_a_number_that_somebody_chose_is_passed_over_in_its_batch_too(lab: Lab) -> None:
    answers = lab.batch(
        lab.request(HUMAN, CreateTask("chosen", "TASK-2026-02-09-002")),
        lab.request(HUMAN, CreateTask("one")),
        lab.request(HUMAN, CreateTask("two")),
    )
    assert [yes(answer).receipts[0].task[-3:] for answer in answers] == ["002", "001", "003"]


@proves("NAME-ALIAS")
def test_names_bound_in_a_batch_are_known_in_it(lab: Lab) -> None:
    answers = lab.batch(
        lab.request(HUMAN, CreateTask("a", "A", aliases=("bead:x",))),
        lab.request(HUMAN, CreateTask("b", "B", aliases=("bead:x",))),
        lab.request(HUMAN, CreateTask("c", "C"), AliasTask("C", "workq:x")),
        lab.request(HUMAN, NoteTask("bead:x", "one")),
        lab.request(HUMAN, NoteTask("x", "two")),
        lab.request(HUMAN, NoteTask("workq:x", "three")),
    )
    assert [code(answer) for answer in answers] == [
        "",
        "already_exists",
        "",
        "",
        "ambiguous_name",
        "",
    ]
    assert (lab.task("A").notes, lab.task("C").notes) == (1, 1)


@proves("TASK-ADOPT")
def test_two_first_words_at_once_make_one_task(lab: Lab) -> None:
    adopt = AdoptTask("bead", "b")
    answers = lab.batch(lab.request(ALICE, adopt), lab.request(BOB, adopt))
    assert [yes(answer).receipts[0].task for answer in answers] == ["b", "b"]
    assert lab.lines() == [("task:b", "task.created")]


@proves("LEASE-HEARTBEAT")
def test_a_request_of_several_commands_is_one_sign_of_life(lab: Lab) -> None:
    furnished(lab)
    lab.do(ALICE, ReportOutcome("HELD", "done"), WarnTask("HELD", "missing_summary"))
    lease = lab.lease("HELD")
    assert lease is not None
    assert lease.beats == 2
