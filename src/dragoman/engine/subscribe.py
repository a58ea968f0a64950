"""Following the ledger: readers with a cursor, the newest entries in memory, hints after a commit.

A cursor sees every entry once, in order. A hint only shortens the wait: it may be late, doubled or
missing (another process has written), and never says what happened.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import islice
from threading import Lock

from dragoman.engine.ports import NewEntry
from dragoman.ledger.entry import Entry


def follow(
    read: Callable[[int, int], Sequence[Entry]], after: int, wait: Callable[[], bool]
) -> Iterator[Entry]:
    """Entries after the cursor as they are committed; `read` takes (after, limit), as a store does,
    and `wait` returns False to end.

    Positions are gapless and become visible in order, so the cursor is the last one seen.
    """
    while True:
        page = read(after, _PAGE)
        for entry in page:
            after = entry.position
            yield entry
        if len(page) < _PAGE and not wait():
            return


# --- readers with a cursor --------------------------------------------------------------------

_PAGE = 1_000

# --- the newest entries -----------------------------------------------------------------------

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


# --- hints ------------------------------------------------------------------------------------

OnCommit = Callable[[Collection[str]], None]
"""Called after a commit with the streams that have new entries: a hint, in the thread that wrote
them."""


class DirtyStreams:
    """Streams that were reported as changed, until they are taken; any thread may add."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._streams = set[str]()

    def add(self, streams: Collection[str]) -> None:
        """Add changed streams."""
        with self._lock:
            self._streams.update(streams)

    def take(self) -> list[str]:
        """Take all of them once, sorted."""
        with self._lock:
            streams, self._streams = self._streams, set[str]()
        return sorted(streams)


class CommitHints:
    """Passes the engine's hints after a commit on to all subscribers; thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: tuple[OnCommit, ...] = ()

    def notify(self, streams: Collection[str]) -> None:
        """Report that these streams have new entries. (An `OnCommit`, in the thread that wrote
        them.)"""
        for listener in self._listeners:
            listener(streams)

    def subscribe(self, listener: OnCommit) -> Callable[[], None]:
        """Call this listener with hints from now on; the returned function ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def stop() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return stop
