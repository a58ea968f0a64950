"""Executing one request: atomic, command by command, with refusals in the actor's stream."""

from typing import Any

import msgspec
import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReleaseTask, RenewLease, ReportOutcome
from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import ProposeHandoff, RejectHandoff
from dragoman.core.task_state import (
    AdoptTask,
    AliasTask,
    CreateTask,
    LinkTask,
    MoveTask,
    NoteTask,
    WarnTask,
)
from dragoman.ledger.entry import read_line
from tests.engine.handoffs import package
from tests.engine.lab import ALICE, BOB, CAROL, HUMAN, START, TTL, Lab, assert_accepted, code
from tests.requirements import proves

OBSERVER = Actor("observer", "otto")
REFUSED = MoveTask("no-such-task", "ready")

CHANGES: dict[str, tuple[Command, ...]] = {
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


def create_tasks(lab: Lab) -> None:
    """Create three ready tasks, of which alice holds HELD."""
    for name in ("READY", "HELD", "OTHER"):
        lab.do(HUMAN, CreateTask(name, name, ready=True))
    lab.do(ALICE, ClaimTask("HELD", "alice"))
    lab.clock.advance(1_000)


@proves("CLI-PLAN")
def test_refusal_names_the_command_where_there_are_several(lab: Lab) -> None:
    several = lab.ask(HUMAN, CreateTask("one", "N"), REFUSED)
    single = lab.ask(HUMAN, REFUSED)

    assert isinstance(several, Refusal)
    assert isinstance(single, Refusal)
    assert (several.command, single.command) == (1, None)


@proves("CORE-ALL-OR-NONE")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_refused_tuple_changes_nothing(lab: Lab, changes: tuple[Command, ...]) -> None:
    create_tasks(lab)
    before = lab.store.picture_of_tasks()
    assert lab.code(ALICE, *changes, REFUSED) == "task_not_found"
    assert lab.store.picture_of_tasks() == before
    assert lab.refused(ALICE) == ["task_not_found"]
    # The cache is restored too: the same changes are accepted now, and are stored then.
    assert_accepted(lab.ask(ALICE, *changes))
    assert lab.store.picture_of_tasks() != before


@proves("CORE-ALL-OR-NONE")
@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_refused_tuple_does_not_affect_the_rest_of_its_batch(
    lab: Lab, changes: tuple[Command, ...]
) -> None:
    create_tasks(lab)
    other = Lab()
    create_tasks(other)
    commands = (ClaimTask("", "bob"), CreateTask("by bob"), AdoptTask("bead", "b"))
    first, *rest = lab.batch(
        lab.request(ALICE, *changes, REFUSED), *(lab.request(BOB, one) for one in commands)
    )
    assert code(first) == "task_not_found"
    assert rest == [other.ask(BOB, one) for one in commands], "as if it had never been asked for"
    assert [lab.task(name) for name in ("READY", "HELD", "OTHER")] == [
        other.task(name) for name in ("READY", "HELD", "OTHER")
    ]
    assert lab.store.picture_of_tasks()["numbers"] == other.store.picture_of_tasks()["numbers"]


@proves("CORE-ALL-OR-NONE")
def test_each_command_sees_the_ones_before_it(lab: Lab) -> None:
    receipts = assert_accepted(
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
def test_order_of_a_tuple_matters(lab: Lab) -> None:
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
def test_entries_of_a_request_share_cause_actor_surface_and_time(lab: Lab) -> None:
    actor = Actor("agent", "alice", "http")
    request = lab.request(
        actor, CreateTask("a", "A", ready=True), ClaimTask("A", "alice"), original_text=b'{"x":1}'
    )
    lab.engine.handle_now(request)
    lines = [read_line(entry.line) for entry in lab.store.entries(0, 10)]
    assert {(line.cause, line.actor, line.via, line.at) for line in lines} == {
        (request.id, "agent:alice", "http", START)
    }
    assert [isinstance(line.original_text, msgspec.Raw) for line in lines] == [True, False]


@proves("LEDGER-SAID", "REFUSAL-RECORDED")
@pytest.mark.parametrize(
    "commands", [(REFUSED,), (CreateTask("a"), REFUSED), (CreateTask("a"), NoteTask("", "x"))]
)
def test_original_text_is_stored_with_the_refusal(lab: Lab, commands: tuple[Command, ...]) -> None:
    lab.ask(ALICE, *commands, original_text=b'{"unknown":"field"}')
    (entry,) = lab.store.entries(0, 10)
    line = read_line(entry.line)
    assert isinstance(line.original_text, msgspec.Raw)
    assert bytes(line.original_text) == b'{"unknown":"field"}'


@proves("LEDGER-SAID", "ACP-CLOSED-ENTRIES")
def test_original_text_of_a_handoff_is_kept_with_it_and_not_with_the_task(lab: Lab) -> None:
    offered = ProposeHandoff("new", "bob", package(), "h1")
    commands = (AdoptTask("bead", "new", owner="alice"), offered)
    lab.ask(ALICE, *commands, original_text=b'{"said":1}')
    lab.ask(CAROL, RejectHandoff("h1", "other", "no"), original_text=b'{"said":2}')
    lines = [read_line(entry.line) for entry in lab.store.entries(0, 20)]
    kept = {line.stream: line.version for line in lines if line.original_text is not msgspec.UNSET}
    assert kept == {"handoff:h1": 1, "actor:agent:carol": 1}


@proves("LEDGER-SAID")
def test_original_text_never_changes_a_decision(lab: Lab) -> None:
    plain, with_text = Lab(), lab
    for original_text, target in ((None, plain), (b'{"status":"done","fence":99}', with_text)):
        target.ask(HUMAN, CreateTask("a", "A", ready=True), original_text=original_text)
        target.ask(ALICE, ClaimTask("A", "alice"), original_text=original_text)
        target.ask(ALICE, REFUSED, original_text=original_text)
    assert plain.task("A") == with_text.task("A")
    assert plain.lines() == with_text.lines()


@proves("REFUSAL-RECORDED")
def test_refusal_is_recorded_in_the_actors_stream_not_in_the_target(lab: Lab) -> None:
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
def test_repeated_refusal_adds_no_entry_within_its_minute(lab: Lab) -> None:
    for _ in range(5):
        assert lab.code(BOB, REFUSED) == "task_not_found"
    assert lab.store.head() == 1
    lab.clock.advance(60_000)
    lab.code(BOB, REFUSED)
    assert lab.store.head() == 2


@proves("REFUSAL-RECORDED")
def test_refusals_are_limited_per_actor_and_minute(lab: Lab) -> None:
    lab.batch(*(lab.request(BOB, NoteTask(f"no-{n}", "x")) for n in range(100)))
    for number in range(100, 200):
        lab.code(BOB, NoteTask(f"no-{number}", "x"))
    assert len(lab.refused(BOB)) == 60
    assert lab.code(ALICE, REFUSED) == "task_not_found"
    assert len(lab.refused(ALICE)) == 1, "each actor has its own"


@proves("REFUSAL-RECORDED")
def test_empty_claims_of_a_polling_agent_add_nothing(lab: Lab) -> None:
    for _ in range(10):
        assert lab.code(BOB, ClaimTask("", "bob")) == "nothing_ready"
    assert lab.store.head() == 0


@proves("REFUSAL-RECORDED", "ROLE-TABLE")
def test_refusal_names_the_refused_command(lab: Lab) -> None:
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
def test_hostile_name_is_refused_and_recorded_safely(lab: Lab, name: str) -> None:
    lab.do(HUMAN, CreateTask("a", "A", ready=True))
    commands: tuple[Command, ...] = (
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
def test_leases_are_stored_outside_the_ledger(lab: Lab) -> None:
    create_tasks(lab)
    head = lab.store.head()
    for _ in range(3):
        lab.do(ALICE, RenewLease("HELD", 1))
    assert lab.store.head() == head
    lease = lab.lease("HELD")
    assert lease is not None
    assert (lease.heartbeats, lease.expires_at) == (4, START + 1_000 + TTL)
    lab.do(ALICE, ReleaseTask("HELD"))
    assert lab.lease("HELD") is None


@proves("NAME-AOF-ID")
def test_daily_numbers_continue_across_batches_and_refusals(lab: Lab) -> None:
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
def test_chosen_number_is_skipped_within_its_batch(lab: Lab) -> None:
    answers = lab.batch(
        lab.request(HUMAN, CreateTask("chosen", "TASK-2026-02-09-002")),
        lab.request(HUMAN, CreateTask("one")),
        lab.request(HUMAN, CreateTask("two")),
    )
    assert [assert_accepted(answer).receipts[0].task[-3:] for answer in answers] == [
        "002",
        "001",
        "003",
    ]


@proves("NAME-ALIAS")
def test_aliases_bound_in_a_batch_resolve_in_it(lab: Lab) -> None:
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
def test_concurrent_adoptions_create_one_task(lab: Lab) -> None:
    adopt = AdoptTask("bead", "b")
    answers = lab.batch(lab.request(ALICE, adopt), lab.request(BOB, adopt))
    assert [assert_accepted(answer).receipts[0].task for answer in answers] == ["b", "b"]
    assert lab.lines() == [("task:b", "task.created")]


@proves("LEASE-HEARTBEAT")
def test_request_of_several_commands_counts_as_one_heartbeat(lab: Lab) -> None:
    create_tasks(lab)
    lab.do(ALICE, ReportOutcome("HELD", "done"), WarnTask("HELD", "missing_summary"))
    lease = lab.lease("HELD")
    assert lease is not None
    assert lease.heartbeats == 2
