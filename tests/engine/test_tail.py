"""The tail: what this process has written last, as the store has it; or nothing."""

from collections.abc import Callable

from dragoman.core.commands import CreateTask, NoteTask
from dragoman.engine.handle import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.tail import KEPT, KEPT_BYTES
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from dragoman.system.clock import HandClock
from dragoman.system.ids import CountingIds, new_id
from tests.engine.lab import HUMAN, START
from tests.requirements import proves

pytestmark = proves("ENGINE-TAIL")

MANY = 100


class Process:
    """A hub on a store that others may write to as well."""

    def __init__(self, store: MemoryStore, new_id: Callable[[], str]) -> None:
        self.store = store
        self.hub = Hub(Engine(store, HandClock(START), bytes(32)), new_id)

    def note(self, count: int = 1, text: str = "note") -> None:
        self.hub.do(HUMAN, *(NoteTask("one", f"{text} {n}") for n in range(count)))

    def tail(self, after: int, limit: int = MANY) -> list[Entry]:
        return self.hub.engine.tail.after(after, limit)


def process() -> Process:
    """One that has made a task."""
    one = Process(MemoryStore("tail"), CountingIds())
    one.hub.do(HUMAN, CreateTask("One", id="one"))
    return one


def test_it_has_what_was_committed_just_as_the_store_has_it() -> None:
    one = process()
    one.note(3)
    one.note(2)
    head = one.store.head()
    for after in range(head + 1):
        assert one.tail(after) == one.store.entries(after, MANY)
    assert [entry.position for entry in one.tail(1, 2)] == [2, 3]


def test_what_it_does_not_know_it_does_not_tell() -> None:
    one = process()
    assert one.tail(one.store.head()) == one.tail(one.store.head() + 1) == []
    assert Process(one.store, new_id).tail(0) == []


def test_a_write_without_an_entry_leaves_it_as_it_is() -> None:
    one = process()
    head = one.store.head()
    one.hub.engine.probe()
    assert one.tail(0) == one.store.entries(0, MANY)
    assert one.store.head() == head


def test_after_another_process_has_written_it_begins_anew() -> None:
    one = process()
    other = Process(one.store, new_id)
    other.note()
    between = one.store.head()
    one.note()
    assert one.tail(between - 2) == one.tail(between - 1) == []
    assert one.tail(between) == one.store.entries(between, MANY) != []


def test_it_keeps_so_many_at_most() -> None:
    one = process()
    for _ in range(KEPT // MANY + 1):
        one.note(MANY)
    head = one.store.head()
    assert one.tail(head - KEPT - 1, 1) == []
    assert one.tail(head - KEPT, KEPT) == one.store.entries(head - KEPT, KEPT)


def test_it_keeps_so_much_at_most() -> None:
    one = process()
    long = "x" * 20_000
    while sum(len(entry.line) for entry in one.store.entries(0, KEPT)) <= KEPT_BYTES + len(long):
        one.note(10, long)
    kept = one.tail(one.store.head() - 1)
    assert kept == one.store.entries(one.store.head() - 1, 1)
    assert one.tail(0) == []
