"""The newest entries that this process has written itself, for those who follow the ledger.

Whoever follows closely need not read back from the store what was just written there. It is a help
and never the truth: what is not here (older, or written by another process) is in the store.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import islice
from threading import Lock

from dragoman.engine.ports import NewEntry
from dragoman.ledger.entry import Entry

MAX_RECENT = 2_048
MAX_RECENT_BYTES = 4 * 1024 * 1024
"""Limits of the number of entries, and of their size."""


class RecentEntries:
    """The newest entries that this process has written, so that close followers need not read them
    back.

    It is a cache: older entries, and those of another process, are in the store. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._entries: deque[tuple[str, NewEntry]] = deque()
        self._bytes = 0
        self._last_position = 0
        """The position of the last one."""

    def append(self, first: int, streams: Iterable[str], written: Sequence[NewEntry]) -> None:
        """Append the entries that were committed, the first of them at this position."""
        with self._lock:
            if first != self._last_position + 1:
                # Another process has written in between, and the cache must have no gaps.
                self._drop(len(self._entries))
            self._entries.extend(zip(streams, written, strict=True))
            self._bytes += sum(len(one.line) for one in written)
            self._last_position = first + len(written) - 1
            self._drop(len(self._entries) - MAX_RECENT)
            while self._bytes > MAX_RECENT_BYTES:
                self._drop(1)

    def after(self, position: int, limit: int) -> list[Entry]:
        """Up to `limit` entries after a position; none if they are not cached."""
        with self._lock:
            start = position - self._last_position + len(self._entries)
            if start < 0:
                return []
            found = list(islice(self._entries, start, start + limit))
        return [
            Entry(at, stream, one.version, one.event, one.line, one.previous, one.hash)
            for at, (stream, one) in enumerate(found, position + 1)
        ]

    def _drop(self, count: int) -> None:
        for _ in range(count):
            self._bytes -= len(self._entries.popleft()[1].line)
