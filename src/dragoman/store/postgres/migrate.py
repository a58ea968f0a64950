"""Schema version of a PostgreSQL schema: created, migrated to this release, or refused."""

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from msgspec.structs import replace
from psycopg import sql

from dragoman.core.errors import StoreCorrupt
from dragoman.store.postgres.connect import Address, connect, parse_url
from dragoman.store.postgres.errors import store_error
from dragoman.store.sql import load_migrations, other_version

MIGRATIONS = load_migrations("dragoman.store.postgres")

T = TypeVar("T")

Connection = psycopg.Connection[Any]

_LOCK = int.from_bytes(b"DRGM", "big")
"""The advisory lock of migrations, combined with the schema's own number."""


def migrate(
    connection: Connection,
    address: Address,
    new_ledger_id: Callable[[], str] | None,
) -> bool:
    """Migrate a schema to this version. Several processes may do this at once: all but one wait.

    Without an id no ledger is created: False, if there is none.
    """
    if schema_version(connection, address) == len(MIGRATIONS):
        return True
    with connection.transaction():
        connection.execute(
            "SELECT pg_advisory_xact_lock(%s, hashtext(%s))", (_LOCK, address.schema)
        )
        # Read again: another process may have migrated while this one waited for the lock.
        version = schema_version(connection, address)
        if version == 0:
            if new_ledger_id is None:
                return False
            _create_schema(connection, address, new_ledger_id())
        elif version < len(MIGRATIONS):
            # A writer checks the version first, and thereby locks this table until its commit.
            connection.execute("LOCK TABLE meta IN ACCESS EXCLUSIVE MODE")
            _apply(connection, version)
    return True


def known_version() -> str:
    """The schema version that this process can write to, as stored in meta."""
    return str(len(MIGRATIONS))


def schema_version(connection: Connection, address: Address) -> int:
    """The number of migrations that this schema has had; 0: it is empty or missing."""
    tables = {
        name
        for (name,) in connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s)",
            (address.schema,),
        )
    }
    if not tables:
        return 0
    version = _recorded_version(connection) if "meta" in tables else None
    if version is None:
        raise StoreCorrupt(
            f"{address} holds tables, but not those of dragoman; nothing was changed. Name another "
            "schema, or restore a backup if it was ours"
        )
    if not 1 <= version <= len(MIGRATIONS):
        raise other_version(address, version, len(MIGRATIONS))
    return version


def _recorded_version(connection: Connection) -> int | None:
    try:
        found = connection.execute("SELECT value FROM meta WHERE key = 'schema'").fetchone()
    except psycopg.errors.UndefinedColumn:
        return None
    return None if found is None else int(found[0])


def _create_schema(connection: Connection, address: Address, ledger_id: str) -> None:
    found = connection.execute("SELECT to_regnamespace(%s)", (address.schema,)).fetchone()
    if found == (None,):
        connection.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(address.schema)))
    _apply(connection, 0)
    _set_meta(connection, "ledger_id", ledger_id)


def _apply(connection: Connection, version: int) -> None:
    for script in MIGRATIONS[version:]:
        connection.execute(script.encode())
    _set_meta(connection, "schema", known_version())


def _set_meta(connection: Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO meta (key, value) VALUES (%s, %s) "
        "ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


# --- the schema of a URL ----------------------------------------------------------------------


def schema_version_at(url: str) -> int:
    """The number of migrations that the schema of a URL has had; 0: it holds no store."""
    address = parse_url(url)
    return _run(address, lambda connection: schema_version(connection, address))


def check_writable(url: str) -> None:
    """Raise StoreUnavailable if the store of a URL, where there is one, can only be read."""
    address = parse_url(url)

    def try_insert(connection: Connection) -> None:
        if schema_version(connection, address):
            # The server checks for write access before it looks for rows.
            connection.execute("INSERT INTO entries SELECT * FROM entries WHERE false")

    _run(address, try_insert)


def drop_schema_at(url: str) -> None:
    address = parse_url(url)
    drop = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(address.schema))
    _run(address, lambda connection: connection.execute(drop))


def _run(address: Address, work: Callable[[Connection], T]) -> T:
    with connect(replace(address, idle_timeout_ms=0)) as connection:
        try:
            return work(connection)
        except psycopg.Error as error:
            raise store_error(error, str(address), is_closed=connection.closed) from error
