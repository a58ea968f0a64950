"""A database where nothing can be written: how it is read all the same, if that is certain.

To share the write-ahead log with others SQLite needs a file beside the database. Where none can be
made (a file system that is read-only, or full to the last byte), or only one with the rights of the
database, so that nobody can write to it later, it can still read the database
alone, if it is told that nobody writes. That is so when there is no log to be taken into it; and
since nobody can be kept from beginning one, whatever was read is thrown away if the file has
changed meanwhile.
"""

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from dragoman.core.errors import StoreUnavailable
from dragoman.store.sqlite.connect import open_alone, open_beside, open_reader
from dragoman.store.sqlite.driver import FAILURES, Connection
from dragoman.store.sqlite.faults import store_error
from dragoman.store.sqlite.length import check_length, has_log, unseen
from dragoman.store.sqlite.migrate import check_current

_CANNOT_WRITE = (
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.FullError,
    apsw.IOError,
)


def is_unwritable(refused: StoreUnavailable) -> bool:
    """True if a store was refused because its file cannot be written."""
    return isinstance(refused.__cause__, _CANNOT_WRITE)


class Shared:
    """Readers beside a writer: SQLite itself ensures that they see whole commits."""

    def __init__(self, path: Path, open_one: Callable[[Path], Connection] = open_reader) -> None:
        self._path = path
        self._open_one = open_one

    def open(self) -> Connection:
        """A new connection."""
        return self._open_one(self._path)

    def check(self) -> None:
        """Nothing to check: what was read is valid."""


class Still:
    """Readers of a file that nobody writes to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _state(path)

    def open(self) -> Connection:
        """A new connection."""
        return open_alone(self._path)

    def check(self) -> None:
        """Check that what was read is valid; StoreUnavailable if the file has changed meanwhile."""
        if has_log(self._path) or _state(self._path) != self._seen:
            raise StoreUnavailable(
                f"another process has begun to write to {self._path} during a read without locks; "
                "the result may be inconsistent and is not shown. Try again"
            )


Readers = Shared | Still


def readers_of(path: Path) -> Readers:
    """Readers for a process without a writer; they create no file that hinders a later one."""
    return Shared(path) if os.access(path, os.W_OK) else _readers_that_make_no_file(path)


def readers_where_nothing_can_be_written(path: Path) -> Readers:
    """Readers of a database of this version where nothing can be written; StoreUnavailable says why
    it cannot be read."""
    readers = _readers_that_make_no_file(path)
    try:
        _try(readers, path)
    except StoreUnavailable as refused:
        if isinstance(readers, Still) or not is_unwritable(refused):
            raise
        raise StoreUnavailable(
            f"{path} was not closed properly: its last writes are in a log beside it, "
            "which cannot be applied because nothing can be written there "
            f"({refused.__cause__}). Make it writable, or make room; or copy the "
            "whole directory to where you can write, and read it there with --data"
        ) from refused
    return readers


def _readers_that_make_no_file(path: Path) -> Readers:
    return Shared(path, open_beside) if has_log(path) else Still(path)


def _try(readers: Readers, path: Path) -> None:
    reader = readers.open()
    try:
        check_current(reader, path)
        check_length(reader, path)
    except FAILURES as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)


def _state(path: Path) -> tuple[int, ...]:
    """Values that change when somebody writes to the file."""
    try:
        found = path.stat()
    except OSError as error:
        raise unseen(path, error) from error
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
