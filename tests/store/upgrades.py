"""Stores of earlier versions, and made-up migrations of a coming one."""

from dragoman.engine.ports import DurableStore, Store
from dragoman.engine.verify import Finding, check_ledger, check_stored_states
from dragoman.files.archive import StoredAnswer
from dragoman.files.ledger_loader import LedgerLoader
from tests.ledger.released import START, golden_entries

GOLDEN = "handoffs"
"""Golden ledger that fills a store before an upgrade."""

COMING = """
CREATE TABLE marks (name text NOT NULL);
INSERT INTO marks (name) SELECT name FROM streams;
CREATE INDEX marks_name ON marks (name);
"""
"""Migration of a coming version, for both databases: a table that is filled from another."""


def fill(store: Store) -> None:
    """Load a golden ledger, with all its derived rows."""
    transplant = LedgerLoader(store, START)
    transplant.append([entry.line.encode() for entry in golden_entries(GOLDEN)])
    transplant.restore_leases({})
    answer = StoredAnswer("actor:human:lea", "a key", b"its print", b"its answer")
    transplant.restore_answers([answer])


def problems(store: Store) -> list[Finding]:
    """List the findings of a verification."""
    return [
        *check_ledger(store, [], lambda _: None),
        *check_stored_states(store, lambda _: None),
    ]


def is_filled(store: DurableStore) -> bool:
    """Tell whether a store holds exactly what `fill` wrote, and verifies."""
    with store.snapshot() as frozen:
        answers = [one.record.answer for one in frozen.answers((0, ""), 9)]
    lines = [entry.line for entry in store.entries(0, 10_000)]
    expected = [entry.line.encode() for entry in golden_entries(GOLDEN)]
    return (lines, answers, problems(store)) == (expected, [b"its answer"], [])
