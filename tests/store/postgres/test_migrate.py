"""Schema: created once, refused if it is of another version or foreign."""

import psycopg
import pytest

from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.store.postgres import PostgresStore, migrate
from dragoman.store.postgres.migrate import MIGRATIONS
from dragoman.system.clock import new_id
from tests.conformance.store.changes import begin_stream
from tests.conformance.store.threads import run_concurrently
from tests.requirements import proves
from tests.store.postgres.conftest import Admin

pytestmark = proves("STORE-MIGRATIONS")

CATALOG = """
SELECT 'column', c.relname, a.attnum || ' ' || a.attname || ' '
       || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull || ' ' || a.attcollation
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE c.relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'relation', relname, relkind::text || ' ' || coalesce(reloptions::text, '')
FROM pg_class WHERE relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'index', tablename, indexdef FROM pg_indexes WHERE schemaname = %(schema)s
UNION ALL
SELECT 'constraint', conname, pg_get_constraintdef(oid)
FROM pg_constraint WHERE connamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'trigger', t.tgname, pg_get_triggerdef(t.oid)
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'function', proname, prosrc FROM pg_proc WHERE pronamespace = to_regnamespace(%(schema)s)
UNION ALL
SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = %(schema)s
UNION ALL
SELECT 'sequence', sequencename, start_value || ' ' || increment_by || ' ' || cycle
FROM pg_sequences WHERE schemaname = %(schema)s
"""


def catalog(admin: Admin, schema: str) -> list[tuple[object, ...]]:
    """List everything in a schema, without the schema's name."""
    with admin.transaction():
        # So that every name is shown with its schema.
        admin.execute("SET LOCAL search_path = pg_catalog")
        rows = admin.execute(CATALOG, {"schema": schema}).fetchall()
    return sorted(tuple(str(value).replace(schema, "SCHEMA") for value in row) for row in rows)


def test_missing_schema_is_created(postgres_server: str, admin: Admin, schema: str) -> None:
    name = f"made_{schema}"[:63]
    store = PostgresStore.open(f"{postgres_server}&schema={name}", new_id)
    try:
        assert store.head() == 0
    finally:
        store.close()
        admin.execute(f"DROP SCHEMA {name} CASCADE".encode())


def test_ledger_id_is_set_by_the_first_opening_and_kept(
    postgres_url: str,
) -> None:
    first = PostgresStore.open(postgres_url, lambda: "the first id")
    begin_stream(first, "task:a")
    second = PostgresStore.open(postgres_url, lambda: "another id")

    assert (first.ledger_id(), second.ledger_id()) == ("the first id", "the first id")
    assert second.head() == 1
    first.close()
    second.close()


def test_concurrent_openings_of_an_empty_schema_succeed(postgres_url: str) -> None:
    stores = run_concurrently([lambda: PostgresStore.open(postgres_url, new_id)] * 6)

    assert len({store.ledger_id() for store in stores}) == 1
    for n, store in enumerate(stores):
        begin_stream(store, f"task:{n}")
    assert stores[0].head() == 6
    for store in stores:
        store.close()


@proves("UPGRADE-OLD")
@pytest.mark.parametrize("version", [0, len(MIGRATIONS) + 1, 13])
def test_schema_of_another_version_is_refused_and_unchanged(
    admin: Admin, store: PostgresStore, postgres_url: str, schema: str, version: int
) -> None:
    admin.execute("UPDATE meta SET value = %s WHERE key = 'schema'", (str(version),))
    before = catalog(admin, schema)

    with pytest.raises(StoreUnavailable) as refused:
        PostgresStore.open(postgres_url, new_id)

    assert refused.value.detail.endswith(
        f" was made by another version of dragoman (schema {version}, this one knows "
        f"{len(MIGRATIONS)}); nothing was changed. Use that version, or export there and import "
        "here"
    )
    assert catalog(admin, schema) == before


@pytest.mark.parametrize(
    "table", ["customers (id int)", "meta (id int)", "meta (key text, value int)"]
)
def test_foreign_schema_is_refused_and_unchanged(
    admin: Admin, postgres_url: str, schema: str, table: str
) -> None:
    admin.execute(f"CREATE TABLE {table}".encode())
    before = catalog(admin, schema)

    with pytest.raises(StoreCorrupt, match="not those of dragoman"):
        PostgresStore.open(postgres_url, new_id)

    assert catalog(admin, schema) == before


def test_only_new_migrations_are_applied(
    store: PostgresStore, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_stream(store, "task:a")
    second = "CREATE TABLE added (id bigint); INSERT INTO added VALUES (1);"
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, second])

    for _ in range(2):
        newer = PostgresStore.open(postgres_url, new_id)
        assert (newer.ledger_id(), newer.head()) == (store.ledger_id(), 1)
        newer.close()


def test_failed_migration_changes_nothing(
    admin: Admin,
    store: PostgresStore,
    postgres_url: str,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = catalog(admin, schema)
    broken = "CREATE TABLE added (id bigint); SELECT 1 / 0;"
    monkeypatch.setattr(migrate, "MIGRATIONS", [*MIGRATIONS, broken])

    with pytest.raises(StoreUnavailable, match="division by zero"):
        PostgresStore.open(postgres_url, new_id)

    assert catalog(admin, schema) == before


@proves("STORE-CORRUPT")
def test_missing_table_is_reported(admin: Admin, store: PostgresStore) -> None:
    admin.execute("DROP TABLE leases CASCADE")

    with pytest.raises(StoreCorrupt, match="does not have the tables"):
        store.expired_leases(0, 10)
    for _ in range(2):
        with pytest.raises(StoreCorrupt, match=r"does not have the tables.*leases"):
            store.transact(lambda session: session.streams(["task:a"]))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET event = 'other'",
        "DELETE FROM entries",
        "TRUNCATE entries",
    ],
)
@proves("VERIFY-REMOVED")
def test_entries_are_append_only(admin: Admin, store: PostgresStore, statement: str) -> None:
    begin_stream(store, "task:a")

    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        admin.execute(statement.encode())

    assert store.head() == 1


def test_head_table_has_one_row(admin: Admin, store: PostgresStore) -> None:
    with pytest.raises(psycopg.errors.UniqueViolation):
        admin.execute("INSERT INTO head (position) VALUES (0)")


@proves("VERIFY-REMOVED")
def test_entry_of_a_removed_stream_is_shown_without_a_name(
    admin: Admin, store: PostgresStore
) -> None:
    begin_stream(store, "task:a")
    begin_stream(store, "task:b")
    admin.execute("DELETE FROM streams WHERE name = 'task:a'")

    assert [entry.stream for entry in store.entries(0, 10)] == ["", "task:b"]
    assert store.history("task:a", 0, 10) == []


@proves("STORE-CORRUPT")
def test_missing_ledger_id_is_reported(admin: Admin, store: PostgresStore) -> None:
    admin.execute("DELETE FROM meta WHERE key = 'ledger_id'")
    with pytest.raises(StoreCorrupt, match="lost the id of its ledger"):
        store.ledger_id()
