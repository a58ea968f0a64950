"""Errors of SQLite mapped to our error tree, with sentences that say what to do."""

from pathlib import Path

import apsw

from dragoman.core.errors import StoreCorrupt, StoreError, StoreLost, StoreUnavailable
from dragoman.store.sqlite.apsw_types import DriverError, extended_code

_MAX_SHOWN = 80
"""Bytes of a damaged text that are shown."""

BUSY_TIMEOUT_MS = 30_000
"""Longest wait for another process that writes."""

_BUSY = (
    f"another process has held {{path}} for {BUSY_TIMEOUT_MS // 1_000} s; nothing was written. "
    "Try again, or find it with `fuser {path}`"
)
_READ_ONLY = (
    "{path} cannot be written ({error}); nothing was changed. Give this user the right to write to "
    "the file, to {path}-wal and -shm if they are there, and to the directory, on a file system "
    "that is mounted for writing"
)
_CANNOT_OPEN = (
    "{path} cannot be opened ({error}). Its directory must exist, and this user needs the right to "
    "read and write both, on a file system that is mounted for writing"
)
_DIRECTORY = (
    "{path} is a directory, and no database; nothing was written. Move it away and put the "
    "database back, or make a new directory out of a backup: `dragoman restore FILE --data NEW`"
)
_FULL = "the disk is full: {path} cannot grow; nothing was written. Free some space, then try again"
_BROKEN_DISK = (
    "the disk under {path} failed ({error}); nothing was written. Check the disk, then try again"
)
_LOST = (
    "the disk under {path} failed during a commit ({error}); check the disk, then repeat the "
    "request under the same key to learn whether it was done"
)
_ADVICE = (
    "Keep the file as it is, and make a new directory out of a backup: `dragoman restore FILE "
    "--data NEW`"
)
_DAMAGED = (
    "{path} is damaged or is not a SQLite database ({error}); nothing was written. " + _ADVICE
)
_OTHER_TABLES = (
    "{path} does not have the tables that it must have ({error}); nothing was written. " + _ADVICE
)
_BAD_TEXT = (
    "{path} is damaged: a text in it can no longer be read ({error}); nothing was written. "
    + _ADVICE
)
_OTHER = "SQLite cannot work on {path} ({error}); nothing was written"

_SENTENCES: tuple[tuple[tuple[type[apsw.Error], ...], type[StoreError], str], ...] = (
    ((apsw.BusyError, apsw.LockedError), StoreUnavailable, _BUSY),
    ((apsw.ReadOnlyError, apsw.PermissionsError, apsw.AuthError), StoreUnavailable, _READ_ONLY),
    ((apsw.CantOpenError,), StoreUnavailable, _CANNOT_OPEN),
    ((apsw.FullError,), StoreUnavailable, _FULL),
    ((apsw.IOError,), StoreUnavailable, _BROKEN_DISK),
    ((apsw.CorruptError, apsw.NotADBError, apsw.FormatError), StoreCorrupt, _DAMAGED),
    ((apsw.SQLError,), StoreCorrupt, _OTHER_TABLES),
    ((apsw.Error,), StoreUnavailable, _OTHER),
)
"""SQLite's errors -> ours; the first that matches."""


def store_error(error: DriverError, path: Path) -> StoreError:
    """Our error for an error of SQLite."""
    if isinstance(error, UnicodeDecodeError):
        return StoreCorrupt(_BAD_TEXT.format(path=path, error=error.object[:_MAX_SHOWN]))
    if path.is_dir():
        return StoreUnavailable(_DIRECTORY.format(path=path))
    if extended_code(error) == apsw.SQLITE_IOERR_SHMSIZE:
        # SQLite's code when there is no room for the index of the WAL.
        return StoreUnavailable(_FULL.format(path=path))
    ours, sentence = next(row[1:] for row in _SENTENCES if isinstance(error, row[0]))
    return ours(sentence.format(path=path, error=error))


def commit_error(error: DriverError, path: Path) -> StoreError:
    """Our error for a commit that failed: after a failed sync the state of the disk is unknown."""
    if isinstance(error, apsw.IOError):
        return StoreLost(_LOST.format(path=path, error=error))
    return store_error(error, path)
