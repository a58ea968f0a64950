"""Loading a ledger in little memory: heads of streams that were dropped are read back."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from dragoman.bootstrap.stores import open_store
from dragoman.engine.ports import Store, StreamRow
from dragoman.files.archive import StoredAnswer
from dragoman.files.ledger_loader import LedgerLoader
from tests.ledger.released import START, golden_entries
from tests.requirements import proves
from tests.store.upgrades import problems

BATCH = 3
LEDGERS = ("tasks", "waves", "handoffs", "traces")
"""Tasks and their leases, letters, handoffs, agents, intents."""


def read_rows(store: Store) -> dict[str, StreamRow]:
    """Rows of all streams, without their numbers."""
    return {row.name: replace(row, number=0) for row in store.rows(0, 10_000)}


def load_ledger(store: Store, lines: list[bytes], batch: int, max_heads: int) -> Store:
    loader = LedgerLoader(store, START, max_heads)
    for start in range(0, len(lines), batch):
        loader.append(lines[start : start + batch])
    loader.restore_leases({})
    for key in ("a key", "another"):
        loader.restore_answers([StoredAnswer("actor:human:lea", key, b"its print", b"its answer")])
    return store


@proves("BACKUP-WHOLE")
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_trimmed_heads_do_not_change_loaded_ledger(
    tmp_path: Path, kind: str, request: pytest.FixtureRequest
) -> None:
    for name in LEDGERS if kind == "sqlite" else LEDGERS[:1]:
        lines = [entry.line.encode() for entry in golden_entries(name)]
        (tmp_path / name).mkdir()
        whole = load_ledger(open_store("", tmp_path / name), lines, len(lines), len(lines))
        url = "" if kind == "sqlite" else request.getfixturevalue("postgres_url")
        (tmp_path / name / "second").mkdir()
        pieces = load_ledger(open_store(url, tmp_path / name / "second"), lines, BATCH, 0)

        assert problems(pieces) == problems(whole) == [], name
        assert read_rows(pieces) == read_rows(whole), name
        pieces.close()
        whole.close()
