"""Clocks that jump or stand still: no task has two holders, nothing is lost, work continues."""

from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, RenewLease, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.errors import Refusal
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.services.timers import LeaseExpiry, RetryPromotion
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock, new_id
from tests.crash.scenario import START
from tests.crash.stale_writes import ADA, LEA, TTL, accepted_stale_writes, reclaim_task
from tests.requirements import proves

pytestmark = proves("TIME-JUMPS")

DAY: Final = 86_400_000
BOB: Final = Actor("agent", "bob")


class ClockedHub:
    """Hub on a disk, with a clock that is set by hand."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock(START)
        store = SqliteStore.open(path, new_id)
        self.hub = Hub(Engine(store, self.clock, bytes(32)), new_id)

    def jump(self, milliseconds: int) -> None:
        """Set the clock, and run the duties several times."""
        self.clock.advance(milliseconds)
        for _ in range(3):
            LeaseExpiry(self.hub, Backoff()).run_once(self.clock.now())
            RetryPromotion(self.hub).run_once(self.clock.now())

    def task(self) -> TaskView:
        """Task and lease."""
        found = find_task(self.hub.store, "t")
        assert isinstance(found, TaskView)
        return found

    def code(self, actor: Actor, command: ClaimTask | NoteTask | RenewLease) -> str:
        """Code of a refusal; empty: accepted."""
        outcome = self.hub.engine.handle_now(self.hub.make_request(actor, command))
        return outcome.code if isinstance(outcome, Refusal) else ""


@pytest.fixture
def clocked(tmp_path: Path) -> Generator[ClockedHub]:
    """Hub with a task that ada holds; at the end its ledger must verify."""
    made = ClockedHub(tmp_path / "hub.db")
    made.hub.submit(LEA, CreateTask("Timed", id="t", ready=True))
    made.hub.submit(ADA, ClaimTask("t", agent="ada", ttl_ms=TTL))
    yield made
    assert list(check_ledger(made.hub.store, (), lambda _: None)) == []
    assert list(check_stored_states(made.hub.store, lambda _: None)) == []
    made.hub.close()


def test_jump_forward_expires_lease_once(clocked: ClockedHub) -> None:
    clocked.jump(DAY)
    assert clocked.task().lease is None
    assert clocked.code(ADA, NoteTask("t", "late", fence=1)) == "lease_lost"
    clocked.jump(TTL)
    assert clocked.code(BOB, ClaimTask("t", agent="bob", ttl_ms=TTL)) == ""
    assert (clocked.task().task.attempts, clocked.task().task.fence) == (2, 2)


def test_jump_back_keeps_the_holder(clocked: ClockedHub) -> None:
    clocked.jump(-DAY)
    assert clocked.code(BOB, ClaimTask("t", agent="bob")) != ""
    assert clocked.code(ADA, RenewLease("t", fence=1)) == ""
    clocked.jump(TTL // 2)
    assert clocked.code(ADA, NoteTask("t", "still here", fence=1)) == ""
    clocked.hub.submit(ADA, ReportOutcome("t", "done", fence=1, apply=True))
    assert clocked.task().task.status == "review"


@pytest.mark.parametrize("offset", [DAY, -DAY])
def test_jump_and_back_leaves_one_holder(clocked: ClockedHub, offset: int) -> None:
    clocked.jump(offset)
    clocked.code(BOB, ClaimTask("t", agent="bob", ttl_ms=TTL))
    clocked.jump(-offset)
    holders = [
        name
        for name, fence in (("ada", 1), ("bob", 2))
        if clocked.code(Actor("agent", name), RenewLease("t", fence=fence)) == ""
    ]
    held = clocked.task().lease
    assert holders == ([held.holder] if held else [])


def test_lease_claimed_by_fast_clock_expires_on_time(clocked: ClockedHub) -> None:
    """The clock was a day ahead when ada claimed; after it was corrected, her lease expires."""
    clocked.jump(-DAY)
    clocked.jump(2 * TTL)
    lease = clocked.task().lease
    assert lease is not None
    assert lease.holder == "ada"
    clocked.jump(DAY)
    assert clocked.task().lease is None


def test_stopped_clock_loses_and_doubles_nothing(clocked: ClockedHub) -> None:
    for number in range(20):
        assert clocked.code(ADA, NoteTask("t", f"note {number}", fence=1)) == ""
        clocked.jump(0)
    assert clocked.code(BOB, ClaimTask("t", agent="bob")) != ""
    clocked.hub.submit(ADA, ReportOutcome("t", "done", fence=1, apply=True))
    positions = [entry.position for entry in clocked.hub.store.entries(0, 1_000)]
    assert positions == list(range(1, len(positions) + 1))
    assert clocked.task().task.status == "review"


@pytest.mark.parametrize("jump", [DAY, -DAY, 0])
def test_stale_fence_stays_stale_after_any_jump(tmp_path: Path, jump: int) -> None:
    clocked = ClockedHub(tmp_path / "other.db")
    reclaim_task(clocked.hub, clocked.clock)
    clocked.clock.advance(jump)
    assert accepted_stale_writes(clocked.hub) == []
    clocked.hub.close()
