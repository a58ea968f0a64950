"""Reads of the SQLite store: rows as contract values, search expressions, and snapshots."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dragoman.engine.ports import StreamRow
from dragoman.store.sql import SqlReads
from dragoman.store.sqlite.apsw_types import DRIVER_ERRORS, Connection
from dragoman.store.sqlite.connect import open_reader
from dragoman.store.sqlite.errors import store_error
from dragoman.store.sqlite.transaction import QUERIES, stream_row
from dragoman.text.search_terms import SearchQuery, SearchTerm

# --- rows and search expressions --------------------------------------------------------------


def fts5_query(query: SearchQuery) -> str:
    """An FTS5 expression of groups of terms. Words are letters and digits: none ends a string."""
    return " OR ".join(map(_group, query))


def _group(terms: Sequence[SearchTerm]) -> str:
    all_of = " AND ".join(_phrase(term) for term in terms if not term.is_excluded)
    none_of = " OR ".join(_phrase(term) for term in terms if term.is_excluded)
    return f"(({all_of}) NOT ({none_of}))" if none_of else f"({all_of})"


def _phrase(term: SearchTerm) -> str:
    phrase = f'"{" ".join(term.words)}"'
    return f"{phrase} *" if term.is_prefix else phrase


class SqliteReads(SqlReads):
    """Reads of whatever has a connection to the file."""

    def _stream_row(self, found: Any) -> StreamRow:
        return stream_row(found)

    def _search_expression(self, query: SearchQuery) -> str:
        return fts5_query(query)


# --- snapshots --------------------------------------------------------------------------------


class SqliteSnapshot(SqliteReads):
    """Reads in one transaction: the WAL keeps what is written meanwhile, and cannot be reset before
    its end."""

    def __init__(self, reader: Connection, path: Path) -> None:
        self._reader = reader
        self._path = path

    def _read(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._reader.execute(QUERIES[query], values).fetchall()
        except DRIVER_ERRORS as error:
            raise store_error(error, self._path) from error

    def _location(self) -> str:
        return str(self._path)


def schema_version(path: Path) -> int:
    """The number of migrations that a file has had; nothing is written to it."""
    reader = open_reader(path)
    try:
        return reader.execute("PRAGMA user_version").get
    except DRIVER_ERRORS as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)


@contextmanager
def open_snapshot(path: Path) -> Generator[SqliteSnapshot]:
    """The database as it is now."""
    reader = open_reader(path)
    try:
        reader.execute("BEGIN")
        view = SqliteSnapshot(reader, path)
        # SQLite chooses the moment at the first read.
        view.head()
        yield view
    finally:
        reader.close(True)
