"""Rewind of a task: what is restored, what is kept, who may rewind, repeats."""

import pytest
from msgspec.structs import replace

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.attempt_state import Checkpoint, Report
from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.core.question_state import Question
from dragoman.core.task import restorable_state, without_attempt
from dragoman.core.task_state import (
    STATUS_CHANGES,
    RestoredState,
    RewindTask,
    StatusChange,
    Task,
    TaskLinked,
    TaskRewound,
    TaskUnblocked,
    status_change_of,
)
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
PAST = replace(
    task("T", "blocked", "alice", attempts=1, agents=("alice",)),
    title="as it was",
    body="the body of then",
    priority="high",
    reserved_for="alice",
    failures=2,
    obstacle="a key",
    reported=Report(1, "alice", "blocked", "stuck", ("a key",), {"x": 1}, at=NOW - 9),
    checkpoint=Checkpoint("MANUAL", COMMIT, "half", "the rest", by="alice", at=NOW - 8),
)
"""T when alice had reported it blocked."""


def after_third_entry(status: Status = "done", past: Task = PAST) -> World:
    """World in which T has changed since its third entry, at which it was `past`."""
    now = replace(
        task("T", status, "bob", attempts=3, agents=("alice", "bob")),
        aliases=("bead:b",),
        children=("U",),
        notes=4,
    )
    world = World(now)
    world.past["T", 3] = past
    return world


def test_rewind_restores_task_and_keeps_links_and_history() -> None:
    world = after_third_entry()
    decision = world.do(HUMAN, RewindTask("T", 3, COMMIT, "rewind/T-3", "wrong turn"), NOW + 5)
    assert events_of(decision) == [
        TaskRewound(
            "done", "blocked", 3, restorable_state(PAST), COMMIT, "rewind/T-3", "wrong turn"
        )
    ]
    assert decision.receipt.status == "blocked"
    found = world.tasks["T"]
    assert found == replace(
        PAST,
        attempts=3,
        fence=3,
        agents=("alice", "bob"),
        ended_by="bob",
        aliases=("bead:b",),
        children=("U",),
        notes=4,
        updated_at=NOW + 5,
        moved_at=NOW + 5,
        head_hash=COMMIT,
        questions=(Question("q1", PAST.obstacle, NOW + 5, kind="blocked"),),
        asked=1,
    )


def test_repeated_rewind_is_a_no_op() -> None:
    world = after_third_entry()
    world.do(HUMAN, RewindTask("T", 3))
    repeated = world.decide(HUMAN, RewindTask("T", 3))
    assert events_of(repeated) == []


def test_rewind_to_in_progress_makes_task_ready_for_its_agent() -> None:
    past = replace(PAST, status="in-progress", reserved_for="carol")
    world = after_third_entry(past=past)
    world.do(HUMAN, RewindTask("T", 3))
    found = world.tasks["T"]
    assert (found.status, found.assignee, found.reported) == ("ready", "carol", None)
    assert found.checkpoint == PAST.checkpoint


def test_rewind_ends_lease_of_holder() -> None:
    world = held()
    world.past["T", 1] = task("T")
    decision = world.do(HUMAN, RewindTask("T", 1))
    assert events_of(decision) == [
        TaskRewound("in-progress", "ready", 1, restorable_state(task("T")))
    ]
    assert world.leases == {}
    assert world.code(ALICE, ClaimTask("T", "alice")) == ""


def test_rewind_to_done_unblocks_dependents() -> None:
    world = after_third_entry("ready", past=replace(PAST, status="done", checkpoint=None))
    world.put(replace(world.tasks["T"], blocks=("W",)))
    world.put(replace(task("W"), blocked_by=("T",), open_blockers=("T",)))
    decision = world.do(HUMAN, RewindTask("T", 3))
    assert events_of(decision)[1:] == [TaskUnblocked("T", "done")]
    assert world.tasks["W"].open_blockers == ()


@proves("TASK-UNBLOCK")
def test_rewind_from_done_blocks_dependents_again() -> None:
    world = after_third_entry("done")
    world.put(replace(world.tasks["T"], blocks=("W", "X", "gone")))
    world.put(replace(task("W"), blocked_by=("T",)))
    world.put(replace(task("X", "done"), blocked_by=("T",)))

    decision = world.do(HUMAN, RewindTask("T", 3))

    assert decision.events[1:] == (("task:W", TaskLinked("blocked-by", "T", open=True)),)
    assert (world.tasks["W"].blocked_by, world.tasks["W"].open_blockers) == (("T",), ("T",))
    assert world.code(ALICE, ClaimTask("W", "alice")) == "blocked_by_dependency"


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
def test_unauthorized_or_invalid_rewind_is_refused(
    actor: Actor, command: RewindTask, code: str
) -> None:
    assert after_third_entry().code(actor, command) == code


def test_orchestrator_may_not_rewind_own_work_to_done() -> None:
    world = after_third_entry("ready", past=replace(PAST, status="done"))
    assert world.code(ORCHESTRATOR, RewindTask("T", 3)) == ""
    world.put(replace(world.tasks["T"], assignee=ORCHESTRATOR.name))
    answer = world.decide(ORCHESTRATOR, RewindTask("T", 3))
    assert isinstance(answer, Refusal)
    assert (answer.code, "may not make it done again" in answer.detail) == ("not_authorized", True)
    assert world.code(HUMAN, RewindTask("T", 3)) == ""


def test_rewind_counts_as_status_change() -> None:
    event = TaskRewound("done", "ready", 1, RestoredState("ready", "t"), reason="why")
    assert status_change_of(event) == StatusChange("done", "ready", "why")
    assert status_change_of(TaskUnblocked("T", "done")) is None
    assert len(STATUS_CHANGES) == 4


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
def test_rewind_before_handoff_closes_it(world: World, past: Task) -> None:
    world.past["T", 1] = past
    world.do(HUMAN, RewindTask("T", 1))
    ended = world.handoffs["H"]
    assert (ended.status, world.tasks["T"].handoff) == ("closed", None)
    assert ended.rejection is not None
    assert (ended.rejection.by, ended.rejection.detail) == ("hub", "T was rewound")
    # The rewind takes precedence: the end of the handoff reassigns nothing.
    assert restorable_state(world.tasks["T"]) == without_attempt(restorable_state(past))


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
def test_rewind_before_handoff_removes_recipient_from_chain(
    world: World, owner: str, chain: tuple[str, ...]
) -> None:
    world.past["T", 1] = replace(task("T", "ready", owner), reserved_for=owner)
    world.do(HUMAN, RewindTask("T", 1))
    assert (world.tasks["T"].assignee, world.tasks["T"].chain) == (owner, chain)
    assert world.handoffs["H"].owners == chain


@proves("REWIND-HANDOFF", "ACP-CHAIN")
def test_rewind_to_end_with_recipient_keeps_chain() -> None:
    world = activated()
    world.past["T", 1] = replace(task("T", "done", "bob"), reserved_for="bob")
    world.do(HUMAN, RewindTask("T", 1))
    assert world.handoffs["H"].status == "closed"
    assert world.tasks["T"].chain == world.handoffs["H"].owners == ("alice", "bob")


@proves("REWIND-HANDOFF")
@pytest.mark.parametrize(("world", "owner"), [(activated(), "bob"), (offered(), "alice")])
def test_rewind_with_same_owner_keeps_handoff(world: World, owner: str) -> None:
    before = world.handoffs["H"].status
    past = replace(task("T", "in-progress", owner), reserved_for=owner, title="as it was")
    world.past["T", 1] = past
    world.do(HUMAN, RewindTask("T", 1))
    assert (world.tasks["T"].title, world.tasks["T"].status) == ("as it was", "ready")
    assert (world.handoffs["H"].status, world.tasks["T"].handoff is None) == (before, False)


@proves("TASK-REOPEN")
@pytest.mark.parametrize("status", ["done", "cancelled"])
def test_ended_task_is_reopened_as_it_was_before(status: Status) -> None:
    world = after_third_entry(status)
    decision = world.do(HUMAN, RewindTask("T", 0, reason="not dry"))
    (rewound,) = events_of(decision)
    assert isinstance(rewound, TaskRewound)
    assert (rewound.version, rewound.to, rewound.reason) == (3, "blocked", "not dry")
    again = world.decide(HUMAN, RewindTask("T", 0))
    assert again == Refusal(
        "invalid_transition", "T is blocked: only what is done or cancelled can be reopened"
    )


@proves("TASK-REOPEN")
def test_agent_reopens_nothing() -> None:
    assert after_third_entry().code(ALICE, RewindTask("T", 0)) == "not_authorized"
