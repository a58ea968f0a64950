"""The database as it was at one moment: a reader that stays in one transaction."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragoman.store.sqlite.driver import DRIVER_ERRORS, Connection
from dragoman.store.sqlite.faults import store_error
from dragoman.store.sqlite.readers import SqliteReads
from dragoman.store.sqlite.session import QUERIES
from dragoman.store.sqlite.still import Readers, open_readers


class SqliteSnapshot(SqliteReads):
    """Reads in one transaction: the WAL keeps what is written meanwhile, and cannot be reset before
    its end."""

    def __init__(self, reader: Connection, path: Path, check: Callable[[], None]) -> None:
        self._reader = reader
        self._path = path
        self._check = check

    def _read(self, query: str, *values: Any) -> list[Any]:
        try:
            found = self._reader.execute(QUERIES[query], values).fetchall()
        except DRIVER_ERRORS as error:
            raise store_error(error, self._path) from error
        self._check()
        return found

    def _location(self) -> str:
        return str(self._path)


def schema_version(path: Path) -> int:
    """The number of migrations that a file has had; nothing is written to it."""
    reader = open_readers(path).open()
    try:
        return reader.execute("PRAGMA user_version").get
    except DRIVER_ERRORS as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)


@contextmanager
def open_snapshot(path: Path, readers: Readers | None = None) -> Generator[SqliteSnapshot]:
    """The database as it is now."""
    readers = readers or open_readers(path)
    reader = readers.open()
    try:
        reader.execute("BEGIN")
        view = SqliteSnapshot(reader, path, readers.check_unchanged)
        # SQLite chooses the moment at the first read.
        view.head()
        yield view
    finally:
        reader.close(True)
