"""Carry-over of chunked redaction: the unflushed end of a text until its next chunk.

A chunk is redacted together with the carry-over that is expected, before there is a transaction.
The true carry-over is known only inside the transaction, where one request follows the other: if it
differs, the chunk is redacted again. What is carried over is stored outside the ledger, and is on
disk before the events are on record, for all requests of a batch in one write.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from dragoman.core.command_table import AnyCommand
from dragoman.core.errors import StoreUnavailable

_MAX_EXPECTED: Final = 1_024

IsRecorded = Callable[[str], bool]
"""Takes the id of an event, in lower case; True if it is recorded."""
_NOTHING: Final = ("", "")


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
    """The carry-over before and after one chunk of a text."""

    tracker: "CarryOverTracker"
    key: str
    event: str
    text_digest: str
    """A digest of the chunk as received: the same, whatever carry-over it is redacted with."""
    before: str
    after: str
    commands: tuple[AnyCommand, ...]
    """The commands, if the chunk follows `before`."""
    redo_with: Callable[[str], "CarryOver"]
    """Redacts the same chunk with another carry-over."""


class CarryOverTracker:
    """A store of carry-overs, and the ones expected once all requests under way are recorded."""

    def __init__(self, store: CarryOverStore) -> None:
        self.store = store
        self._expected: dict[str, tuple[str, str]] = {}
        """Key -> the expected carry-over, and its event. A wrong or forgotten one only means that a
        chunk is redacted twice."""

    def expected(self, key: str) -> str:
        """The carry-over that a new chunk will probably follow."""
        return self._expected.get(key, _NOTHING)[0]

    def expect(self, carry_over: CarryOver) -> None:
        """Expect this one, which is under way."""
        self._expected.pop(carry_over.key, None)
        if carry_over.after:
            self._expected[carry_over.key] = carry_over.after, carry_over.event
            if len(self._expected) > _MAX_EXPECTED:
                del self._expected[next(iter(self._expected))]

    def cancel(self, carry_over: CarryOver) -> None:
        """Expect nothing of this one: it was refused, or is recorded already."""
        if self._expected.get(carry_over.key, _NOTHING)[1] == carry_over.event:
            del self._expected[carry_over.key]


class BatchCarryOvers:
    """The carry-overs of one transaction, whose requests are decided one after the other."""

    def __init__(self, is_recorded: IsRecorded) -> None:
        self._is_recorded = is_recorded
        self._stored: dict[CarryOverTracker, dict[str, StoredCarryOver]] = {}

    def reconcile(self, carry_over: CarryOver) -> CarryOver:
        """The chunk redacted with its true carry-over."""
        last = self._stored.get(carry_over.tracker, {}).get(carry_over.key)
        stored = (
            last.after if last else carry_over.tracker.store.get(carry_over.key, self._is_recorded)
        )
        if stored == carry_over.before:
            return carry_over
        redone = carry_over.redo_with(stored)
        carry_over.tracker.expect(redone)
        return redone

    def add(self, carry_over: CarryOver) -> None:
        """Add one whose event this batch records; the batch is committed as a whole."""
        first = self._stored.get(carry_over.tracker, {}).get(carry_over.key)
        if first or carry_over.before or carry_over.after:
            before = first.before if first else carry_over.before
            stored = StoredCarryOver(carry_over.key, carry_over.event, before, carry_over.after)
            self._stored.setdefault(carry_over.tracker, {})[carry_over.key] = stored

    def save(self) -> None:
        """Store them durably, before the batch is recorded."""
        for tracker, stored in self._stored.items():
            tracker.store.put(tuple(stored.values()))
