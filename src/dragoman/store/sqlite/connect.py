"""Connections to the file: one that writes, those that read beside it; a check of its length."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import apsw

from dragoman.core.errors import StoreCorrupt, StoreUnavailable
from dragoman.store.sqlite.apsw_types import DRIVER_ERRORS, Connection, open_database
from dragoman.store.sqlite.errors import BUSY_TIMEOUT_MS, store_error
from dragoman.store.sqlite.migrate import migrate

# --- length of the file -----------------------------------------------------------------------

_JOURNALS = ("-wal", "-journal")


def check_file_length(connection: Connection, path: Path) -> None:
    """Raise StoreCorrupt if nobody writes to the file and it is shorter than its header says.

    SQLite reads a truncated last page as zeros, and goes on. Beside a journal nothing can be said:
    it may hold pages that the file does not have yet. Only sizes are asked for: if this process
    opened and closed the file itself, the locks of all its connections would be gone.
    """
    missing = _missing_bytes(connection, path)
    # A process that has just closed the file may have written to it between the two checks.
    if missing and _missing_bytes(connection, path) == missing:
        raise StoreCorrupt(
            f"{path} is truncated (bytes missing: {missing}): it was cut, or not copied "
            "completely; "
            "nothing was written. Keep the file as it is; copy it again, or make a new directory "
            "out of a backup: `dragoman restore FILE --data NEW`"
        )


def _missing_bytes(connection: Connection, path: Path) -> int:
    """The number of missing bytes, as far as can be known."""
    expected = connection.pragma("page_count") * connection.pragma("page_size")
    # Committed data may be in a journal beside the file.
    has_journal = any(_file_size(path.with_name(path.name + end)) for end in _JOURNALS)
    return 0 if has_journal else max(0, expected - _file_size(path))


def _file_size(path: Path) -> int:
    """The size of a file; 0 if it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


# --- connections ------------------------------------------------------------------------------

_MIN_SQLITE = (3, 51, 3)

_WAL_SIZE_LIMIT = 64 * 1024 * 1024

_WAL_PAGES = 1_000
"""After so many pages (4 MiB) a commit copies the WAL into the file."""

_CACHE_KIB = 8 * 1024
"""Small, because a commit that has split a page scans all cached pages; the system caches the rest.
"""

FileIdentity = tuple[int, int]
"""The device of a file and its inode."""


def check_sqlite_version(version: str) -> None:
    """Refuse a SQLite that can damage a WAL which several connections write and reset."""
    if tuple(map(int, version.split("."))) < _MIN_SQLITE:
        oldest = ".".join(map(str, _MIN_SQLITE))
        raise StoreUnavailable(
            f"SQLite {version} can damage a database that several processes use; {oldest} or "
            "newer is needed. Install a current apsw"
        )


def open_writer(path: Path, new_ledger_id: Callable[[], str]) -> Connection:
    """The connection that writes; the file is created or migrated if need be.

    A WAL that was found is kept at close, until `allow_wal_removal`: SQLite skips what it cannot
    read there, and only a comparison of the ledger with its checkpoints shows that more was
    committed. Until then it can still be repaired, or restored whole.
    """
    _create_private(path)
    has_wal = path.with_name(f"{path.name}-wal").exists()

    def configure(connection: Connection) -> None:
        _configure(connection)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_wal)
        check_file_length(connection, path)
        migrate(connection, path, new_ledger_id)
        _enable_wal(connection, path)
        if has_wal:
            _sync_existing_wal(connection)

    return _open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, configure)


def _create_private(path: Path) -> None:
    """Create a new file that only its owner can access, in any folder; SQLite gives the files
    beside it the same rights."""
    # SQLite itself reports every problem, and that the file exists.
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def file_identity(path: Path) -> FileIdentity | None:
    """The file that has this name now; None: none that can be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def allow_wal_removal(connection: Connection) -> None:
    """Allow the WAL to be removed at close: after a commit it is our own, and is copied into the
    file."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, False)


def open_reader(path: Path) -> Connection:
    """A connection that cannot write."""
    return _open(path, apsw.SQLITE_OPEN_READONLY, _configure)


def _open(path: Path, flags: int, configure: Callable[[Connection], None]) -> Connection:
    try:
        if path.exists() and not os.access(path, os.W_OK):
            # SQLite would go on, and the files that it puts beside this one could not be written
            # either, also by a user who may write later.
            raise apsw.ReadOnlyError("no right to write to the file")
        connection = open_database(path, flags)
    except apsw.Error as error:
        raise store_error(error, path) from error
    try:
        configure(connection)
    except BaseException as error:
        connection.close(True)
        if isinstance(error, DRIVER_ERRORS):
            raise store_error(error, path) from error
        raise
    return connection


def _configure(connection: Connection) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # One plan for a statement, whatever is bound to it. Otherwise partial indexes make SQLite plan
    # anew for every value, and a lookup takes twelve times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.pragma("trusted_schema", 0)
    connection.pragma("cell_size_check", 1)
    connection.pragma("cache_size", -_CACHE_KIB)


def _enable_wal(connection: Connection, path: Path) -> None:
    """Turn on the WAL: a commit is on the disk when it returns, and readers do not wait for it."""
    mode = _switch_to_wal(connection)
    if mode != "wal":
        raise StoreUnavailable(
            f"{path} is on a file system that cannot share a write-ahead log (the journal mode "
            f"stays {mode}). Put it on a local disk"
        )
    connection.pragma("synchronous", "full")
    connection.pragma("journal_size_limit", _WAL_SIZE_LIMIT)
    connection.pragma("wal_autocheckpoint", _WAL_PAGES)
    # The first read opens the WAL, so that this connection also removes it when it is closed last.
    connection.pragma("data_version")
    # Without this, REPLACE would remove entries and not fire the trigger that forbids it.
    connection.pragma("recursive_triggers", 1)


def _sync_existing_wal(connection: Connection) -> None:
    """Sync a WAL that was found.

    A process that was killed may have left a commit there that it never synced. The repeat of that
    request is answered as done: from then on a power cut must not undo it.
    """
    # The WAL is synced by then; a full disk is reported by the next write.
    with suppress(apsw.FullError):
        connection.pragma("wal_checkpoint", "passive")


def _switch_to_wal(connection: Connection) -> str:
    """Set the journal mode. SQLite lets no process wait for another that switches a new file."""
    give_up_at = monotonic() + BUSY_TIMEOUT_MS / 1_000
    while True:
        try:
            return connection.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if monotonic() >= give_up_at:
                raise
            # It does wait for this lock, and then the other process has switched, or is done.
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
