"""The schema as it was at one moment: a connection that stays in one transaction."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import psycopg
from msgspec.structs import replace

from dragoman.store.postgres.binary import Scalar, scalar
from dragoman.store.postgres.connect import Address, connect
from dragoman.store.postgres.faults import store_error
from dragoman.store.postgres.readers import QUERIES, PostgresReads
from dragoman.store.postgres.wire import Call, Pipeline


class PostgresSnapshot(PostgresReads):
    """Reads in REPEATABLE READ: every statement sees what was committed before the first."""

    def __init__(self, pipeline: Pipeline, address: Address) -> None:
        self._pipeline = pipeline
        self._address = address

    def _read(self, query: str, *values: Scalar) -> list[Any]:
        try:
            return self._pipeline.run([Call(query, tuple(map(scalar, values)))])[0]
        except psycopg.Error as error:
            raise store_error(
                error, str(self._address), is_closed=self._pipeline.is_closed
            ) from error

    def _location(self) -> str:
        return str(self._address)


@contextmanager
def open_snapshot(address: Address) -> Generator[PostgresSnapshot]:
    """The schema as it is now."""
    # Reading a large store may take longer than any other transaction.
    pipeline = Pipeline(
        connect(replace(address, idle_timeout_ms=0)), QUERIES, address.answer_timeout_s
    )
    try:
        pipeline.run([Call("begin_snapshot")])
        view = PostgresSnapshot(pipeline, address)
        # PostgreSQL chooses the moment at the first read.
        view.head()
        yield view
    finally:
        pipeline.close()
