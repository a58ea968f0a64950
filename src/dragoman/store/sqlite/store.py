"""The SQLite store: one writer, and readers beside it that never wait for it."""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeVar

import apsw

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import BoardQuery, Inspection, Row, Session
from dragoman.store.readers import NO_LIMIT, SqlMark
from dragoman.store.sqlite.connect import (
    Identity,
    check_sqlite,
    identity,
    let_log_go,
    open_writer,
)
from dragoman.store.sqlite.driver import FAILURES, Connection
from dragoman.store.sqlite.faults import commit_error, store_error
from dragoman.store.sqlite.inspection import inspect
from dragoman.store.sqlite.log import LogCopier
from dragoman.store.sqlite.migrate import check_version
from dragoman.store.sqlite.readers import SqliteReaders
from dragoman.store.sqlite.session import QUERIES, Shelves, SqliteSession, as_row
from dragoman.store.sqlite.snapshot import SqliteSnapshot, snapshot
from dragoman.store.sqlite.still import (
    Readers,
    Shared,
    is_unwritable,
    readers_where_nothing_can_be_written,
)
from dragoman.text.words import Words

T = TypeVar("T")

_BOARDS = {
    (False, False): QUERIES["board"],
    (True, False): QUERIES["board_of_status"],
    (False, True): QUERIES["board_of_owner"],
    (True, True): QUERIES["board_of_status_and_owner"],
}
"""(filtered by status, filtered by owner) -> the query that has an index for it."""


class SqliteStore(SqliteReaders, SqlMark):
    """A store in one file, for any number of threads and for several processes."""

    def __init__(self, path: Path, new_ledger_id: Callable[[], str]) -> None:
        self._path = path
        self._new_ledger_id = new_ledger_id
        self._writing = threading.Lock()
        self._writer: Connection | None = None
        self._file: Identity | None = None
        """The file that was opened first."""
        self._refused: StoreUnavailable | None = None
        """The error at opening, if the file cannot be written."""
        self._seen_version: int | None = None
        self._shelves: Shelves = {}
        self._log = LogCopier(path)
        self._readers: Readers = Shared(path)
        self._reading = threading.Lock()
        self._idle_readers: list[Connection] = []
        self._is_closed = False

    @classmethod
    def open(cls, path: Path, new_ledger_id: Callable[[], str]) -> "SqliteStore":
        """Open a database file; it is created or migrated if need be, its directory is not."""
        check_sqlite(apsw.sqlite_lib_version())
        store = cls(path, new_ledger_id)
        with store._writing:
            store._open_writer()
        return store

    @classmethod
    def open_to_read(cls, path: Path, new_ledger_id: Callable[[], str]) -> "SqliteStore":
        """Like `open`; a file that cannot be written is opened for reading, and a write raises the
        reason."""
        try:
            return cls.open(path, new_ledger_id)
        except StoreUnavailable as refused:
            if not is_unwritable(refused):
                raise
            store = cls(path, new_ledger_id)
            store._refused = refused
            store._readers = readers_where_nothing_can_be_written(path)
            return store

    def transact(self, work: Callable[[Session], T]) -> T:
        """Run `work` in a writing transaction: committed durably when this returns, or undone."""
        return self._write(lambda writer, version: work(self._session(writer, version)))

    def index(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        """Add the texts at these positions to the search index, unless another process has."""

        def work(writer: Connection, _: int) -> None:
            # No Transaction: the next one must still learn whether another process has written.
            known = int(writer.execute(QUERIES["indexed"]).get or 0)
            if until > known:
                new = [(place, " ".join(words)) for place, words in texts if place > known]
                writer.executemany(QUERIES["put_text"], new)
                writer.execute(QUERIES["put_indexed"], (str(until),))

        self._write(work)

    def named(self, name: str) -> list[tuple[str, str]]:
        """(kind, stream) of every task that has this name as an alias."""
        return [(kind, stream) for _, kind, stream in self._read("named", name)]

    def board(self, query: BoardQuery) -> list[Row]:
        """A page of tasks, newest first."""
        sql = _BOARDS[query.status is not None, query.owner is not None]
        asked = {
            "before": NO_LIMIT if query.before is None else query.before,
            "status": query.status,
            "owner": query.owner,
            "limit": query.limit,
        }
        return list(map(as_row, self._fetch(sql, asked)))

    def snapshot(self) -> AbstractContextManager[SqliteSnapshot]:
        """The store as it is now, for as long as somebody reads."""
        return snapshot(self._path, self._readers)

    def inspect(self, seconds: float | None = None) -> Inspection:
        """Have SQLite check its file; meanwhile the WAL cannot be reset."""
        self._refuse_if_closed()
        return inspect(self._readers, self._path, seconds)

    def close(self) -> None:
        """Close every connection; the writer last, so that it copies the WAL into the file."""
        with self._reading:
            self._is_closed = True
            idle, self._idle_readers = self._idle_readers, []
        for reader in idle:
            reader.close(True)
        with self._writing:
            self._log.close()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    # Writer

    def _write(self, work: Callable[[Connection, int], T]) -> T:
        """Run `work` in a transaction, with SQLite's data_version, which changes with others'
        commits."""
        with self._writing:
            writer = self._writer or self._open_writer()
            told = store_error
            try:
                writer.execute("BEGIN IMMEDIATE")
                self._check_file()
                version = writer.execute("PRAGMA data_version").get
                is_new = version != self._seen_version
                if is_new:
                    # Another process has written, or we have just begun: it may have migrated.
                    check_version(writer, self._path)
                result = work(writer, version)
                told = commit_error
                writer.execute("COMMIT")
                if is_new:
                    let_log_go(writer)
            except BaseException as error:
                self._drop(writer)
                if isinstance(error, FAILURES):
                    raise told(error, self._path) from error
                raise
            self._log.committed(writer)
            return result

    def _put(self, query: str, *values: Any) -> None:
        self._write(lambda writer, _: writer.execute(QUERIES[query], values))

    def _open_writer(self) -> Connection:
        self._refuse_if_closed()
        if self._refused is not None:
            raise self._refused
        self._check_file()
        self._writer = open_writer(self._path, self._new_ledger_id)
        self._file = identity(self._path)
        return self._writer

    def _check_file(self) -> None:
        """Refuse to write to a file that lost its name: the data would be lost with it."""
        if self._file is not None and identity(self._path) != self._file:
            raise StoreUnavailable(
                f"{self._path} is no longer the file that this process has opened: it was moved, "
                "removed or replaced; nothing was written. Stop this process; put the file back, "
                "or make a new directory out of a backup (`dragoman restore FILE --data NEW`); "
                "then start it again"
            )

    def _session(self, writer: Connection, version: int) -> SqliteSession:
        """A transaction that knows whether another connection has committed since the last one."""
        seen, self._seen_version = self._seen_version, version
        return SqliteSession(writer, self._shelves, is_fresh=seen == version)

    def _drop(self, writer: Connection) -> None:
        """Undo what was begun; the next transaction has a new connection.

        After a failed sync nothing that the old one has cached is to be trusted.
        """
        self._writer = self._seen_version = None
        writer.close(True)

    # Readers

    def _read(self, query: str, *values: Any) -> list[Any]:
        return self._fetch(QUERIES[query], values)

    def _place(self) -> str:
        return str(self._path)

    def _fetch(self, sql: str, bindings: Any) -> list[Any]:
        """Fetch all rows at once, so that no reader holds the WAL back."""
        reader = self._take_reader()
        try:
            found = reader.execute(sql, bindings).fetchall()
            self._readers.check()
        except BaseException as error:
            reader.close(True)
            if isinstance(error, FAILURES):
                raise store_error(error, self._path) from error
            raise
        self._give_back(reader)
        return found

    def _take_reader(self) -> Connection:
        with self._reading:
            self._refuse_if_closed()
            if self._idle_readers:
                return self._idle_readers.pop()
        return self._readers.open()

    def _give_back(self, reader: Connection) -> None:
        with self._reading:
            if not self._is_closed:
                self._idle_readers.append(reader)
                return
        reader.close(True)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreUnavailable(f"{self._path} was closed; open the store again")
