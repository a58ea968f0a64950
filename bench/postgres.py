"""A task's life on PostgreSQL: the engine beside hand-written SQL, in batches and step by step.

The hand-written SQL writes what the raw loop on SQLite does, in tables without a further index: it
decides nothing, checks nothing, and writes no row for a key. Step by step it is what one writes at
first: a transaction that locks and reads the state, and writes the entry and the state.
"""

import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from time import perf_counter
from typing import Any

import psycopg
import uvloop

from bench.callers import Call, drive
from bench.lifecycle import engine_with_callers
from bench.raw import STEPS, RawFront, Steps
from dragoman.store.postgres import PostgresStore
from dragoman.system.clock import new_id
from tests.servers import fresh_schema, running_postgres

CONNECTIONS = 16

_TABLES = """
CREATE TABLE entries(position bigint PRIMARY KEY, stream bigint, line bytea, hash bytea);
CREATE TABLE states(stream bigint PRIMARY KEY, state bytea);
CREATE TABLE leases(stream bigint PRIMARY KEY, expires bigint);
"""

_PUT_ENTRIES = """
INSERT INTO entries SELECT * FROM unnest(%b::bigint[], %b::bigint[], %b::bytea[], %b::bytea[])
"""
_PUT_STATES = """
INSERT INTO states SELECT * FROM unnest(%b::bigint[], %b::bytea[])
ON CONFLICT (stream) DO UPDATE SET state = excluded.state
"""
_PUT_LEASES = """
INSERT INTO leases SELECT * FROM unnest(%b::bigint[], %b::bigint[])
ON CONFLICT (stream) DO UPDATE SET expires = excluded.expires
"""

_LOCK = "SELECT state FROM states WHERE stream = %b FOR UPDATE"
_PUT_ENTRY = "INSERT INTO entries VALUES (%b, %b, %b, %b)"
_PUT_STATE = """
INSERT INTO states VALUES (%b, %b) ON CONFLICT (stream) DO UPDATE SET state = excluded.state
"""
_PUT_LEASE = """
INSERT INTO leases VALUES (%b, %b) ON CONFLICT (stream) DO UPDATE SET expires = excluded.expires
"""


@contextmanager
def server() -> Generator[str]:
    """A PostgreSQL that syncs every commit."""
    with running_postgres(durable=True) as url:
        yield url


def batched(url: str, callers: int, seconds: float) -> float:
    """Lives per second of SQL that writes what all callers wait for in one transaction."""

    @asynccontextmanager
    async def lives() -> AsyncGenerator[Call]:
        with _tables(url) as options, _connection(url, options) as connection:
            steps = Steps()

            def write(batch: list[tuple[int, int]]) -> None:
                rows = steps.rows(batch)
                with connection.pipeline(), connection.transaction():
                    for put, table in (
                        (_PUT_ENTRIES, rows.entries),
                        (_PUT_STATES, list(rows.states.items())),
                        (_PUT_LEASES, list(rows.leases.items())),
                    ):
                        if table:
                            columns = [list(column) for column in zip(*table, strict=True)]
                            connection.execute(put.encode(), columns, prepare=True)

            front, streams = RawFront(write), count(1)

            async def life() -> None:
                stream = next(streams)
                for step in range(len(STEPS)):
                    await front.write((stream, step))

            yield life
            front.close()

    return uvloop.run(drive(lives(), callers, seconds))


def one_by_one(url: str, seconds: float) -> float:
    """Lives per second of as many connections, each of which commits step by step."""
    with _tables(url) as options:
        lives: list[int] = []
        start = perf_counter()

        def live(number: int) -> None:
            mine = 0
            with _connection(url, options) as connection:
                # Positions of one connection do not meet those of another.
                steps, base = Steps(), number << 40
                while perf_counter() < start + seconds:
                    mine += 1
                    for step in range(len(STEPS)):
                        _put(connection, steps, base, (base + mine, step))
            lives.append(mine)

        threads = [threading.Thread(target=live, args=(n,)) for n in range(CONNECTIONS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sum(lives) / (perf_counter() - start)


def engine(url: str, callers: int, seconds: float) -> float:
    """Lives per second of the engine on its own store."""
    with fresh_schema(url) as place:
        return engine_with_callers(PostgresStore.open(place, new_id), callers, seconds)


def _put(
    connection: psycopg.Connection[Any], steps: Steps, base: int, step: tuple[int, int]
) -> None:
    """One commit: what the step builds on is locked and read, as whoever decides has to."""
    rows = steps.rows([step])
    for position, stream, line, digest in rows.entries:
        with connection.transaction():
            connection.execute(_LOCK, (stream,), prepare=True).fetchone()
            entry = (base + position, stream, line, digest)
            connection.execute(_PUT_ENTRY, entry, prepare=True)
            connection.execute(_PUT_STATE, (stream, rows.states[stream]), prepare=True)
    for lease in rows.leases.items():
        connection.execute(_PUT_LEASE, lease, prepare=True)


@contextmanager
def _tables(url: str) -> Generator[str]:
    """Empty tables; the option by which a connection finds them."""
    with fresh_schema(url) as place:
        options = f"-csearch_path={place.partition('&schema=')[2]}"
        with _connection(url, options) as connection:
            connection.execute(_TABLES)
        yield options


def _connection(url: str, options: str) -> psycopg.Connection[Any]:
    return psycopg.connect(url, autocommit=True, options=options)
