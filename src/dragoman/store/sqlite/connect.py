"""Connections to the file: the one that writes, and those that read beside it."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

import apsw

from dragoman.core.errors import StoreUnavailable
from dragoman.store.sqlite.driver import FAILURES, Connection, open_database
from dragoman.store.sqlite.faults import BUSY_TIMEOUT_MS, store_error
from dragoman.store.sqlite.length import check_length
from dragoman.store.sqlite.migrate import migrate

_OLDEST_SQLITE = (3, 51, 3)
_WAL_KEPT = 64 * 1024 * 1024
WAL_PAGES = 8_000
"""After so many pages (32 MiB) the next commit copies what the copier has not."""
_CACHE_KIB = 8 * 1024
"""Small, because a commit that has split a page scans all cached pages; the system caches the rest.
"""

Identity = tuple[int, int]
"""The device of a file and its inode."""


def check_sqlite(version: str) -> None:
    """Refuse a SQLite that can damage a WAL which several connections write and reset."""
    if tuple(map(int, version.split("."))) < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
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
    _make_private(path)
    has_wal = path.with_name(f"{path.name}-wal").exists()

    def set_up(connection: Connection) -> None:
        if connection.readonly("main"):
            # SQLite would go on, and the files that it puts beside this one could not be written
            # either, also by a user who may write later.
            raise apsw.ReadOnlyError("no right to write to the file")
        _set_up(connection)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_wal)
        check_length(connection, path)
        migrate(connection, path, new_ledger_id)
        _write_ahead(connection, path)
        if has_wal:
            _settle(connection)

    return _open(path, apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE, set_up)


def _make_private(path: Path) -> None:
    """Create a new file that only its owner can access, in any folder; SQLite gives the files
    beside it the same rights."""
    # SQLite itself reports every problem, and that the file exists.
    with suppress(OSError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def identity(path: Path) -> Identity | None:
    """The file that has this name now; None: none that can be seen."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def let_log_go(connection: Connection) -> None:
    """Allow the WAL to be removed at close: after a commit it is our own, and is copied into the
    file."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, False)


def open_reader(path: Path) -> Connection:
    """A connection that cannot write."""
    return _open(path, apsw.SQLITE_OPEN_READONLY, _set_up)


def open_copier(path: Path) -> Connection:
    """A connection that copies the WAL into the file, and never removes it."""

    def set_up(connection: Connection) -> None:
        _set_up(connection)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.pragma("synchronous", "full")

    return _open(path, apsw.SQLITE_OPEN_READWRITE, set_up)


def open_beside(path: Path) -> Connection:
    """A connection that reads the existing WAL, by its index, and creates no file."""
    return _open_as(path, "readonly_shm=1")


def open_alone(path: Path) -> Connection:
    """A connection to the file without its WAL: only where nobody else has it open."""
    return _open_as(path, "immutable=1")


def _open_as(path: Path, how: str) -> Connection:
    uri = f"{path.absolute().as_uri()}?{how}"
    return _open(path, apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, _set_up, uri)


def _open(
    path: Path, flags: int, set_up: Callable[[Connection], None], uri: str = ""
) -> Connection:
    try:
        connection = open_database(uri or path, flags)
    except apsw.Error as error:
        raise store_error(error, path) from error
    try:
        set_up(connection)
    except BaseException as error:
        connection.close(True)
        if isinstance(error, FAILURES):
            raise store_error(error, path) from error
        raise
    return connection


def _set_up(connection: Connection) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 1)
    # One plan for a statement, whatever is bound to it. Otherwise partial indexes make SQLite plan
    # anew for every value, and a lookup takes twelve times as long.
    connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
    connection.pragma("trusted_schema", 0)
    connection.pragma("cell_size_check", 1)
    connection.pragma("cache_size", -_CACHE_KIB)


def _write_ahead(connection: Connection, path: Path) -> None:
    """Turn on the WAL: a commit is on the disk when it returns, and readers do not wait for it."""
    mode = _switch_to_wal(connection)
    if mode != "wal":
        raise StoreUnavailable(
            f"{path} is on a file system that cannot share a write-ahead log (the journal mode "
            f"stays {mode}). Put it on a local disk"
        )
    connection.pragma("synchronous", "full")
    connection.pragma("journal_size_limit", _WAL_KEPT)
    connection.pragma("wal_autocheckpoint", WAL_PAGES)
    # The first read opens the WAL, so that this connection also removes it when it is closed last.
    connection.pragma("data_version")
    # Without this, REPLACE would remove entries and not fire the trigger that forbids it.
    connection.pragma("recursive_triggers", 1)


def _settle(connection: Connection) -> None:
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
