"""What a request holds back of a text whose next part may come: kept beside the record, not in it.

A part is looked through on what is expected to be held back, before there is a transaction. What is
held back is known for sure only inside of it, where one request comes after the other: if that is
something else, the part is looked through anew. What is then held back is on disk before the events
are on record, for all requests of a batch in one stroke.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from dragoman.core.commands import AnyCommand
from dragoman.core.errors import StoreUnavailable

_MOST_EXPECTED: Final = 1_024

Recorded = Callable[[str], bool]
"""Takes the id of an event, in lower case; True if it is recorded."""
_NOTHING: Final = ("", "")


class RestsUnkept(StoreUnavailable):
    """The carry-over cannot be stored, so nothing of its requests was written."""


class Left(Struct, frozen=True):
    """The carry-over under a key, once an event is recorded."""

    key: str
    event: str
    before: str
    """The carry-over that is valid until then."""
    after: str


class Keeper(Protocol):
    """Durable storage of carry-overs; called by one thread at a time."""

    def get(self, key: str, is_recorded: Recorded) -> str:
        """The carry-over of the last chunk that is recorded; empty: none."""
        ...

    def put(self, left: Sequence[Left]) -> None:
        """Store these durably, each for when its event is recorded; raises CarryOverNotStored."""
        ...

    def settle(self, left: Sequence[Left]) -> None:
        """Confirm that the events of these are recorded."""
        ...


class Rest(Struct, frozen=True, eq=False):
    """The carry-over before and after one chunk of a text."""

    shelf: "Shelf"
    key: str
    event: str
    said: str
    """A digest of the chunk as received: the same, whatever carry-over it is redacted with."""
    before: str
    after: str
    commands: tuple[AnyCommand, ...]
    """The commands, if the chunk follows `before`."""
    again: Callable[[str], "Rest"]
    """Redacts the same chunk with another carry-over."""


class Shelf:
    """A store of carry-overs, and the ones expected once all requests under way are recorded."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self._expected: dict[str, tuple[str, str]] = {}
        """Key -> the expected carry-over, and its event. A wrong or forgotten one only means that a
        chunk is redacted twice."""

    def expected(self, key: str) -> str:
        """The carry-over that a new chunk will probably follow."""
        return self._expected.get(key, _NOTHING)[0]

    def expect(self, rest: Rest) -> None:
        """Expect this one, which is under way."""
        self._expected.pop(rest.key, None)
        if rest.after:
            self._expected[rest.key] = rest.after, rest.event
            if len(self._expected) > _MOST_EXPECTED:
                del self._expected[next(iter(self._expected))]

    def expect_no_more(self, rest: Rest) -> None:
        """Expect nothing of this one: it was refused, or is recorded already."""
        if self._expected.get(rest.key, _NOTHING)[1] == rest.event:
            del self._expected[rest.key]


class Batch:
    """The carry-overs of one transaction, whose requests are decided one after the other."""

    def __init__(self, is_recorded: Recorded) -> None:
        self._is_recorded = is_recorded
        self._left: dict[Shelf, dict[str, Left]] = {}

    def level(self, rest: Rest) -> Rest:
        """The chunk redacted with its true carry-over."""
        last = self._left.get(rest.shelf, {}).get(rest.key)
        held = last.after if last else rest.shelf.keeper.get(rest.key, self._is_recorded)
        if held == rest.before:
            return rest
        anew = rest.again(held)
        rest.shelf.expect(anew)
        return anew

    def leave(self, rest: Rest) -> None:
        """Add one whose event this batch records; the batch is committed as a whole."""
        first = self._left.get(rest.shelf, {}).get(rest.key)
        if first or rest.before or rest.after:
            before = first.before if first else rest.before
            left = Left(rest.key, rest.event, before, rest.after)
            self._left.setdefault(rest.shelf, {})[rest.key] = left

    def keep(self) -> None:
        """Store them durably, before the batch is recorded."""
        for shelf, left in self._left.items():
            shelf.keeper.put(tuple(left.values()))

    def settle(self) -> None:
        """Confirm that the batch is recorded."""
        for shelf, left in self._left.items():
            shelf.keeper.settle(tuple(left.values()))
