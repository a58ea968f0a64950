"""Readers of a database, also where nothing can be written, if that is certain to be safe.

To share the write-ahead log with others SQLite needs a file beside the database. Where none can be
made (a file system that is read-only, or full to the last byte), or only one with the rights of the
database, so that nobody can write to it later, it can still read the database alone, if it is told
that nobody writes. That is so when there is no log to be taken into it; and since nobody can be
kept from starting one, whatever was read is thrown away if the file has changed meanwhile.
"""

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from dragoman.core.errors import StoreUnavailable
from dragoman.store.sqlite.apsw_types import DRIVER_ERRORS, Connection
from dragoman.store.sqlite.connect import (
    check_file_length,
    has_journal,
    open_reader,
    open_with_wal,
    open_without_wal,
    unreadable_file,
)
from dragoman.store.sqlite.errors import store_error
from dragoman.store.sqlite.migrate import check_current

_WRITE_ERRORS = (
    apsw.CantOpenError,
    apsw.ReadOnlyError,
    apsw.PermissionsError,
    apsw.FullError,
    apsw.IOError,
)


def is_write_error(error: StoreUnavailable) -> bool:
    """True if a store was refused because its file cannot be written."""
    return isinstance(error.__cause__, _WRITE_ERRORS)


class SharedReaders:
    """Readers beside a writer: SQLite itself ensures that they see whole commits."""

    def __init__(self, path: Path, open_one: Callable[[Path], Connection] = open_reader) -> None:
        self._path = path
        self._open_one = open_one

    def open(self) -> Connection:
        """A new connection."""
        return self._open_one(self._path)

    def check_unchanged(self) -> None:
        """Nothing to check: what was read is valid."""


class ImmutableReaders:
    """Readers of a file that nobody writes to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp = _file_stamp(path)

    def open(self) -> Connection:
        """A new connection."""
        return open_without_wal(self._path)

    def check_unchanged(self) -> None:
        """Check that what was read is valid; StoreUnavailable if the file has changed meanwhile."""
        if has_journal(self._path) or _file_stamp(self._path) != self._stamp:
            raise StoreUnavailable(
                f"another process has begun to write to {self._path} during a read without locks; "
                "the result may be inconsistent and is not shown. Try again"
            )


Readers = SharedReaders | ImmutableReaders


def open_readers(path: Path) -> Readers:
    """Readers for a process without a writer; they create no file that hinders a later one."""
    return SharedReaders(path) if os.access(path, os.W_OK) else _readers_without_files(path)


def open_readers_read_only(path: Path) -> Readers:
    """Readers of a database of this version where nothing can be written; StoreUnavailable says why
    it cannot be read."""
    readers = _readers_without_files(path)
    try:
        _check_readable(readers, path)
    except StoreUnavailable as refused:
        if isinstance(readers, ImmutableReaders) or not is_write_error(refused):
            raise
        raise StoreUnavailable(
            f"{path} was not closed properly: its last writes are in a log beside it, "
            "which cannot be applied because nothing can be written there "
            f"({refused.__cause__}). Make it writable, or make room; or copy the "
            "whole directory to where you can write, and read it there with --data"
        ) from refused
    return readers


def _readers_without_files(path: Path) -> Readers:
    return SharedReaders(path, open_with_wal) if has_journal(path) else ImmutableReaders(path)


def _check_readable(readers: Readers, path: Path) -> None:
    reader = readers.open()
    try:
        check_current(reader, path)
        check_file_length(reader, path)
    except DRIVER_ERRORS as error:
        raise store_error(error, path) from error
    finally:
        reader.close(True)


def _file_stamp(path: Path) -> tuple[int, ...]:
    """Values that change when somebody writes to the file."""
    try:
        found = path.stat()
    except OSError as error:
        raise unreadable_file(path, error) from error
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
