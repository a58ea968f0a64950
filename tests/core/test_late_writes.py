"""Late writes: an agent that lost its lease is refused, also where the task is assigned to it."""

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import (
    CheckpointTask,
    ClaimTask,
    EndAttempt,
    ExpireLease,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.base import Command, Status
from dragoman.core.handoff.state import RejectHandoff
from dragoman.core.task_state import (
    AliasTask,
    CreateTask,
    EditTask,
    LinkTask,
    MoveTask,
    NoteTask,
    RewindTask,
    UpdateTask,
)
from tests.core.handoffs import activated
from tests.core.world import (
    ALICE,
    BOB,
    COORDINATOR,
    HUB,
    HUMAN,
    NOW,
    ORCHESTRATOR,
    TTL,
    World,
    with_fields,
)
from tests.requirements import proves

pytestmark = proves("LEASE-LATE")

LATE_WRITES: dict[str, Command] = {
    "update": UpdateTask("T", progress="still at it"),
    "update blocked": UpdateTask("T", "blocked", blockers=("x",)),
    "update review": UpdateTask("T", "review", notes="finished"),
    "update done": UpdateTask("T", "done", notes="finished"),
    "move to done": MoveTask("T", "done"),
    "note": NoteTask("T", "still at it"),
    "alias": AliasTask("T", "bead:b"),
    "link": LinkTask("T", "blocked-by", "U"),
    "edit": EditTask("T", title="mine"),
    "heartbeat": RenewLease("T"),
    "report": ReportOutcome("T", "failed", "late", apply=True),
    "release": ReleaseTask("T"),
    "checkpoint": CheckpointTask("T", "HANDOVER"),
    "end": EndAttempt("T"),
}

TAKEN_BY: dict[str, tuple[Actor, Command, int]] = {
    "expiry": (HUB, ExpireLease("T"), NOW + TTL),
    "hub": (HUB, ReleaseTask("T", "hub_stopped"), NOW),
    "ready": (ORCHESTRATOR, MoveTask("T", "ready"), NOW),
    "blocked": (HUMAN, MoveTask("T", "blocked", "legal says stop"), NOW),
    "review": (COORDINATOR, MoveTask("T", "review"), NOW),
    "deadletter": (HUMAN, MoveTask("T", "deadletter"), NOW),
    "cancelled": (HUMAN, MoveTask("T", "cancelled"), NOW),
}


def assigned() -> World:
    """World in which alice holds a task that is assigned to her, without review."""
    world = World()
    world.do(HUMAN, CreateTask("another", id="U"))
    world.do(
        HUMAN, CreateTask("a task", id="T", ready=True, assignee="alice", review_required=False)
    )
    world.do(ALICE, ClaimTask("T", "alice"))
    return world


@pytest.mark.parametrize("write", LATE_WRITES)
@pytest.mark.parametrize("way", TAKEN_BY)
def test_write_after_a_lost_lease_is_refused_although_the_task_is_assigned_to_its_sender(
    way: str, write: str
) -> None:
    world = assigned()
    actor, command, now = TAKEN_BY[way]
    world.do(actor, command, now)
    assert world.tasks["T"].assignee == "alice"
    assert world.code(ALICE, LATE_WRITES[write], now + 1) == "lease_lost"


@pytest.mark.parametrize("write", LATE_WRITES)
def test_write_before_the_recovery_of_an_expired_lease_is_refused(write: str) -> None:
    assert assigned().code(ALICE, LATE_WRITES[write], NOW + TTL) == "lease_lost"


def test_owner_may_write_again_after_a_new_claim() -> None:
    world = assigned()
    world.do(HUB, ExpireLease("T"), NOW + TTL)
    later = NOW + 10 * TTL
    world.do(ALICE, ClaimTask("T", "alice"), later)
    assert world.code(ALICE, LATE_WRITES["update"], later) == ""


@pytest.mark.parametrize(
    ("end", "status"),
    [
        (UpdateTask("T", "blocked", blockers=("x",)), "blocked"),
        (ReportOutcome("T", "blocked", blockers=("x",), apply=True), "blocked"),
        (ReportOutcome("T", "partial", apply=True), "review"),
        (ReleaseTask("T"), "ready"),
    ],
)
def test_owner_that_ended_its_attempt_itself_may_write(end: Command, status: Status) -> None:
    world = assigned()
    world.do(ALICE, end)
    assert world.tasks["T"].status == status
    assert world.code(ALICE, LATE_WRITES["update"]) == ""


def test_report_that_an_expired_lease_applies_is_the_end_by_its_agent() -> None:
    world = assigned()
    world.do(ALICE, ReportOutcome("T", "blocked", "", ("x",)))
    world.do(HUB, ExpireLease("T"), NOW + TTL)
    assert world.code(ALICE, MoveTask("T", "ready"), NOW + TTL) == ""


def test_sender_of_a_handoff_that_is_rejected_has_lost_its_lease_long_ago() -> None:
    world = activated()
    world.do(BOB, RejectHandoff("H", "other", "not for me"))
    assert (world.tasks["T"].status, world.tasks["T"].assignee) == ("ready", "alice")
    assert world.code(ALICE, LATE_WRITES["update"]) == "lease_lost"


def test_rewind_takes_the_work_from_its_holder() -> None:
    world = assigned()
    past = with_fields(assigned(), status="blocked").tasks["T"]
    world.past["T", 1] = past
    world.do(HUMAN, RewindTask("T", 1))
    assert (world.tasks["T"].status, world.tasks["T"].assignee) == ("blocked", "alice")
    assert world.code(ALICE, MoveTask("T", "ready")) == "lease_lost"
