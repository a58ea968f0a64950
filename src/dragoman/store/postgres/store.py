"""The PostgreSQL store: one writing connection, and a few beside it that read."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, TypeVar

import psycopg
from msgspec.structs import replace

from dragoman.core.errors import StoreError, StoreLost, StoreUnavailable
from dragoman.engine.ports import IntegrityReport, StreamRow, TaskQuery, Transaction
from dragoman.store.postgres.connect import IDLE_TIMEOUT_MS, Address, connect, parse_url
from dragoman.store.postgres.errors import RECOUNT_ADVICE, store_error
from dragoman.store.postgres.migrate import migrate
from dragoman.store.postgres.pipeline import Call, Pipeline, Scalar, numbers, scalar, texts
from dragoman.store.postgres.reads import (
    QUERIES,
    PostgresReads,
    PostgresSnapshot,
    open_snapshot,
    tsvector,
)
from dragoman.store.postgres.schema_check import check_schema
from dragoman.store.postgres.transaction import PostgresTransaction, version_check
from dragoman.store.sql import MAX_POSITION, SqlMeta
from dragoman.text.search_terms import Words

T = TypeVar("T")

MAX_READERS = 8

_TASK_PAGE_QUERIES = {
    (False, False): "board",
    (True, False): "board_of_status",
    (False, True): "board_of_owner",
    (True, True): "board_of_status_and_owner",
}
"""(filtered by status, filtered by owner) -> the query that has an index for it."""


class PostgresStore(PostgresReads, SqlMeta):
    """A store on a server, for any number of threads, processes and machines."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._write_lock = threading.Lock()
        self._writer: Pipeline | None = None
        self._free_numbers: list[int] = []
        self._reader_slots = threading.BoundedSemaphore(MAX_READERS)
        self._read_lock = threading.Lock()
        self._idle_readers: list[Pipeline] = []
        self._is_closed = False

    @classmethod
    def open(
        cls, url: str, new_ledger_id: Callable[[], str], *, idle_timeout_ms: int = IDLE_TIMEOUT_MS
    ) -> "PostgresStore":
        """Open the schema that a URL names; it is made or migrated if need be."""
        address = replace(parse_url(url), idle_timeout_ms=idle_timeout_ms)
        _migrate(address, new_ledger_id)
        return cls(address)

    @classmethod
    def open_existing(cls, url: str) -> "PostgresStore | None":
        """The store in the schema that a URL names, migrated if need be; None: there is none, and
        none is created."""
        address = parse_url(url)
        return cls(address) if _migrate(address, None) else None

    def transact(self, work: Callable[[Transaction], T]) -> T:
        with self._write_lock:
            writer = self._open_writer()
            session = PostgresTransaction(writer, self._free_numbers)
            try:
                result = work(session)
                session.commit()
            except psycopg.Error as error:
                ours = self._store_error(error, is_closed=writer.is_closed)
                self._undo(writer, session)
                raise ours from error
            except BaseException:
                self._undo(writer, session)
                raise
            return result

    def find_aliases(self, name: str) -> list[tuple[str, str]]:
        return self._read("named", name)

    def task_page(self, query: TaskQuery) -> list[StreamRow]:
        filters = [value for value in (query.status, query.owner) if value is not None]
        before = MAX_POSITION if query.before is None else query.before
        name = _TASK_PAGE_QUERIES[query.status is not None, query.owner is not None]
        return list(map(self._stream_row, self._read(name, before, query.limit, *filters)))

    def index_texts(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        values = tuple(map(scalar, (*_text_columns(texts), until)))
        # In one exchange, which is executed whole or not at all.
        self._run(version_check(), Call("index", values))

    def snapshot(self) -> AbstractContextManager[PostgresSnapshot]:
        """The store as it is now, for as long as somebody reads."""
        return open_snapshot(self._address)

    def inspect(self, seconds: float | None = None) -> IntegrityReport:
        """Compare the counter of positions with the entries. Pages and indexes are the server's:
        only its own tool, pg_amcheck, can check them."""
        del seconds
        ((counted, last),) = self._read("both_heads")
        says = "is empty" if counted is None else f"says that the ledger ends at {counted}"
        damage = f"the table head {says}, its last entry is at {last}: {RECOUNT_ADVICE}"
        return IntegrityReport((damage,) if counted != last else (), is_complete=False)

    def inspect_schema(self) -> IntegrityReport:
        return check_schema(self._address)

    def close(self) -> None:
        with self._read_lock:
            self._is_closed = True
            idle, self._idle_readers = self._idle_readers, []
        for reader in idle:
            reader.close()
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    # Writer

    def _open_writer(self) -> Pipeline:
        if self._writer is None or self._writer.is_closed:
            self._writer = self._connect()
        return self._writer

    def _undo(self, writer: Pipeline, session: PostgresTransaction) -> None:
        try:
            session.undo()
        except psycopg.Error:
            # The server undoes it when the connection ends; the next transaction has a new one.
            writer.close()

    # Readers

    def _read(self, query: str, *values: Scalar) -> list[Any]:
        return self._run(Call(query, tuple(map(scalar, values))))

    def _run(self, *calls: Call) -> list[Any]:
        """The rows of the last of these calls, on a connection that is not the writer's."""
        with self._reader_slots:
            reader = self._take_idle_reader()
            if reader is not None:
                try:
                    return self._fetch(reader, calls)
                except StoreLost:
                    # The connection broke while it was idle, and a read can be repeated.
                    pass
            return self._fetch(self._connect(), calls)

    def _write_one(self, query: str, *values: Scalar) -> None:
        self._read(query, *values)

    def _location(self) -> str:
        return str(self._address)

    def _fetch(self, reader: Pipeline, calls: Sequence[Call]) -> list[Any]:
        try:
            *_, found = reader.run(calls)
        except psycopg.Error as error:
            ours = self._store_error(error, is_closed=reader.is_closed)
            reader.close()
            raise ours from error
        with self._read_lock:
            if not self._is_closed:
                self._idle_readers.append(reader)
                return found
        reader.close()
        return found

    def _take_idle_reader(self) -> Pipeline | None:
        with self._read_lock:
            return self._idle_readers.pop() if self._idle_readers else None

    # Connections

    def _connect(self) -> Pipeline:
        if self._is_closed:
            raise StoreUnavailable(f"{self._address} was closed; open the store again")
        return Pipeline(connect(self._address), QUERIES, self._address.answer_timeout_s)

    def _store_error(self, error: psycopg.Error, *, is_closed: bool) -> StoreError:
        return store_error(error, str(self._address), is_closed=is_closed)


def _text_columns(found: Sequence[tuple[int, Words]]) -> tuple[bytes, bytes]:
    return numbers([place for place, _ in found]), texts([tsvector(words) for _, words in found])


def _migrate(address: Address, new_ledger_id: Callable[[], str] | None) -> bool:
    """Migrate on a connection of its own: a migration may take longer than any transaction."""
    connection = connect(replace(address, idle_timeout_ms=0))
    with connection:
        try:
            return migrate(connection, address, new_ledger_id)
        except psycopg.Error as error:
            raise store_error(error, str(address), is_closed=connection.closed) from error
