"""A schema that is restored under another name, and takes its own when it is complete."""

from collections.abc import Callable
from typing import Any, TypeVar

import psycopg
from msgspec.structs import replace
from psycopg import sql

from dragoman.store.postgres.connect import Address, connect, parse_url
from dragoman.store.postgres.errors import store_error
from dragoman.store.postgres.migrate import schema_version
from dragoman.store.postgres.store import PostgresStore

T = TypeVar("T")

_SUFFIX = "_restoring"
_MAX_NAME = 63

Connection = psycopg.Connection[Any]


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


def open_staged(url: str, new_ledger_id: Callable[[], str]) -> PostgresStore:
    """Open an empty store in the schema beside that of a URL; an earlier one there is removed."""
    discard_staged(url)
    return PostgresStore.open_at(_staged_address(parse_url(url)), new_ledger_id)


def discard_staged(url: str) -> None:
    """Remove the schema beside that of a URL, if it is ours."""
    address = _staged_address(parse_url(url))

    def clear(connection: Connection) -> None:
        # Raises if the schema of this name is not ours.
        schema_version(connection, address)
        drop = sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE")
        connection.execute(drop.format(sql.Identifier(address.schema)))

    _run(address, clear)


def publish_staged(url: str) -> None:
    """Give the staged schema the name in the URL; an empty schema of that name is dropped."""
    address = parse_url(url)
    target, staged = sql.Identifier(address.schema), sql.Identifier(_staged_address(address).schema)

    def rename(connection: Connection) -> None:
        with connection.transaction():
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} RESTRICT").format(target))
            connection.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(staged, target))

    _run(address, rename)


def _staged_address(address: Address) -> Address:
    return replace(address, schema=address.schema[: _MAX_NAME - len(_SUFFIX)] + _SUFFIX)


def _run(address: Address, work: Callable[[Connection], T]) -> T:
    with connect(replace(address, idle_timeout_ms=0)) as connection:
        try:
            return work(connection)
        except psycopg.Error as error:
            raise store_error(error, str(address), is_closed=connection.closed) from error
