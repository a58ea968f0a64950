"""Closes streams of thoughts that end without a last chunk: records the carried-over text.

A chunk may end in the beginning of a secret, which is carried over to the next one. An agent that
was stopped in the middle of a thought sends none; after some minutes the rest is recorded as the
last chunk. The state of a private key between two lines of a terminal is dropped then.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Protocol

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.errors import Refused
from dragoman.core.trace import RecordTrace
from dragoman.engine.hub import Hub
from dragoman.engine.queries.traces import is_event_recorded


class StaleCarryOver(Protocol):
    """Port: carry-over whose stream ended."""

    def find_stale(self, is_recorded: Callable[[str], bool]) -> Iterable[tuple[str, str]]:
        """Key and text of each carry-over without a chunk for minutes; empty: nothing is left.

        `is_recorded` says of an event whether it is in the ledger.
        """
        ...

    def drop(self, key: str) -> None:
        """Drop a stale carry-over; that of a later chunk stays."""
        ...


class StaleStreamCloser:
    """Records the carry-over of stale streams."""

    name = "stale-streams"

    def __init__(
        self,
        hub: Hub,
        carry_over: StaleCarryOver,
        close_stream: Callable[[str, str], RecordTrace | None],
    ) -> None:
        """`close_stream` makes the last chunk of a key's text, if it is of a thought."""
        self._hub = hub
        self._carry_over = carry_over
        self._close_stream = close_stream

    def run_once(self, now: int) -> int:
        """Close stale streams; their number."""
        del now
        closed = 0
        for key, text in self._carry_over.find_stale(partial(is_event_recorded, self._hub.store)):
            last_chunk = self._close_stream(key, text) if text else None
            try:
                if last_chunk is not None:
                    self._hub.submit(HUB_ACTOR, last_chunk)
            except Refused as refused:
                if refused.code == "overloaded":
                    return closed
            else:
                closed += last_chunk is not None
            # Recorded first, so that a crash in between doubles nothing and loses nothing.
            self._carry_over.drop(key)
        return closed
