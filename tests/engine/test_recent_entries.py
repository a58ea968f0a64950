"""Recent entries: what this process wrote last, equal to the store, or nothing."""

from collections.abc import Callable

from dragoman.core.task_state import CreateTask, NoteTask
from dragoman.engine.group_commit import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.subscribe import MAX_RECENT, MAX_RECENT_BYTES
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import ManualClock, SequentialIds, new_id
from tests.engine.lab import HUMAN, START
from tests.requirements import proves

pytestmark = proves("ENGINE-TAIL")

MANY = 100


class Process:
    """Hub on a store that others may write to as well."""

    def __init__(self, store: MemoryStore, new_id: Callable[[], str]) -> None:
        self.store = store
        self.hub = Hub(Engine(store, ManualClock(START), bytes(32)), new_id)

    def note(self, count: int = 1, text: str = "note") -> None:
        self.hub.submit(HUMAN, *(NoteTask("one", f"{text} {n}") for n in range(count)))

    def recent(self, after: int, limit: int = MANY) -> list[Entry]:
        return self.hub.engine.recent_entries.after(after, limit)


def new_process() -> Process:
    """Make a hub with one task."""
    one = Process(MemoryStore("tail"), SequentialIds())
    one.hub.submit(HUMAN, CreateTask("One", id="one"))
    return one


def test_recent_entries_equal_those_of_the_store() -> None:
    one = new_process()
    one.note(3)
    one.note(2)
    head = one.store.head()
    for after in range(head + 1):
        assert one.recent(after) == one.store.entries(after, MANY)
    assert [entry.position for entry in one.recent(1, 2)] == [2, 3]


def test_unknown_positions_return_nothing() -> None:
    one = new_process()
    assert one.recent(one.store.head()) == one.recent(one.store.head() + 1) == []
    assert Process(one.store, new_id).recent(0) == []


def test_write_without_an_entry_changes_nothing() -> None:
    one = new_process()
    head = one.store.head()
    one.hub.engine.probe_write()
    assert one.recent(0) == one.store.entries(0, MANY)
    assert one.store.head() == head


def test_write_by_another_process_restarts_the_cache() -> None:
    one = new_process()
    other = Process(one.store, new_id)
    other.note()
    between = one.store.head()
    one.note()
    assert one.recent(between - 2) == one.recent(between - 1) == []
    assert one.recent(between) == one.store.entries(between, MANY) != []


def test_number_of_recent_entries_is_bounded() -> None:
    one = new_process()
    for _ in range(MAX_RECENT // MANY + 1):
        one.note(MANY)
    head = one.store.head()
    assert one.recent(head - MAX_RECENT - 1, 1) == []
    assert one.recent(head - MAX_RECENT, MAX_RECENT) == one.store.entries(
        head - MAX_RECENT, MAX_RECENT
    )


def test_bytes_of_recent_entries_are_bounded() -> None:
    one = new_process()
    long = "x" * 20_000
    while sum(
        len(entry.line) for entry in one.store.entries(0, MAX_RECENT)
    ) <= MAX_RECENT_BYTES + len(long):
        one.note(10, long)
    kept = one.recent(one.store.head() - 1)
    assert kept == one.store.entries(one.store.head() - 1, 1)
    assert one.recent(0) == []
