"""Rewinding: what comes back, what stays, who may, and that doing it twice does it once."""

import pytest
from msgspec.structs import replace

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, RewindTask
from dragoman.core.deciding.tasks.rewinding import at_rest, restored
from dragoman.core.errors import Refusal
from dragoman.core.events import Restored, Status, TaskLinked, TaskRewound, TaskUnblocked
from dragoman.core.states.moves import MOVES, Move, move_of
from dragoman.core.states.task import Checkpoint, Reported, Task
from tests.core.handoffs import accepted, activated, offered
from tests.core.world import (
    ALICE,
    COORDINATOR,
    HUMAN,
    NOW,
    OBSERVER,
    ORCHESTRATOR,
    World,
    events_of,
    held,
    task,
)
from tests.requirements import proves

pytestmark = proves("REWIND-STATE")

COMMIT = "0a1b" * 10
THEN = replace(
    task("T", "blocked", "alice", attempts=1, agents=("alice",)),
    title="as it was",
    body="the body of then",
    priority="high",
    reserved_for="alice",
    failures=2,
    obstacle="a key",
    reported=Reported(1, "alice", "blocked", NOW - 9, "stuck", ("a key",), {"x": 1}),
    checkpoint=Checkpoint("alice", NOW - 8, "MANUAL", COMMIT, "half", "the rest"),
)
"""T when alice had given up on it."""


def later(status: Status = "done", past: Task = THEN) -> World:
    """T some time after its third entry, which left it as `past` says."""
    now = replace(
        task("T", status, "bob", attempts=3, agents=("alice", "bob")),
        aliases=("bead:b",),
        children=("U",),
        notes=4,
    )
    world = World(now)
    world.past["T", 3] = past
    return world


def test_the_task_is_as_it_was_and_what_concerns_others_stays() -> None:
    world = later()
    decision = world.do(HUMAN, RewindTask("T", 3, COMMIT, "rewind/T-3", "wrong turn"), NOW + 5)
    assert events_of(decision) == [
        TaskRewound("done", "blocked", 3, restored(THEN), COMMIT, "rewind/T-3", "wrong turn")
    ]
    assert decision.receipt.status == "blocked"
    found = world.tasks["T"]
    assert found == replace(
        THEN,
        attempts=3,
        fence=3,
        agents=("alice", "bob"),
        aliases=("bead:b",),
        children=("U",),
        notes=4,
        updated_at=NOW + 5,
        moved_at=NOW + 5,
        head_hash=COMMIT,
    )


def test_a_second_time_changes_nothing() -> None:
    world = later()
    world.do(HUMAN, RewindTask("T", 3))
    again = world.ask(HUMAN, RewindTask("T", 3))
    assert events_of(again) == []


def test_work_that_was_under_way_is_ready_for_whom_it_is_meant() -> None:
    past = replace(THEN, status="in-progress", reserved_for="carol")
    world = later(past=past)
    world.do(HUMAN, RewindTask("T", 3))
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.reported) == ("ready", "carol", None)
    assert found.checkpoint == THEN.checkpoint


def test_whoever_works_on_it_loses_it() -> None:
    world = held()
    world.past["T", 1] = task("T")
    decision = world.do(HUMAN, RewindTask("T", 1))
    assert events_of(decision) == [TaskRewound("in-progress", "ready", 1, restored(task("T")))]
    assert world.leases == {}
    assert world.code(ALICE, ClaimTask("T", "alice")) == ""


def test_who_waited_for_it_is_let_go_when_it_is_done_again() -> None:
    world = later("ready", past=replace(THEN, status="done", checkpoint=None))
    world.put(replace(world.tasks["T"], blocks=("W",)))
    world.put(replace(task("W"), blocked_by=("T",), open_blockers=("T",)))
    decision = world.do(HUMAN, RewindTask("T", 3))
    assert events_of(decision)[1:] == [TaskUnblocked("T", "done")]
    assert world.tasks["W"].open_blockers == ()


@proves("TASK-UNBLOCK")
def test_who_was_let_go_by_its_end_waits_again() -> None:
    world = later("done")
    world.put(replace(world.tasks["T"], blocks=("W", "X", "gone")))
    world.put(replace(task("W"), blocked_by=("T",)))
    world.put(replace(task("X", "done"), blocked_by=("T",)))

    decision = world.do(HUMAN, RewindTask("T", 3))

    assert decision.events[1:] == (("task:W", TaskLinked("blocked-by", "T", open=True)),)
    assert (world.tasks["W"].blocked_by, world.tasks["W"].open_blockers) == (("T",), ("T",))
    assert world.code(ALICE, ClaimTask("W", "alice")) == "waits_for"


@proves("REFUSAL-CODES")
@pytest.mark.parametrize(
    ("actor", "command", "code"),
    [
        (HUMAN, RewindTask("nowhere", 3), "task_not_found"),
        (HUMAN, RewindTask("T", 4), "invalid_field"),
        (HUMAN, RewindTask("T", 3, "HEAD~1"), "invalid_field"),
        (HUMAN, RewindTask("T", 3, branch="x" * 501), "invalid_field"),
        (HUMAN, RewindTask("T", 3, reason="x" * 4_001), "invalid_field"),
        (HUMAN, RewindTask("T", 3, "f" * 64), ""),
        (ORCHESTRATOR, RewindTask("bead:b", 3), ""),
        (COORDINATOR, RewindTask("T", 3), "not_authorized"),
        (OBSERVER, RewindTask("T", 3), "not_authorized"),
        (ALICE, RewindTask("T", 3), "not_authorized"),
    ],
)
def test_who_may_and_what_is_refused(actor: Actor, command: RewindTask, code: str) -> None:
    assert later().code(actor, command) == code


def test_an_orchestrator_does_not_make_its_own_work_done_again() -> None:
    world = later("ready", past=replace(THEN, status="done"))
    assert world.code(ORCHESTRATOR, RewindTask("T", 3)) == ""
    world.put(replace(world.tasks["T"], assignee=ORCHESTRATOR.name))
    answer = world.ask(ORCHESTRATOR, RewindTask("T", 3))
    assert isinstance(answer, Refusal)
    assert (answer.code, "may not make it done again" in answer.detail) == ("not_authorized", True)
    assert world.code(HUMAN, RewindTask("T", 3)) == ""


def test_a_rewind_is_a_move_like_the_others() -> None:
    event = TaskRewound("done", "ready", 1, Restored("ready", "t"), reason="why")
    assert move_of(event) == Move("done", "ready", "why")
    assert move_of(TaskUnblocked("T", "done")) is None
    assert len(MOVES) == 4


@proves("REWIND-HANDOFF")
@pytest.mark.parametrize(
    ("world", "past"),
    [
        (activated(), task("T")),
        (activated(), task("T", "in-progress", "alice")),
        (accepted(), task("T")),
        (accepted(), task("T", "done", "alice")),
    ],
)
def test_a_handoff_ends_when_its_task_goes_back_behind_it(world: World, past: Task) -> None:
    world.past["T", 1] = past
    world.do(HUMAN, RewindTask("T", 1))
    ended = world.handoffs["H"]
    assert (ended.status, world.tasks["T"].handoff) == ("closed", None)
    assert ended.rejection is not None
    assert (ended.rejection.by, ended.rejection.detail) == ("hub", "T was rewound")
    # The rewind stands: nobody gets the task by the end of the handoff.
    assert restored(world.tasks["T"]) == at_rest(restored(past))


@proves("REWIND-HANDOFF", "ACP-CHAIN")
@pytest.mark.parametrize(
    ("world", "owner", "chain"),
    [
        (activated(), "alice", ("alice",)),
        (activated(), "", ("alice",)),
        (activated(), "carol", ("alice", "carol")),
        (accepted(), "carol", ("alice", "carol")),
    ],
)
def test_and_its_recipient_is_out_of_the_chain_then(
    world: World, owner: str, chain: tuple[str, ...]
) -> None:
    world.past["T", 1] = replace(task("T", "ready", owner), reserved_for=owner)
    world.do(HUMAN, RewindTask("T", 1))
    assert (world.tasks["T"].assignee, world.tasks["T"].chain) == (owner, chain)
    assert world.handoffs["H"].owners == chain


@proves("REWIND-HANDOFF", "ACP-CHAIN")
def test_but_not_where_what_has_ended_is_still_its() -> None:
    world = activated()
    world.past["T", 1] = replace(task("T", "done", "bob"), reserved_for="bob")
    world.do(HUMAN, RewindTask("T", 1))
    assert world.handoffs["H"].status == "closed"
    assert world.tasks["T"].chain == world.handoffs["H"].owners == ("alice", "bob")


@proves("REWIND-HANDOFF")
@pytest.mark.parametrize(("world", "owner"), [(activated(), "bob"), (offered(), "alice")])
def test_and_stays_where_the_task_is_still_with_the_same(world: World, owner: str) -> None:
    before = world.handoffs["H"].status
    was = replace(task("T", "in-progress", owner), reserved_for=owner, title="as it was")
    world.past["T", 1] = was
    world.do(HUMAN, RewindTask("T", 1))
    assert (world.tasks["T"].title, world.tasks["T"].status) == ("as it was", "ready")
    assert (world.handoffs["H"].status, world.tasks["T"].handoff is None) == (before, False)
