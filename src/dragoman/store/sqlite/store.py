"""The SQLite store: one writer, and readers beside it that never wait for it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import apsw

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import IntegrityReport, StreamRow, TaskQuery, Transaction
from dragoman.store.sql import MAX_POSITION, SqlMeta
from dragoman.store.sqlite.apsw_types import DRIVER_ERRORS, Connection
from dragoman.store.sqlite.connect import (
    FileIdentity,
    allow_wal_removal,
    check_sqlite_version,
    file_identity,
    open_reader,
    open_writer,
)
from dragoman.store.sqlite.errors import commit_error, store_error
from dragoman.store.sqlite.migrate import check_version
from dragoman.store.sqlite.reads import SqliteReads, SqliteSnapshot, open_snapshot
from dragoman.store.sqlite.schema_check import check_schema
from dragoman.store.sqlite.transaction import QUERIES, IndexRows, SqliteTransaction, stream_row
from dragoman.text.search_terms import Words

# --- integrity check --------------------------------------------------------------------------

_MAX_FINDINGS = 100

_PROGRESS_STEPS = 1_000
"""Steps between two looks at the clock: a few dozen times a second, or more often."""

_NO_DAMAGE = ("ok", "*** in database main ***")
"""The output when nothing is wrong, and the line before findings."""


def check_integrity(path: Path, seconds: float | None) -> IntegrityReport:
    """Check every page, row and index of the file, for at most so many seconds; None: no limit."""
    reader = open_reader(path)
    try:
        found = _run_integrity_check(reader, seconds)
    except apsw.InterruptError:
        return IntegrityReport(is_complete=False)
    except (apsw.CorruptError, apsw.NotADBError) as error:
        return IntegrityReport((str(error),))
    except DRIVER_ERRORS as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)
    return IntegrityReport(tuple(_parse_findings(found)))


def _parse_findings(found: list[tuple[str]]) -> Iterator[str]:
    for (text,) in found:
        yield from (line for line in text.splitlines() if line not in _NO_DAMAGE)


def _run_integrity_check(reader: Connection, seconds: float | None) -> list[tuple[str]]:
    if seconds is not None:
        end = monotonic() + seconds
        reader.set_progress_handler(lambda: monotonic() >= end, _PROGRESS_STEPS)
    return reader.execute(f"PRAGMA integrity_check({_MAX_FINDINGS})").fetchall()


# --- the store --------------------------------------------------------------------------------

T = TypeVar("T")

_TASK_PAGE_QUERIES = {
    (False, False): QUERIES["board"],
    (True, False): QUERIES["board_of_status"],
    (False, True): QUERIES["board_of_owner"],
    (True, True): QUERIES["board_of_status_and_owner"],
}
"""(filtered by status, filtered by owner) -> the query that has an index for it."""


class SqliteStore(SqliteReads, SqlMeta):
    """A store in one file, for any number of threads and for several processes."""

    def __init__(self, path: Path, new_ledger_id: Callable[[], str]) -> None:
        self._path = path
        self._new_ledger_id = new_ledger_id
        self._write_lock = threading.Lock()
        self._writer: Connection | None = None
        self._file: FileIdentity | None = None
        """The file that was opened first."""
        self._last_version: int | None = None
        self._index_rows: IndexRows = {}
        self._read_lock = threading.Lock()
        self._idle_readers: list[Connection] = []
        self._is_closed = False

    @classmethod
    def open(cls, path: Path, new_ledger_id: Callable[[], str]) -> "SqliteStore":
        """Open a database file; it is created or migrated if need be, its directory is not."""
        check_sqlite_version(apsw.sqlite_lib_version())
        store = cls(path, new_ledger_id)
        with store._write_lock:
            store._open_writer()
        return store

    def transact(self, work: Callable[[Transaction], T]) -> T:
        return self._write(lambda writer, version: work(self._transaction(writer, version)))

    def index_texts(self, texts: Sequence[tuple[int, Words]], until: int) -> None:
        def work(writer: Connection, _: int) -> None:
            # No Transaction: the next one must still learn whether another process has written.
            known = int(writer.execute(QUERIES["indexed"]).get or 0)
            if until > known:
                new = [(place, " ".join(words)) for place, words in texts if place > known]
                writer.executemany(QUERIES["put_text"], new)
                writer.execute(QUERIES["put_indexed"], (str(until),))

        self._write(work)

    def find_aliases(self, name: str) -> list[tuple[str, str]]:
        return [(kind, stream) for _, kind, stream in self._read("named", name)]

    def task_page(self, query: TaskQuery) -> list[StreamRow]:
        sql = _TASK_PAGE_QUERIES[query.status is not None, query.owner is not None]
        bindings = {
            "before": MAX_POSITION if query.before is None else query.before,
            "status": query.status,
            "owner": query.owner,
            "limit": query.limit,
        }
        return list(map(stream_row, self._fetch(sql, bindings)))

    def snapshot(self) -> AbstractContextManager[SqliteSnapshot]:
        """The store as it is now, for as long as somebody reads."""
        return open_snapshot(self._path)

    def inspect(self, seconds: float | None = None) -> IntegrityReport:
        """Have SQLite check its file; meanwhile the WAL cannot be reset."""
        self._refuse_if_closed()
        return check_integrity(self._path, seconds)

    def inspect_schema(self) -> IntegrityReport:
        self._refuse_if_closed()
        return check_schema(self._path)

    def close(self) -> None:
        """Close every connection; the writer last, so that it copies the WAL into the file."""
        with self._read_lock:
            self._is_closed = True
            idle, self._idle_readers = self._idle_readers, []
        for reader in idle:
            reader.close(True)
        with self._write_lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    # Writer

    def _write(self, work: Callable[[Connection, int], T]) -> T:
        """Run `work` in a transaction, with SQLite's data_version, which changes with others'
        commits."""
        with self._write_lock:
            writer = self._writer or self._open_writer()
            map_error = store_error
            try:
                writer.execute("BEGIN IMMEDIATE")
                self._check_file()
                version = writer.execute("PRAGMA data_version").get
                is_new = version != self._last_version
                if is_new:
                    # Another process has written, or we have just begun: it may have migrated.
                    check_version(writer, self._path)
                result = work(writer, version)
                map_error = commit_error
                writer.execute("COMMIT")
                if is_new:
                    allow_wal_removal(writer)
            except BaseException as error:
                self._discard_writer(writer)
                if isinstance(error, DRIVER_ERRORS):
                    raise map_error(error, self._path) from error
                raise
            return result

    def _write_one(self, query: str, *values: Any) -> None:
        self._write(lambda writer, _: writer.execute(QUERIES[query], values))

    def _open_writer(self) -> Connection:
        self._refuse_if_closed()
        self._check_file()
        self._writer = open_writer(self._path, self._new_ledger_id)
        self._file = file_identity(self._path)
        return self._writer

    def _check_file(self) -> None:
        """Refuse to write to a file that lost its name: the data would be lost with it."""
        if self._file is not None and file_identity(self._path) != self._file:
            raise StoreUnavailable(
                f"{self._path} is no longer the file that this process has opened: it was moved, "
                "removed or replaced; nothing was written. Stop this process; put the file back, "
                "or make a new directory out of a backup (`dragoman restore FILE --data NEW`); "
                "then start it again"
            )

    def _transaction(self, writer: Connection, version: int) -> SqliteTransaction:
        """A transaction that knows whether another connection has committed since the last one."""
        last_version, self._last_version = self._last_version, version
        return SqliteTransaction(writer, self._index_rows, is_fresh=last_version == version)

    def _discard_writer(self, writer: Connection) -> None:
        """Undo what was begun; the next transaction has a new connection.

        After a failed sync nothing that the old one has cached is to be trusted.
        """
        self._writer = self._last_version = None
        writer.close(True)

    # Readers

    def _read(self, query: str, *values: Any) -> list[Any]:
        return self._fetch(QUERIES[query], values)

    def _location(self) -> str:
        return str(self._path)

    def _fetch(self, sql: str, bindings: Any) -> list[Any]:
        """Fetch all rows at once, so that no reader holds the WAL back."""
        reader = self._take_reader()
        try:
            found = reader.execute(sql, bindings).fetchall()
        except BaseException as error:
            reader.close(True)
            if isinstance(error, DRIVER_ERRORS):
                raise store_error(error, self._path) from error
            raise
        self._return_reader(reader)
        return found

    def _take_reader(self) -> Connection:
        with self._read_lock:
            self._refuse_if_closed()
            if self._idle_readers:
                return self._idle_readers.pop()
        return open_reader(self._path)

    def _return_reader(self, reader: Connection) -> None:
        with self._read_lock:
            if not self._is_closed:
                self._idle_readers.append(reader)
                return
        reader.close(True)

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise StoreUnavailable(f"{self._path} was closed; open the store again")
