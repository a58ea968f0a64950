"""Clocks that jump or stand still: no task has two holders, nothing is lost, work goes on."""

from collections.abc import Generator
from pathlib import Path
from typing import Final

import pytest

from dragoman.core.actors import Actor
from dragoman.core.commands import ClaimTask, CreateTask, NoteTask, RenewLease, ReportOutcome
from dragoman.core.deadlines import Backoff
from dragoman.core.errors import Refusal
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.reads.ask import TaskView, find_task
from dragoman.engine.verifying.verify import check_ledger, check_views
from dragoman.services.promotion import Promotion
from dragoman.services.recovery import Recovery
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id
from tests.crash.stale import ADA, LEA, TTL, let_pass, reclaimed
from tests.crash.story import START
from tests.requirements import proves

pytestmark = proves("TIME-JUMPS")

DAY: Final = 86_400_000
BOB: Final = Actor("agent", "bob")


class Watch:
    """A hub on a disk, and the hand on its clock."""

    def __init__(self, path: Path) -> None:
        self.clock = HandClock(START)
        store = SqliteStore.open(path, new_id)
        self.hub = Hub(Engine(store, self.clock, bytes(32)), new_id)

    def jump(self, milliseconds: int) -> None:
        """The clock is set; then the duties run, again and again, as they do."""
        self.clock.advance(milliseconds)
        for _ in range(3):
            Recovery(self.hub, Backoff()).run_once(self.clock.now())
            Promotion(self.hub).run_once(self.clock.now())

    def task(self) -> TaskView:
        """The task and its lease."""
        found = find_task(self.hub.store, "t")
        assert isinstance(found, TaskView)
        return found

    def code(self, actor: Actor, command: ClaimTask | NoteTask | RenewLease) -> str:
        """The code of a refusal; empty: it was accepted."""
        outcome = self.hub.engine.handle_now(self.hub.request(actor, command))
        return outcome.code if isinstance(outcome, Refusal) else ""


@pytest.fixture
def watch(tmp_path: Path) -> Generator[Watch]:
    """Give a hub with a task that ada holds; at the end its ledger must verify."""
    made = Watch(tmp_path / "hub.db")
    made.hub.do(LEA, CreateTask("Timed", id="t", ready=True))
    made.hub.do(ADA, ClaimTask("t", agent="ada", ttl_ms=TTL))
    yield made
    assert list(check_ledger(made.hub.store, (), lambda _: None)) == []
    assert list(check_views(made.hub.store, lambda _: None)) == []
    made.hub.close()


def test_a_day_forward_ends_the_lease_once_and_the_next_holder_works_on(watch: Watch) -> None:
    watch.jump(DAY)
    assert watch.task().lease is None
    assert watch.code(ADA, NoteTask("t", "late", fence=1)) == "lease_lost"
    watch.jump(TTL)
    assert watch.code(BOB, ClaimTask("t", agent="bob", ttl_ms=TTL)) == ""
    assert (watch.task().task.attempts, watch.task().task.fence) == (2, 2)


def test_a_day_back_keeps_the_holder_and_lets_nobody_in(watch: Watch) -> None:
    watch.jump(-DAY)
    assert watch.code(BOB, ClaimTask("t", agent="bob")) != ""
    assert watch.code(ADA, RenewLease("t", fence=1)) == ""
    watch.jump(TTL // 2)
    assert watch.code(ADA, NoteTask("t", "still here", fence=1)) == ""
    watch.hub.do(ADA, ReportOutcome("t", "done", fence=1, apply=True))
    assert watch.task().task.status == "review"


@pytest.mark.parametrize("there", [DAY, -DAY])
def test_a_jump_and_back_again_leaves_one_holder(watch: Watch, there: int) -> None:
    watch.jump(there)
    watch.code(BOB, ClaimTask("t", agent="bob", ttl_ms=TTL))
    watch.jump(-there)
    holders = [
        name
        for name, fence in (("ada", 1), ("bob", 2))
        if watch.code(Actor("agent", name), RenewLease("t", fence=fence)) == ""
    ]
    held = watch.task().lease
    assert holders == ([held.holder] if held else [])


def test_a_claim_before_the_clock_was_set_right_ends_when_it_should_have(watch: Watch) -> None:
    """The clock was a day ahead when ada claimed; set right, ada dies, and her task comes back."""
    watch.jump(-DAY)
    watch.jump(2 * TTL)
    lease = watch.task().lease
    assert lease is not None
    assert lease.holder == "ada"
    watch.jump(DAY)
    assert watch.task().lease is None


def test_a_clock_that_stands_still_loses_and_doubles_nothing(watch: Watch) -> None:
    for number in range(20):
        assert watch.code(ADA, NoteTask("t", f"note {number}", fence=1)) == ""
        watch.jump(0)
    assert watch.code(BOB, ClaimTask("t", agent="bob")) != ""
    watch.hub.do(ADA, ReportOutcome("t", "done", fence=1, apply=True))
    positions = [entry.position for entry in watch.hub.store.entries(0, 1_000)]
    assert positions == list(range(1, len(positions) + 1))
    assert watch.task().task.status == "review"


@pytest.mark.parametrize("jump", [DAY, -DAY, 0])
def test_whatever_the_clock_does_a_stale_token_stays_stale(tmp_path: Path, jump: int) -> None:
    watch = Watch(tmp_path / "other.db")
    reclaimed(watch.hub, watch.clock)
    watch.clock.advance(jump)
    assert let_pass(watch.hub) == []
    watch.hub.close()
