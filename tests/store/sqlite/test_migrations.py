"""Migrations: numbered, run once, in one transaction; together equal to schema.sql."""

import re
from importlib.resources import files
from pathlib import Path

import pytest

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Changes, ListItem
from dragoman.store.sqlite import migrate
from dragoman.store.sqlite.migrate import MIGRATIONS
from dragoman.text.search_terms import SearchTerm
from tests.conformance.store.changes import BEFORE_LISTS, everything, fill_before_lists
from tests.requirements import proves
from tests.store.sqlite.files import Database, connect, create_filled, files_in, open_store

pytestmark = proves("STORE-MIGRATIONS")

SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"


def schema(database: Database) -> list[tuple[str, ...]]:
    """List every table, index, trigger and view; ALTER TABLE changes their white space."""
    return [
        (*names, re.sub(r"\s+", " ", sql or "").replace(" ,", ",").replace(" )", ")"))
        for *names, sql in database.execute(SCHEMA).fetchall()
    ]


def test_all_migrations_equal_schema_sql(tmp_path: Path) -> None:
    migrated = connect(create_filled(tmp_path / "migrated.db"))
    written = connect(tmp_path / "written.db")
    script = files("dragoman.store.sqlite").joinpath("schema.sql").read_text("utf-8")
    written.execute(script).fetchall()

    assert schema(migrated) == schema(written)


@proves("DELEGATION-SLA")
def test_database_of_version_1_gets_deadlines(
    tmp_path: Path,
) -> None:
    path = tmp_path / "hub.db"
    first = connect(path)
    for statements in (
        MIGRATIONS[0],
        f"PRAGMA application_id = {migrate.APPLICATION_ID}",
        "PRAGMA user_version = 1",
        "INSERT INTO meta (key, value) VALUES ('ledger_id', 'ledger')",
        (
            "INSERT INTO streams (number, name, version, hash, fold, rank, since, state)"
            " VALUES (1, 'task:a', 1, x'00', 1, 0, 0, x'7b7d')"
        ),
    ):
        first.execute(statements).fetchall()
    first.close()

    store = open_store(path)

    row = store.stream("task:a")
    assert row is not None
    assert (row.name, row.state, row.index.deadline) == ("task:a", b"{}", None)
    assert store.overdue_streams(2**62, 10) == []
    assert store.ledger_id() == "ledger"
    store.close()


@proves("STORE-LISTS", "STORE-SEARCH")
def test_database_of_version_2_gets_lists_and_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "hub.db"
    monkeypatch.setattr(migrate, "MIGRATIONS", MIGRATIONS[:2])
    create_filled(path, 3)
    assert connect(path).execute("PRAGMA user_version").fetchall() == [(2,)]
    monkeypatch.undo()

    store = open_store(path)

    assert store.head() == 3
    assert store.ledger_id() == "ledger"
    assert (store.list_items(("", 0), 9), store.indexed_position()) == ([], 0)
    row = store.rows(0, 1)[0]
    store.transact(lambda session: session.write(Changes(list_additions=[("in:bob", row.number)])))
    store.index_texts([(1, ("red",))], 3)
    assert store.list_items(("", 0), 9) == [("in:bob", 1, row.name)]
    assert store.search(((SearchTerm(("red",)),),), None, 9) == [ListItem(1, row)]
    store.close()


@proves("STORE-LISTS")
def test_streams_older_than_the_lists_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "MIGRATIONS", MIGRATIONS[:2])
    before = open_store(tmp_path / "hub.db")
    fill_before_lists(before)
    before.close()
    monkeypatch.undo()

    store = open_store(tmp_path / "hub.db")

    assert store.list_items(("", 0), 9) == BEFORE_LISTS
    store.close()


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


def test_newer_database_is_refused_and_unchanged(tmp_path: Path) -> None:
    path = create_filled(tmp_path / "hub.db")
    database = connect(path)
    database.execute("PRAGMA user_version = 99").fetchall()
    database.close()
    before = files_in(tmp_path)

    with pytest.raises(StoreUnavailable, match=r"newer dragoman \(schema 99, .*Upgrade dragoman"):
        open_store(path)

    assert files_in(tmp_path) == before
