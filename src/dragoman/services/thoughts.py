"""Thoughts without an end: what was held back of one is told when no chunk has come for minutes.

A chunk may end in what could be the beginning of a secret: that waits for the next one. An agent
that was stopped in the middle of a thought sends none. What is known of a private key between two
lines of a terminal is forgotten then.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import RecordTrace
from dragoman.core.errors import Refused
from dragoman.engine.hub import Hub
from dragoman.engine.reads.traces import is_recorded


class Tails(Protocol):
    """Port: carry-over whose stream ended."""

    def left(self, is_recorded: Callable[[str], bool]) -> Iterable[tuple[str, str]]:
        """Key and text of each carry-over without a chunk for minutes, or without a stream to go
        on.

        Repeated until it is dropped. `is_recorded` says of an event whether it is in the ledger.
        """
        ...

    def drop(self, key: str) -> None:
        """Drop the stale text; text of a later chunk stays."""
        ...


class Thoughts:
    """Records the carry-over of stale streams."""

    name = "thoughts"

    def __init__(
        self, hub: Hub, tails: Tails, end: Callable[[str, str], RecordTrace | None]
    ) -> None:
        """`close_stream` makes the last chunk of a key's text, if it is of a thought."""
        self._hub = hub
        self._tails = tails
        self._end = end

    def run_once(self, now: int) -> int:
        """Close stale streams; their number."""
        del now
        ended = 0
        for key, held in self._tails.left(partial(is_recorded, self._hub.store)):
            last = self._end(key, held)
            try:
                if last is not None:
                    self._hub.do(SYSTEM, last)
            except Refused as refused:
                if refused.code == "overloaded":
                    return ended
            else:
                ended += last is not None
            # Recorded first, so that a crash in between doubles nothing and loses nothing.
            self._tails.drop(key)
        return ended
