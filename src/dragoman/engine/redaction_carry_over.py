"""Carry-over of chunked redaction: the unflushed end of a text until its next chunk.

A chunk is redacted inside its transaction, where one request follows the other: its carry-over is
known only there. What is carried over is stored outside the ledger, and is on disk before the
events are on record, for all requests of a batch in one write.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from dragoman.core.base import Command
from dragoman.core.errors import StoreUnavailable

IsRecorded = Callable[[str], bool]
"""Takes the id of an event, in lower case; True if it is recorded."""


class CarryOverNotStored(StoreUnavailable):
    """The carry-over cannot be stored, so nothing of its requests was written."""


class StoredCarryOver(Struct, frozen=True):
    """The carry-over under a key, once an event is recorded."""

    key: str
    event: str
    before: str
    """The carry-over that is valid until then."""
    after: str

    def resolve(self, is_recorded: IsRecorded) -> str:
        """The carry-over that is valid, depending on whether its event is recorded."""
        return self.after if is_recorded(self.event) else self.before


class CarryOverStore(Protocol):
    """Durable storage of carry-overs; called by one thread at a time."""

    def get(self, key: str, is_recorded: IsRecorded) -> str:
        """The carry-over of the last chunk that is recorded; empty: none."""
        ...

    def put(self, updates: Sequence[StoredCarryOver]) -> None:
        """Store these durably, each for when its event is recorded; raises CarryOverNotStored."""
        ...


class CarryOver(Struct, frozen=True, eq=False):
    """A chunk of a text that is redacted behind the carry-over of the chunk before it."""

    store: CarryOverStore
    key: str
    event: str
    text_digest: str
    """A digest of the chunk as received: the same, whatever carry-over it is redacted with."""
    redact: Callable[[str], tuple[Command, str]]
    """The command of the chunk behind this carry-over, and what the chunk carries over itself."""


class BatchCarryOvers:
    """The carry-overs of one transaction, whose requests are decided one after the other."""

    def __init__(self, is_recorded: IsRecorded) -> None:
        self._is_recorded = is_recorded
        self._stored: dict[CarryOverStore, dict[str, StoredCarryOver]] = {}

    def redact(self, chunk: CarryOver) -> tuple[Command, StoredCarryOver]:
        """The command of a chunk, and its carry-over: to be added if the chunk is recorded."""
        last = self._stored.get(chunk.store, {}).get(chunk.key)
        held = last.after if last else chunk.store.get(chunk.key, self._is_recorded)
        command, after = chunk.redact(held)
        before = last.before if last else held
        return command, StoredCarryOver(chunk.key, chunk.event, before, after)

    def add(self, chunk: CarryOver, carry_over: StoredCarryOver) -> None:
        """Add one whose event this batch records; the batch is committed as a whole."""
        stored = self._stored.setdefault(chunk.store, {})
        if chunk.key in stored or carry_over.before or carry_over.after:
            stored[chunk.key] = carry_over

    def save(self) -> None:
        """Store them durably, before the batch is recorded."""
        for store, carry_overs in self._stored.items():
            if carry_overs:
                store.put(tuple(carry_overs.values()))
