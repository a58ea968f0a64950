"""Mutant builds: the checks that the real hub passes detect each of them.

Builds that answer before the commit or send no keys are in test_kill.py.
"""

import threading
from collections.abc import Callable, Collection, Generator
from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.core.task_state import CreateTask
from dragoman.core.trace import RecordTrace
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.request import Outcome, Request
from dragoman.engine.subscribe import CommitHints, follow
from dragoman.ledger.entry import Entry
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock, new_id
from tests.crash.scenario import START
from tests.crash.stale_writes import LEA, WRITES, accepted_stale_writes, reclaim_task
from tests.requirements import proves

pytestmark = proves("CRASH-TEETH")


# --- without fencing


class Unfenced(Engine):
    """Engine that ignores fences."""

    def handle_now(self, request: Request) -> Outcome:
        """Handle the request without its fence."""
        commands = tuple(
            replace(command, fence=None) if hasattr(command, "fence") else command
            for command in request.commands
        )
        return super().handle_now(replace(request, commands=commands))


@pytest.mark.parametrize(("engine", "is_sound"), [(Engine, True), (Unfenced, False)])
def test_engine_without_fencing_is_detected(
    tmp_path: Path, engine: type[Engine], is_sound: bool
) -> None:
    clock = ManualClock(START)
    hub = Hub(engine(SqliteStore.open(tmp_path / "hub.db", new_id), clock, bytes(32)), new_id)
    reclaim_task(hub, clock)
    passed = accepted_stale_writes(hub)
    hub.close()
    assert (passed == []) is is_sound
    assert set(passed) <= set(WRITES)


# --- with a lost wake-up


class CommittingStore(SqliteStore):
    """Store that commits something whenever a reader has reached its end.

    That is the moment between the last read and the sleep, in which a faulty reader loses its hint.
    """

    commit: Callable[[], object] | None = None
    left = 5

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Read a page; after the last one, commit."""
        page = super().entries(after, limit, until=until)
        if len(page) < limit and self.left and self.commit is not None:
            self.left -= 1
            self.commit()
        return page


class HintWaiter:
    """Waits for hints, and counts the sleeps from which it could never be woken."""

    def __init__(self, store: Store, hints: CommitHints) -> None:
        self._store = store
        self._hinted = threading.Event()
        self.seen = 0
        self.overslept = 0
        hints.subscribe(self.hint)

    def hint(self, streams: Collection[str]) -> None:
        """Note a commit. (An `OnCommit`.)"""
        del streams
        self._hinted.set()

    def __call__(self) -> bool:
        """Sleep until there is a hint; false at the end of the test."""
        return self.sleep()

    def sleep(self) -> bool:
        """Clear the hint after the sleep and before the next read."""
        if not self._hinted.is_set():
            self.overslept += self._store.head() > self.seen
            return False
        self._hinted.clear()
        return True


class LossyWaiter(HintWaiter):
    """Clears the hint before it sleeps: a commit since the last read is lost."""

    def __call__(self) -> bool:
        """Clear, then sleep."""
        self._hinted.clear()
        return self.sleep()


@pytest.fixture
def committing_store(tmp_path: Path) -> Generator[tuple[CommittingStore, CommitHints]]:
    """Store that commits after every read, and its hints."""
    hints = CommitHints()
    store = CommittingStore.open(tmp_path / "hub.db", new_id)
    assert isinstance(store, CommittingStore)
    hub = Hub(Engine(store, ManualClock(START), bytes(32), on_commit=hints.notify), new_id)
    hub.submit(LEA, CreateTask("Watched", id="one"))

    def commit() -> None:
        event = f"01890a5d-ac96-774b-bcce-{store.left:012x}"
        hub.submit(LEA, RecordTrace(event, "s-1", "THOUGHT", {"n": store.left}, "d", task="one"))

    store.commit = commit
    yield store, hints
    hub.close()


@pytest.mark.parametrize(("waiter_type", "is_sound"), [(HintWaiter, True), (LossyWaiter, False)])
def test_follower_that_loses_wakeup_is_detected(
    committing_store: tuple[CommittingStore, CommitHints],
    waiter_type: type[HintWaiter],
    is_sound: bool,
) -> None:
    store, hints = committing_store
    wait = waiter_type(store, hints)
    for entry in follow(store.entries, 0, wait):
        wait.seen = entry.position
    assert (wait.overslept == 0) is is_sound
    assert (wait.seen == store.head()) is is_sound
