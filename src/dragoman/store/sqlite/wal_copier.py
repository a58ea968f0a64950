"""Copies the write-ahead log into the database file while others write.

SQLite itself copies it in a commit, and everyone waits for that one. What was copied beside the
writer is left out then. Only a log that is copied whole starts over, and under load that is left to
a commit: the copier is always a little behind.
"""

import threading
from contextlib import suppress
from pathlib import Path

import apsw

from dragoman.core.errors import StoreUnavailable
from dragoman.store.sqlite.apsw_types import Connection
from dragoman.store.sqlite.connect import WAL_PAGES, open_wal_copier

_COPY_EVERY_PAGES = 1_000
"""The WAL is copied after so many more pages (4 MiB)."""


class WalCopier:
    """Copies in a thread of its own, which starts with the first copy that is due."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._pages_at_request = 0
        """Pages that the writer had written when a copy was last requested."""
        self._wal_pages = 0
        """Pages in the WAL when it was last copied."""
        self._is_due = threading.Event()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._is_stopped = False
        self._thread: threading.Thread | None = None

    def on_commit(self, writer: Connection) -> None:
        """Request a copy after a commit, if one is due; waits only when the writer is far ahead."""
        written, _ = writer.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)
        if (
            abs(written - self._pages_at_request) < _COPY_EVERY_PAGES
        ):  # a new connection counts from 0
            return
        self._pages_at_request = written
        # Otherwise a copier that is slower than the writer would let the WAL grow without end.
        self._is_idle.wait()
        if self._wal_pages < WAL_PAGES:
            self._request_copy()
        else:
            # One of the next commits copies the rest, which needs the copier to be idle.
            self._wal_pages = 0

    def close(self) -> None:
        """Stop copying; the writer does the rest."""
        self._is_stopped = True
        self._is_due.set()
        if self._thread is not None:
            self._thread.join()

    def _request_copy(self) -> None:
        if self._is_stopped:
            return
        self._is_idle.clear()
        self._is_due.set()
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="log copier", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # no more threads can be started: commits stay in the WAL
                self._stop()
            else:
                self._thread = thread

    def _run(self) -> None:
        # What cannot be copied stays in the WAL: the writer tries again, and reports the error.
        try:
            with suppress(apsw.Error, StoreUnavailable):
                self._copy(open_wal_copier(self._path))
        finally:
            self._stop()

    def _stop(self) -> None:
        self._is_stopped = True
        self._is_idle.set()

    def _copy(self, connection: Connection) -> None:
        try:
            while self._is_due.wait() and not self._is_stopped:
                self._is_due.clear()
                with suppress(apsw.Error):
                    self._wal_pages, _ = connection.wal_checkpoint(
                        mode=apsw.SQLITE_CHECKPOINT_PASSIVE
                    )
                self._is_idle.set()
        finally:
            connection.close(True)
