"""Very many tasks: claims and pages, memory, the start of a hub, and the check of a long ledger."""

import subprocess
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from time import perf_counter

from bench.callers import open_hub
from bench.hub import Caller, started
from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask, ReleaseTask, ReportOutcome
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.hub import Hub
from dragoman.engine.ports import TaskQuery
from dragoman.engine.queries.entries import all_entries
from dragoman.store.sqlite import SqliteStore
from dragoman.system.clock import new_id

MOST_BYTES = 300_000_000
"""Memory limit of a hub with very many tasks."""
READY_SECONDS = 2.0
"""After so long a hub with a long ledger is to be ready."""
_AGENT = Actor("agent", "swe-backend")
_PERSON = Actor("human", "reviewer")
_A_DAY = 86_400_000
_LONG_REST = Backoff(_A_DAY, _A_DAY)
_AT_ONCE = 500
_NOTES = 8
_VERIFY = ("-m", "dragoman", "verify", "--hashes", "--json", "--data")


class Board:
    """A store in which half of the tasks are ready, and the others rest for a day."""

    def __init__(self, hub: Hub, tasks: int) -> None:
        self._hub = hub
        names = [f"BOARD-{number}" for number in range(tasks)]
        for some in _chunks(names):
            hub.submit(
                _PERSON, *(CreateTask("an ordinary task", name, ready=True) for name in some)
            )
        for some in _chunks(names[::2]):
            hub.submit(_AGENT, *(ClaimTask(name, agent=_AGENT.name) for name in some))
            hub.submit(_AGENT, *(_failed(name) for name in some))

    def claims_per_second(self, seconds: float) -> float:
        """Claims a second of the next task, each followed by its release."""

        def once() -> None:
            claimed = self._hub.submit(_AGENT, ClaimTask("", agent=_AGENT.name)).receipts[0]
            self._hub.submit(_AGENT, ReleaseTask(claimed.task, fence=claimed.fence))

        return _rate(once, seconds)

    def pages_per_second(self, seconds: float) -> float:
        """Reads a second of the newest page of ready tasks."""
        store, query = self._hub.store, TaskQuery(status="ready")
        return _rate(lambda: store.task_page(query), seconds)


@contextmanager
def open_board(folder: Path, tasks: int) -> Generator[Board]:
    """Such a store in the data directory of a hub."""
    with open_hub(_store(folder)) as hub:
        yield Board(hub, tasks)


def in_a_gigabyte(folder: Path) -> float:
    """Hubs with such a board, at work on it, that fit into a gigabyte of memory."""
    with started(folder) as hub:
        caller = Caller(hub)
        for _ in range(_AT_ONCE):
            caller.make_ready()
            caller.look()
        return 1e9 / hub.memory()


def make_story(folder: Path, tasks: int) -> None:
    """A ledger in which so many tasks are in progress, with ten entries each."""
    names = [f"STORY-{number}" for number in range(tasks)]
    with open_hub(_store(folder)) as hub:
        for some in _chunks(names):
            hub.submit(
                _PERSON, *(CreateTask("an ordinary task", name, ready=True) for name in some)
            )
            hub.submit(
                _AGENT, *(ClaimTask(name, agent=_AGENT.name, ttl_ms=_A_DAY) for name in some)
            )
            for _ in range(_NOTES):
                hub.submit(_AGENT, *(NoteTask(name, "it goes on, as it should") for name in some))


def starts_per_second(folder: Path) -> float:
    """Starts a second of a hub on that ledger, one after the other."""
    begun = perf_counter()
    with started(folder) as hub:
        Caller(hub).until_ready()
        return 1 / (perf_counter() - begun)


def hashed_per_second(folder: Path) -> float:
    """Entries of that ledger per second whose lines are hashed, and nothing else."""
    store = _store(folder)
    chained = [(entry.previous, entry.line) for entry in all_entries(store)]
    store.close()
    begun = perf_counter()
    for previous, line in chained:
        sha256(previous + line).digest()
    return len(chained) / (perf_counter() - begun)


def verified_per_second(folder: Path) -> float:
    """Entries of that ledger per second that `dragoman verify --hashes` proves."""
    store = _store(folder)
    length = store.head()
    store.close()
    begun = perf_counter()
    subprocess.run([sys.executable, *_VERIFY, str(folder)], check=True, capture_output=True)
    return length / (perf_counter() - begun)


def _store(folder: Path) -> SqliteStore:
    return SqliteStore.open(folder / "dragoman.db", new_id)


def _failed(name: str) -> Command:
    return ReportOutcome(name, "failed", apply=True, backoff=_LONG_REST)


def _chunks(names: Sequence[str]) -> Generator[Sequence[str]]:
    for start in range(0, len(names), _AT_ONCE):
        yield names[start : start + _AT_ONCE]


def _rate(call: Callable[[], object], seconds: float) -> float:
    done, begun = 0, perf_counter()
    while perf_counter() < begun + seconds:
        call()
        done += 1
    return done / (perf_counter() - begun)
