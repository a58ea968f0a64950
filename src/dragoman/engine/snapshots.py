"""Streams as they stand: at the point that a batch has reached, and kept from batch to batch."""

from itertools import islice
from typing import Any

from msgspec import Struct

from dragoman.core.states.lease import Lease
from dragoman.engine.ports import IdempotencyRecord
from dragoman.ledger.chain import GENESIS

MAX_CACHED = 20_000
"""Limit of streams, and of stored answers, that are cached from batch to batch."""

AnswerKey = tuple[str, str]
"""The stream in which an idempotency key is unique, and the key."""


class CachedStream(Struct, frozen=True, gc=False):
    """A stream at the point that the batch has reached."""

    number: int
    """0 while the store has no such stream."""
    name: str
    version: int = 0
    hash: bytes = GENESIS
    """The hash of its last entry before the batch, whose own entries are chained at its end."""
    state: Any = None
    """None while it has no entries; else a `State`, of the type that its name implies."""
    lease: Lease | None = None


class StreamCache:
    """Recently used streams and stored answers, kept from batch to batch.

    It is dropped when anything fails or another process writes.
    """

    def __init__(self) -> None:
        self.streams: dict[str, CachedStream] = {}
        self.answers: dict[AnswerKey, IdempotencyRecord] = {}

    def clear(self) -> None:
        """Drop everything."""
        self.streams.clear()
        self.answers.clear()

    def trim(self) -> None:
        """Drop the oldest ones over the limit."""
        _trim(self.streams)
        _trim(self.answers)


def _trim(cache: dict[Any, Any]) -> None:
    if len(cache) > MAX_CACHED:
        for oldest in list(islice(cache, len(cache) - MAX_CACHED * 3 // 4)):
            del cache[oldest]
