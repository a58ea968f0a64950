"""Migrations: numbered, run once, in one transaction; together they are schema.sql."""

from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.store.sql_files import load_script
from dragoman.store.sqlite import migrate
from dragoman.store.sqlite.migrate import MIGRATIONS
from tests.conformance.store.changes import everything
from tests.requirements import proves
from tests.store.sqlite.files import connect, files_in, filled, open_store

pytestmark = proves("STORE-MIGRATIONS")

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"


def test_all_migrations_together_are_the_schema(tmp_path: Path) -> None:
    migrated = connect(filled(tmp_path / "migrated.db"))
    written = connect(tmp_path / "written.db")
    written.execute(load_script("dragoman.store.sqlite", "schema.sql")).fetchall()

    assert migrated.execute(SCHEMA).fetchall() == written.execute(SCHEMA).fetchall()


def test_a_new_migration_runs_once_and_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "hub.db", 3)
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


def test_a_migration_that_fails_leaves_the_version_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(tmp_path / "hub.db")
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


def test_a_database_of_a_newer_version_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = filled(tmp_path / "hub.db")
    database = connect(path)
    database.execute("PRAGMA user_version = 99").fetchall()
    database.close()
    before = files_in(tmp_path)

    with pytest.raises(StoreUnavailable, match=r"newer dragoman \(schema 99, .*Upgrade dragoman"):
        open_store(path)

    assert files_in(tmp_path) == before
