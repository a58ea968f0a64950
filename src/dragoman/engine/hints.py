"""Hints that something was committed: whoever waits for it looks at once, instead of later.

A hint may be late, doubled or missing (another process has written): it never says what happened.
"""

from collections.abc import Callable, Collection
from threading import Lock

from dragoman.engine.handle import OnCommit


class Heard:
    """Streams of which something was heard, until somebody sees to them; any thread may add."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._streams = set[str]()

    def add(self, streams: Collection[str]) -> None:
        """Something was heard of these."""
        with self._lock:
            self._streams.update(streams)

    def take(self) -> list[str]:
        """All of them, once, in order."""
        with self._lock:
            taken, self._streams = self._streams, set[str]()
        return sorted(taken)


class Hints:
    """Passes on what the engine says after a commit, to all who listen; any thread may ask."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: tuple[OnCommit, ...] = ()

    def tell(self, streams: Collection[str]) -> None:
        """These streams have new entries. (An `OnCommit`, in the thread that wrote them.)"""
        for listener in self._listeners:
            listener(streams)

    def listen(self, listener: OnCommit) -> Callable[[], None]:
        """Pass hints on to this one from now on; what is returned ends that."""
        with self._lock:
            self._listeners = (*self._listeners, listener)

        def stop() -> None:
            with self._lock:
                self._listeners = tuple(one for one in self._listeners if one is not listener)

        return stop
