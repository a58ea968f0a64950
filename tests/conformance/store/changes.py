"""Entries and rows for the suite, made by hand below the engine."""

from dragoman.core.attempt_state import Lease
from dragoman.engine.ports import Changes, NewEntry, Store, StreamRow, Transaction
from dragoman.ledger.entry import GENESIS, Entry, link_hash
from dragoman.ledger.stream_state import FOLD_VERSION, IndexRow

Shown = tuple[
    int,
    list[Entry],
    list[StreamRow],
    list[tuple[str, str, str]],
    dict[str, int],
    list[tuple[str, int, str]],
]

EMPTY: Shown = (0, [], [], [], {}, [])
"""Contents of an empty store, as `everything` returns them."""


def make_entry(stream: int, version: int, previous: bytes = GENESIS, text: str = "x") -> NewEntry:
    """Make an entry that continues its hash chain."""
    line = f'{{"version":{version},"text":"{text}"}}'.encode()
    return NewEntry(stream, version, "test.happened", line, previous, link_hash(previous, line))


def make_row(number: int, name: str, version: int = 1, index: IndexRow | None = None) -> StreamRow:
    """Make a row that only the store interprets."""
    return StreamRow(
        number, name, version, GENESIS, FOLD_VERSION, b"state", None, index or IndexRow()
    )


def make_lease(
    holder: str = "alice", fence: int = 1, session: str = "", expires_at: int = 9
) -> Lease:
    """Make a lease in which every number differs."""
    return Lease(holder, fence, 5, 4, expires_at, session, 3, 2, 6, 1)


def write(store: Store, changes: Changes) -> None:
    """Run a transaction that only writes."""
    store.transact(lambda session: session.write(changes))


def begin_stream(store: Store, name: str) -> int:
    """Create a stream with one entry, and return its number."""

    def work(session: Transaction) -> int:
        number = session.new_stream_number()
        session.write(Changes(entries=[make_entry(number, 1)], streams=[make_row(number, name)]))
        return number

    return store.transact(work)


def everything(store: Store) -> Shown:
    """Return everything that a store's readers show."""
    return (
        store.head(),
        store.entries(0, 1_000),
        store.rows(0, 1_000),
        store.aliases(("", ""), 1_000),
        store.status_counts(),
        store.list_items(("", 0), 1_000),
    )
