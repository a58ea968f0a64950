"""The engine on a store that is closed and reopened equals one on the memory store."""

from collections.abc import Callable
from pathlib import Path

from dragoman.core.attempt import ClaimTask, EndAttempt, ExpireLease, RenewLease, ReportOutcome
from dragoman.core.task_state import AdoptTask, CreateTask, MoveTask, NoteTask
from dragoman.engine.ports import Store
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import ManualClock
from tests.conformance.store.hubs import ALICE, ANN, BOB, HUB, NOW, Hub
from tests.conformance.store.oracle import compare
from tests.requirements import proves
from tests.store.sqlite.files import open_store

MINUTE = 60_000


class CountedIds:
    """Request ids that are equal in every run."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self) -> str:
        self._count += 1
        return f"request-{self._count}"


def run_work(reopen: Callable[[], Store]) -> int:
    """Run work, a crash, a recovery and a review, and reopen the store for each part."""
    clock, new_id = ManualClock(NOW), CountedIds()

    hub = Hub(reopen(), clock, new_id)
    first = hub.do(ANN, CreateTask("the first", ready=True, priority="high"), key="k1").task
    second = hub.do(ANN, CreateTask("the second", ready=True, blocked_by=(first,))).task
    hub.do(ANN, AdoptTask("bead", "ol-1", "born elsewhere"), NoteTask("ol-1", "seen"))
    hub.do(ALICE, ClaimTask("", agent="alice", session="s-alice"))
    clock.advance(MINUTE)
    hub.do(ALICE, RenewLease(first))

    hub = Hub(reopen(), clock, new_id)
    hub.ask(BOB, MoveTask(first, to="done"))
    clock.advance(6 * MINUTE)
    assert hub.store.expired_leases(clock.now(), 10) == [f"task:{first}"]
    hub.do(HUB, ExpireLease(first))
    clock.advance(60 * MINUTE)

    hub = Hub(reopen(), clock, new_id)
    assert hub.do(BOB, ClaimTask("", agent="bob", session="s-bob")).task == first
    hub.do(BOB, ReportOutcome(first, outcome="done", notes="works"))
    hub.do(BOB, EndAttempt(first, session="s-bob"))
    assert hub.ask(ANN, CreateTask("the first", ready=True, priority="high"), key="k1")
    hub.do(ANN, MoveTask(first, to="done"))
    assert hub.do(BOB, ClaimTask(second, agent="bob", session="s-bob")).attempt == 1
    return clock.now()


@proves("STORE-CONTRACT", "LEASE-RECOVERY")
def test_reopened_store_continues_like_the_memory_store(tmp_path: Path) -> None:
    opened: list[SqliteStore] = []
    memory = MemoryStore("ledger")

    def reopen() -> Store:
        for store in opened:
            store.close()
        opened.append(open_store(tmp_path / "hub.db"))
        return opened[-1]

    now = run_work(reopen)
    assert run_work(lambda: memory) == now

    compare(reopen(), memory, ("alice", "bob"), now)
    assert opened[-1].head() > 10
    opened[-1].close()
