"""Upgrades: old schemas are migrated or refused; older processes can no longer write."""

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
from dragoman.system.clock import new_id
from tests.conformance.store.changes import begin_stream
from tests.requirements import proves
from tests.store.postgres.conftest import Admin
from tests.store.upgrades import COMING, fill, is_filled, problems
from tests.surfaces.cli.console import Console

NEWER = str(len(MIGRATIONS) + 1)

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


@proves("UPGRADE-OLD")
def test_filled_schema_of_an_earlier_version_is_migrated(
    postgres_url: str, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])

    migrated = PostgresStore.open(postgres_url, new_id)

    assert migrated.ledger_id() == store.ledger_id()
    assert is_filled(migrated)
    begin_stream(migrated, "task:new")
    migrated.close()


@proves("UPGRADE-KILLED")
@pytest.mark.parametrize("is_new", [True, False])
def test_interrupted_migration_leaves_the_schema_unchanged(
    crashing_database: str, is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"{crashing_database}&schema=hub"
    tables = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace('hub') ORDER BY 1"
    if not is_new:
        first = PostgresStore.open(url, lambda: "ledger")
        fill(first)
        first.close()
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])
    with psycopg.connect(crashing_database, autocommit=True, options="-csearch_path=hub") as admin:
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
        assert store.head() == 0 if is_new else is_filled(store)
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
    tmp_path: Path, postgres_url: str, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    dragoman = Console(tmp_path / "hub")
    dragoman.ask("init", "--store", postgres_url)
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, COMING])

    (found,) = (c for c in dragoman.ask("doctor")["checks"] if c["name"] == "store")

    assert found["state"] == "warning"
    assert found["found"].startswith(f"PostgreSQL has schema {len(MIGRATIONS)}, this dragoman has ")
    assert "pg_dump" in found["advice"]
    recorded = admin.execute("SELECT value FROM meta WHERE key = 'schema'").fetchall()
    assert recorded == [(str(len(MIGRATIONS)),)]


@proves("STORE-MIGRATIONS", "UPGRADE-OLD", "CLI-DOCTOR")
def test_doctor_calls_a_schema_of_another_version_bad(
    tmp_path: Path, postgres_url: str, admin: Admin
) -> None:
    dragoman = Console(tmp_path / "hub")
    dragoman.ask("init", "--store", postgres_url)
    admin.execute("UPDATE meta SET value = %s WHERE key = 'schema'", (NEWER,))

    checks = dragoman("doctor", "--json").json["checks"]
    (found,) = (check for check in checks if check["name"] == "store")

    assert (found["state"], "another version of dragoman" in found["found"]) == ("bad", True)
