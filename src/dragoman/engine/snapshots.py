"""Streams as they stand: at the point that a batch has reached, and kept from batch to batch."""

from itertools import islice
from typing import Any

from msgspec import Struct

from dragoman.core.states.lease import Lease
from dragoman.engine.ports import Answer
from dragoman.ledger.chain import GENESIS
from dragoman.ledger.views import State

MOST_CACHED = 20_000
"""How many streams, and how many answers, are remembered from batch to batch."""

Place = tuple[str, str]
"""Where an answer is kept: the stream in which its key is unique, and the key."""


class Snapshot(Struct, frozen=True, gc=False):
    """A stream at the point that the batch has reached."""

    number: int
    """0 while the store has no such stream."""
    name: str
    version: int = 0
    hash: bytes = GENESIS
    """Of its last entry before the batch: those of the batch are chained at its end."""
    state: State | None = None
    lease: Lease | None = None


class Cache:
    """What was read and answered of late, kept from batch to batch.

    It is dropped when anything fails or anyone else writes.
    """

    def __init__(self) -> None:
        self.streams: dict[str, Snapshot] = {}
        self.answers: dict[Place, Answer] = {}

    def clear(self) -> None:
        """Forget everything."""
        self.streams.clear()
        self.answers.clear()

    def trim(self) -> None:
        """Forget the oldest when there is too much."""
        _trim(self.streams)
        _trim(self.answers)


def _trim(kept: dict[Any, Any]) -> None:
    if len(kept) > MOST_CACHED:
        for oldest in list(islice(kept, len(kept) - MOST_CACHED * 3 // 4)):
            del kept[oldest]
