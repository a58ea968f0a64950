"""Entries and rows for the suite, made by hand below the engine."""

from msgspec.structs import replace

from dragoman.core.agent import AgentRecord
from dragoman.core.attempt_state import Lease
from dragoman.core.mail import Mail
from dragoman.core.task_state import Delegation, Task
from dragoman.engine.ports import Changes, NewEntry, Store, StreamRow, Transaction
from dragoman.ledger.entry import GENESIS, Entry, link_hash
from dragoman.ledger.indexes import IndexRow, index_row
from dragoman.ledger.stream_state import FOLD_VERSION, State, encode_state

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
    return Lease(holder, fence, 5, 4, expires_at, session, 3)


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


def fill_before_lists(store: Store) -> None:
    """Store an agent in a role, delegated tasks, and letters as they were without lists."""
    delegation = Delegation("whole", "boss", "eva", 9)
    base = Task("offered", "TASK-1", "a part", "ready", 1, 1, 1, delegation=delegation)
    letter = Mail("m", "ada", ("bob",), "th-1", "status.update", "s", "b", 1)
    states: dict[str, State] = {
        "agent:olga": AgentRecord("olga", "orchestrator", (), 1),
        "task:offered": base,
        "task:taken": replace(base, delegation=replace(delegation, state="accepted")),
        "task:ended": replace(base, status="cancelled"),
        "task:alone": replace(base, delegation=None),
        "mail:elsewhere": replace(letter, bead="offered"),
        "mail:there": replace(letter, bead="th-1"),
        "mail:about-nothing": letter,
    }

    def work(session: Transaction) -> None:
        changes = Changes()
        for name, state in states.items():
            number = session.new_stream_number()
            changes.entries.append(make_entry(number, 1))
            row = make_row(number, name, index=index_row(state, 1))
            changes.streams.append(replace(row, state=encode_state(state)))
        session.write(changes)

    store.transact(work)


BEFORE_LISTS = [
    ("bead:offered", 6, "mail:elsewhere"),
    ("offered:eva", 2, "task:offered"),
    ("role:orchestrator", 1, "agent:olga"),
]
"""List items that a migration derives from what `fill_before_lists` stores."""


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
