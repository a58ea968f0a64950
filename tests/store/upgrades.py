"""Stores of earlier versions: their tables, filled with a ledger of that time."""

from dragoman.core.actor import Actor
from dragoman.core.mail import PostMail
from dragoman.engine.engine import Engine
from dragoman.engine.hub import Hub
from dragoman.engine.ledger_slices import Finding
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.verify import check_ledger, check_stored_states
from dragoman.files.archives.ledger_loader import LedgerLoader
from dragoman.store.sqlite.migrate import MIGRATIONS
from dragoman.system.clock import ManualClock
from dragoman.system.ids import SequentialIds
from tests.ledger.released import START, golden_entries

LEDGERS: dict[int, tuple[str, ...]] = {
    1: ("v1", "v2"),
    2: ("v2", "v3"),
    3: ("v4", "v5"),
    4: ("v8", "v11"),
}
"""Schema version -> golden ledgers that need no later table."""

OLD = [
    (version, name)
    for version in range(1, len(MIGRATIONS))
    for name in LEDGERS.get(version, ("v9", "v10"))
]

TABLES = (
    *("streams", "entries", "leases", "names", "answers", "numbers"),
    *("lists", "handoffs", "logs"),
)
_NAMES_REQUESTS = 8
"""Schema version since which request ids are aliases."""


def cleanup_statements(version: int) -> tuple[str, ...]:
    """List the statements that remove rows which a schema version did not have."""
    return () if version >= _NAMES_REQUESTS else ("DELETE FROM names WHERE kind = 'request id'",)


COPY = "INSERT INTO {table} ({columns}) SELECT {columns} FROM {source}"


def fill(store: Store, name: str) -> None:
    """Load a golden ledger, with all its derived rows."""
    transplant = LedgerLoader(store, START)
    transplant.append([entry.line.encode() for entry in golden_entries(name)])
    transplant.restore_leases({})
    transplant.restore_answers([("actor:human:lea", "a key", b"its print", b"its answer")])


def write_letters(store: Store) -> None:
    """Send letters about a bead, in its thread and in another, and one about none."""
    engine = Engine(store, ManualClock(START), b"secret")
    hub, ada = Hub(engine, SequentialIds()), Actor("agent", "ada")
    for bead, thread in (("ol-1", "ol-1"), ("bead:ol-1", "afar"), ("ol-1", "afar"), ("", "afar")):
        hub.submit(ada, PostMail(("bob",), "\0", "x", bead=bead, thread=thread))


def positions_about_bead(store: Store) -> list[int]:
    """List the positions of letters about the bead in other threads."""
    return [place.position for place in store.list_page(ListQuery("bead:ol-1"))]


def problems(store: Store) -> list[Finding]:
    """List the findings of a verification."""
    return [
        *check_ledger(store, [], lambda _: None),
        *check_stored_states(store, lambda _: None),
    ]


def lines(store: Store) -> list[bytes]:
    return [entry.line for entry in store.entries(0, 10_000)]
