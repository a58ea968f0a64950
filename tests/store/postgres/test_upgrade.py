"""Upgrades: old schemas are migrated or left unchanged; older processes can no longer write."""

from collections.abc import Generator
from pathlib import Path
from threading import Thread
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from dragoman.core.errors import StoreLost, StoreUnavailable
from dragoman.engine.ports import Transaction
from dragoman.store.postgres import PostgresStore, migrate
from dragoman.store.postgres.migrate import MIGRATIONS
from dragoman.system.ids import new_id
from dragoman.text.search_terms import SearchTerm
from tests.conformance.store.changes import begin_stream
from tests.ledger.released import golden_entries
from tests.requirements import proves
from tests.servers import fresh_schema
from tests.store.postgres.conftest import Admin
from tests.store.upgrades import (
    COPY,
    OLD,
    TABLES,
    cleanup_statements,
    fill,
    lines,
    positions_about_bead,
    problems,
    write_letters,
)
from tests.surfaces.cli.console import Console

NEWER = str(len(MIGRATIONS) + 1)

COLUMNS = """
SELECT string_agg(quote_ident(column_name), ', ')
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s
"""

DIE = """
CREATE SEQUENCE public.steps;
CREATE TABLE public.fatal (step bigint);
INSERT INTO public.fatal VALUES (0);
CREATE FUNCTION public.die() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
  IF nextval('public.steps') = (SELECT step FROM public.fatal) THEN
    PERFORM pg_terminate_backend(pg_backend_pid());
  END IF;
END
$$;
CREATE EVENT TRIGGER dies ON ddl_command_end EXECUTE FUNCTION public.die();
"""
"""Database in which the n-th DDL statement ends its connection."""


def make_old(admin: Admin, server: str, schema: str, version: int, name: str) -> None:
    """Create the tables of an earlier version, and fill them with a ledger of that time."""
    for script in MIGRATIONS[:version]:
        admin.execute(script.encode())
    with fresh_schema(server) as url:
        today = url.partition("&schema=")[2]
        store = PostgresStore.open(url, lambda: "ledger")
        fill(store, name)
        store.close()
        admin.execute("DELETE FROM head")
        for table in ("meta", "head", *TABLES):
            ((columns,),) = admin.execute(COLUMNS, (schema, table)).fetchall()
            if columns:
                copy = COPY.format(table=table, columns=columns, source=f"{today}.{table}")
                admin.execute(copy.encode())
    for statement in cleanup_statements(version):
        admin.execute(statement.encode())
    admin.execute("UPDATE meta SET value = %s WHERE key = 'schema'", (str(version),))
    admin.execute("SELECT setval('stream_numbers', 1000)")


@pytest.fixture
def crashing_database(postgres_server: str) -> Generator[str]:
    """URL of a separate database whose migrations can be made to crash."""
    name = sql.Identifier(f"mortal_{uuid4().hex}")
    with psycopg.connect(postgres_server, autocommit=True) as server:
        server.execute(sql.SQL("CREATE DATABASE {}").format(name))
        head, _, query = postgres_server.partition("?")
        url = f"{head.rpartition('/')[0]}/{name.as_string()[1:-1]}?{query}"
        with psycopg.connect(url, autocommit=True) as inside:
            inside.execute(DIE.encode())
        yield url
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


@proves("UPGRADE-OLD", "SEARCH-WORDS")
def test_old_search_index_is_rebuilt(
    admin: Admin, postgres_server: str, postgres_url: str, schema: str
) -> None:
    make_old(admin, postgres_server, schema, 6, "v9")
    admin.execute("INSERT INTO texts (position, words) VALUES (1, '日本語テキスト:1')")
    admin.execute("INSERT INTO meta (key, value) VALUES ('indexed', '9')")

    store = PostgresStore.open(postgres_url, new_id)

    assert store.indexed_position() == 0
    assert store.search(((SearchTerm(("日本語テキスト",)),),), None, 9) == []
    store.close()


@proves("UPGRADE-OLD", "MAIL-THREAD")
def test_old_letters_are_listed_by_their_bead(admin: Admin, postgres_url: str) -> None:
    store = PostgresStore.open(postgres_url, new_id)
    write_letters(store)
    found = positions_about_bead(store)
    store.close()
    admin.execute("DELETE FROM lists WHERE list LIKE 'bead:%'")
    admin.execute("DROP INDEX entries_claims")
    admin.execute("UPDATE meta SET value = '11' WHERE key = 'schema'")

    store = PostgresStore.open(postgres_url, new_id)

    assert len(found) == 2
    assert positions_about_bead(store) == found
    assert problems(store) == []
    store.close()


@proves("UPGRADE-OLD")
@pytest.mark.parametrize(("version", "name"), OLD)
def test_schema_of_every_earlier_version_is_migrated(
    admin: Admin, postgres_server: str, postgres_url: str, schema: str, version: int, name: str
) -> None:
    make_old(admin, postgres_server, schema, version, name)

    store = PostgresStore.open(postgres_url, new_id)

    assert store.ledger_id() == "ledger"
    assert lines(store) == [entry.line.encode() for entry in golden_entries(name)]
    assert problems(store) == []
    begin_stream(store, "task:new")
    with store.snapshot() as frozen:
        assert [one.record.answer for one in frozen.answers((0, ""), 9)] == [b"its answer"]
    store.close()


@proves("UPGRADE-KILLED")
@pytest.mark.parametrize(("version", "name"), [(0, ""), OLD[0], (4, "v11")])
def test_interrupted_migration_leaves_the_schema_unchanged(
    crashing_database: str, version: int, name: str
) -> None:
    url = f"{crashing_database}&schema=hub"
    tables = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('hub') ORDER BY 1"
    with psycopg.connect(crashing_database, autocommit=True, options="-csearch_path=hub") as admin:
        if version:
            admin.execute("CREATE SCHEMA hub")
            make_old(admin, crashing_database, "hub", version, name)
        before = admin.execute(tables).fetchall()
        for step in range(1, 200):
            admin.execute("SELECT setval('public.steps', 1, false)")
            admin.execute("UPDATE public.fatal SET step = %s", (step,))
            try:
                store = PostgresStore.open(url, lambda: "ledger")
            except StoreLost:
                assert admin.execute(tables).fetchall() == before, f"cut at statement {step}"
                continue
            break
        else:
            pytest.fail("it was cut every time")

        assert step > 2
        assert store.ledger_id() == "ledger"
        assert problems(store) == []
        assert len(lines(store)) == (len(golden_entries(name)) if name else 0)
        store.close()


@proves("UPGRADE-FENCE")
def test_process_older_than_a_migration_cannot_write(admin: Admin, store: PostgresStore) -> None:
    """Upgrade with an old server running: https://github.com/gastownhall/beads/issues/6064."""
    begin_stream(store, "task:before")
    admin.execute("UPDATE meta SET value = %s WHERE key = 'schema'", (NEWER,))

    for _ in range(2):
        with pytest.raises(StoreUnavailable, match=f"schema {NEWER} while this process ran.*Stop"):
            begin_stream(store, "task:after")
    with pytest.raises(StoreUnavailable, match="while this process ran"):
        store.index_texts([(1, ("red",))], 1)

    assert (store.head(), store.indexed_position()) == (1, 0)
    assert store.stream("task:after") is None


@proves("UPGRADE-FENCE")
def test_migration_waits_for_writers_and_fences_off_later_ones(
    admin: Admin,
    store: PostgresStore,
    postgres_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begin_stream(store, "task:a")
    newer = [*MIGRATIONS, "CREATE TABLE more (id bigint)"]
    opened: list[PostgresStore] = []
    migration = Thread(target=lambda: opened.append(PostgresStore.open(postgres_url, new_id)))

    def work(session: Transaction) -> None:
        session.streams(["task:a"])
        monkeypatch.setattr(migrate, "MIGRATIONS", newer)
        migration.start()
        waits = "SELECT 1 FROM pg_locks WHERE relation = 'meta'::regclass AND NOT granted"
        while not admin.execute(waits).fetchall():
            assert migration.is_alive()
        assert admin.execute("SELECT to_regclass('more')").fetchall() == [(None,)]

    store.transact(work)
    migration.join()
    monkeypatch.undo()

    assert admin.execute("SELECT count(*) FROM more").fetchall() == [(0,)]
    with pytest.raises(StoreUnavailable, match=f"schema {NEWER} while this process ran"):
        begin_stream(store, "task:b")
    opened[0].close()


@proves("STORE-MIGRATIONS", "UPGRADE-OLD", "CLI-DOCTOR")
def test_doctor_examines_an_old_schema_and_changes_nothing(
    tmp_path: Path, postgres_url: str, admin: Admin
) -> None:
    dragoman = Console(tmp_path / "hub")
    dragoman.ask("init", "--store", postgres_url)
    version = len(MIGRATIONS) - 1
    admin.execute("UPDATE meta SET value = %s WHERE key = 'schema'", (str(version),))

    (found,) = (c for c in dragoman.ask("doctor")["checks"] if c["name"] == "store")

    assert found["state"] == "warning"
    assert found["found"].startswith(f"PostgreSQL has schema {version}, this dragoman has ")
    assert "pg_dump" in found["advice"]
    recorded = admin.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall()
    assert recorded == [(str(version),)]
