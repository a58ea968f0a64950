"""Hints that something was committed: whoever waits for it looks at once, instead of later.

A hint may be late, doubled or missing (another process has written): it never says what happened.
"""

from collections.abc import Callable, Collection
from threading import Lock

from dragoman.engine.handle import OnCommit


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
