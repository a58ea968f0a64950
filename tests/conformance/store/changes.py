"""Changes for the suite: entries and rows made by hand, below the engine."""

from dragoman.core.lease import Lease
from dragoman.engine.ports import Changes, NewEntry, Row, Session, Store
from dragoman.ledger.chain import GENESIS, link_hash
from dragoman.ledger.entry import Entry
from dragoman.ledger.views import FOLD, Shelf

Shown = tuple[int, list[Entry], list[Row], list[tuple[str, str, str]], dict[str, int]]

EMPTY: Shown = (0, [], [], [], {})
"""What `everything` says of an empty store."""


def an_entry(stream: int, version: int, previous: bytes = GENESIS, text: str = "x") -> NewEntry:
    """An entry that fits its chain."""
    line = f'{{"version":{version},"text":"{text}"}}'.encode()
    return NewEntry(stream, version, "test.happened", line, previous, link_hash(previous, line))


def a_row(number: int, name: str, version: int = 1, shelf: Shelf | None = None) -> Row:
    """A row that only the store looks at."""
    return Row(number, name, version, GENESIS, FOLD, b"state", None, shelf or Shelf())


def a_lease(holder: str = "alice", fence: int = 1, session: str = "", expires_at: int = 9) -> Lease:
    """A lease with telling numbers."""
    return Lease(holder, fence, 5, 4, expires_at, session, 3)


def write(store: Store, changes: Changes) -> None:
    """A transaction that only writes."""
    store.transact(lambda session: session.write(changes))


def begin_stream(store: Store, name: str) -> int:
    """A stream with one entry; its number."""

    def work(session: Session) -> int:
        number = session.new_stream()
        session.write(Changes(entries=[an_entry(number, 1)], streams=[a_row(number, name)]))
        return number

    return store.transact(work)


def everything(store: Store) -> Shown:
    """All that a store shows."""
    return (
        store.head(),
        store.entries(0, 1_000),
        store.rows(0, 1_000),
        store.names(("", ""), 1_000),
        store.counts(),
    )
