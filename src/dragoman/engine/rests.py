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
"""Whether the event with this id, in small letters, is on record."""
_NOTHING: Final = ("", "")


class RestsUnkept(StoreUnavailable):
    """What is held back cannot be kept, so nothing of its requests was written."""


class Left(Struct, frozen=True):
    """What is held back under a key, once an event is on record."""

    key: str
    event: str
    before: str
    """What holds until then."""
    after: str


class Keeper(Protocol):
    """Where that waits; the threads that ask do so one at a time."""

    def get(self, key: str, is_recorded: Recorded) -> str:
        """What the last part that is on record has left; empty: nothing."""
        ...

    def put(self, left: Sequence[Left]) -> None:
        """Keep these durably, each for when its event is on record; RestsUnkept."""
        ...

    def settle(self, left: Sequence[Left]) -> None:
        """The events of these are on record."""
        ...


class Rest(Struct, frozen=True, eq=False):
    """What one part of a text goes on with, and what it leaves."""

    shelf: "Shelf"
    key: str
    event: str
    said: str
    """A digest of its words as they came: the same, whatever it goes on with."""
    before: str
    after: str
    commands: tuple[AnyCommand, ...]
    """What is asked for if it goes on with that."""
    again: Callable[[str], "Rest"]
    """The same part, as it goes on with something else."""


class Shelf:
    """A keeper, and what is probably there once all that is under way is on record."""

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self._expected: dict[str, tuple[str, str]] = {}
        """Key -> what is held back, and after which event. Where this is wrong, or the oldest is
        forgotten, a part is looked through twice, and no more."""

    def expected(self, key: str) -> str:
        """What a part that is looked through now will probably go on with."""
        return self._expected.get(key, _NOTHING)[0]

    def expect(self, rest: Rest) -> None:
        """This is under way."""
        self._expected.pop(rest.key, None)
        if rest.after:
            self._expected[rest.key] = rest.after, rest.event
            if len(self._expected) > _MOST_EXPECTED:
                del self._expected[next(iter(self._expected))]

    def expect_no_more(self, rest: Rest) -> None:
        """It leaves nothing: it was refused, or is on record already."""
        if self._expected.get(rest.key, _NOTHING)[1] == rest.event:
            del self._expected[rest.key]


class Batch:
    """The rests of one transaction, whose requests are decided one after the other."""

    def __init__(self, is_recorded: Recorded) -> None:
        self._is_recorded = is_recorded
        self._left: dict[Shelf, dict[str, Left]] = {}

    def level(self, rest: Rest) -> Rest:
        """The part as it goes on with what is held back in truth."""
        last = self._left.get(rest.shelf, {}).get(rest.key)
        held = last.after if last else rest.shelf.keeper.get(rest.key, self._is_recorded)
        if held == rest.before:
            return rest
        anew = rest.again(held)
        rest.shelf.expect(anew)
        return anew

    def leave(self, rest: Rest) -> None:
        """Its event is recorded by this batch, and with it all before it: none stands alone."""
        first = self._left.get(rest.shelf, {}).get(rest.key)
        if first or rest.before or rest.after:
            before = first.before if first else rest.before
            left = Left(rest.key, rest.event, before, rest.after)
            self._left.setdefault(rest.shelf, {})[rest.key] = left

    def keep(self) -> None:
        """Put what is left where it outlives the hub, before the batch is on record."""
        for shelf, left in self._left.items():
            shelf.keeper.put(tuple(left.values()))

    def settle(self) -> None:
        """The batch is on record."""
        for shelf, left in self._left.items():
            shelf.keeper.settle(tuple(left.values()))
