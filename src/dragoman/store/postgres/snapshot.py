"""The schema as it was at one moment: a connection that stays in one transaction."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
from msgspec.structs import replace

from dragoman.store.postgres.binary import Scalar, scalar
from dragoman.store.postgres.connect import Address, connect
from dragoman.store.postgres.faults import store_error
from dragoman.store.postgres.readers import QUERIES, PostgresReaders
from dragoman.store.postgres.wire import Call, Wire


class PostgresSnapshot(PostgresReaders):
    """Reads in REPEATABLE READ: every statement sees what was committed before the first."""

    def __init__(self, wire: Wire, address: Address) -> None:
        self._wire = wire
        self._address = address

    def _read(self, query: str, *values: Scalar) -> list[Any]:
        try:
            return self._wire.run([Call(query, tuple(map(scalar, values)))])[0]
        except psycopg.Error as error:
            raise store_error(error, str(self._address), is_closed=self._wire.is_closed) from error

    def _place(self) -> str:
        return str(self._address)


@contextmanager
def snapshot(address: Address) -> Generator[PostgresSnapshot]:
    """The schema as it is now."""
    # Reading a large store may take longer than any other transaction.
    wire = Wire(connect(replace(address, idle_timeout_ms=0)), QUERIES, address.patience)
    try:
        wire.run([Call("begin_snapshot")])
        frozen = PostgresSnapshot(wire, address)
        # PostgreSQL chooses the moment at the first read.
        frozen.head()
        yield frozen
    finally:
        wire.close()
