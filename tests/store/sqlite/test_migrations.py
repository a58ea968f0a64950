"""Migrations: numbered, and run once, in one transaction."""

from pathlib import Path

import pytest

from dragoman.store.sqlite import migrate
from dragoman.store.sqlite.migrate import MIGRATIONS
from tests.conformance.store.changes import everything
from tests.requirements import proves
from tests.store.sqlite.files import connect, create_filled, open_store

pytestmark = proves("STORE-MIGRATIONS")


def test_new_migration_runs_once_and_keeps_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create_filled(tmp_path / "hub.db", 3)
    before = open_store(path)
    shown = everything(before)
    before.close()
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, "CREATE TABLE more (x)"])

    for _ in range(2):
        store = open_store(path)
        assert everything(store) == shown
        assert store.ledger_id() == "ledger"
        store.close()

    assert connect(path).execute("PRAGMA user_version").fetchall() == [(len(MIGRATIONS) + 1,)]


def test_failed_migration_keeps_the_previous_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = create_filled(tmp_path / "hub.db")
    broken = [*MIGRATIONS, "CREATE TABLE more (x); INSERT INTO nowhere VALUES (1)"]
    monkeypatch.setattr(migrate, "MIGRATIONS", broken)
    with pytest.raises(Exception, match="no such table: nowhere"):
        open_store(path)
    monkeypatch.undo()

    store = open_store(path)

    assert store.head() == 1
    store.close()
    tables = connect(path).execute("SELECT name FROM sqlite_schema WHERE name = 'more'")
    assert tables.fetchall() == []
