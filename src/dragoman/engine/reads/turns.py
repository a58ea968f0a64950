"""Reading the turns of a task: in their order, attempt after attempt, with what is missing."""

from collections.abc import Iterator
from itertools import chain, dropwhile, islice
from typing import Any, Final

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.events import TurnRecorded
from dragoman.core.ids import turns_stream
from dragoman.core.limits import PAGE_BYTES
from dragoman.core.states.trace import TurnLog
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task, state_of
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line

_PAGE: Final = 500
_MOST_GAPS: Final = 1_000
"""So many turns that are missing are counted out; `missing` has them all."""


class ShownTurn(Struct, frozen=True, gc=False):
    """A turn as it was kept, and where it stands."""

    position: int
    attempt: int
    turn_index: int
    masked: bool
    at: int
    envelope: dict[str, Any]
    by: str = ""
    """Who has shown it, of a turn beside the attempts."""
    beside: int | None = None
    """Beside which attempt it stands; None: it is of one."""

    @property
    def place(self) -> dict[str, Any]:
        """Of which attempt it is; of one beside them, whose and beside which."""
        return {"attempt": self.attempt, "by": self.by, "beside": self.beside}


_PLACE = r"-?[0-9]{1,16}\.[0-9]{1,16}"
GIVEN_CURSOR = rf"^{_PLACE}$(?!\n)"
"""Where a page of turns ended: its attempt and its last turn."""
GIVEN_CURSOR_WORDS = "the cursor of the page before, as it was given"
CURSOR = rf"^(?:{_PLACE})?$(?!\n)"
"""The same, or nothing."""
CURSOR_WORDS = f"{GIVEN_CURSOR_WORDS}, or empty"


class Missing(Struct, frozen=True, gc=False):
    """Turns of an attempt, one after the other, that have not come."""

    attempt: int
    first: int
    last: int


class TurnPage(Struct, frozen=True):
    """Turns in their order; which of those before the last one are missing; whether it goes on."""

    turns: tuple[ShownTurn, ...]
    missing: tuple[Missing, ...]
    more: bool = False

    @property
    def gaps(self) -> tuple[int, ...]:
        """Indexes of turns that are missing, in whatever attempt; the first ones, if many are."""
        ranges = (range(one.first, one.last + 1) for one in self.missing)
        some = (islice(each, _MOST_GAPS) for each in ranges)
        return tuple(islice(dict.fromkeys(chain.from_iterable(some)), _MOST_GAPS))

    @property
    def cursor(self) -> str:
        """Where the next page begins; empty: there is none."""
        return f"{self.turns[-1].attempt}.{self.turns[-1].turn_index}" if self.more else ""


def turns_of(
    store: Store,
    task: str,
    attempt: int | None = None,
    after: int = -1,
    limit: int = _PAGE,
    cursor: str = "",
) -> TurnPage:
    """The turns of the task with this id; of all its attempts one after the other, or of one.

    `after` is a turn of that one; `cursor` is what the page before has said.
    """
    attempts = attempts_of(store, task) if attempt is None else (attempt,)
    first = attempt
    if cursor:
        first, after = map(int, cursor.split("."))
        attempts = tuple(dropwhile(lambda one: one != first, attempts))
    shown: list[ShownTurn] = []
    missing: list[Missing] = []
    size = 0
    for one in attempts:
        last = after if one == first else -1
        while page := store.turns(task, one, last, min(limit, 50)):
            for entry in page:
                if len(shown) == limit or size >= PAGE_BYTES:
                    return TurnPage(tuple(shown), tuple(missing), more=True)
                turn = _turn(entry)
                if turn.turn_index > last + 1:
                    missing += _between(store, task, last, turn)
                last = turn.turn_index
                shown.append(turn)
                size += len(entry.line)
    return TurnPage(tuple(shown), tuple(missing))


def _between(store: Store, task: str, last: int, turn: ShownTurn) -> Iterator[Missing]:
    """What is missing before a turn, behind the last one of its attempt; below 0: it is the first.

    An attempt may count on from the turns of those before it: then these are not missing.
    """
    if last < 0:
        before = (store.turns_back(task, one, 1) for one in range(turn.attempt))
        ends = (_turn(entry).turn_index for page in before for entry in page)
        last = max((end for end in ends if end < turn.turn_index), default=last)
    if turn.turn_index > last + 1:
        yield Missing(turn.attempt, last + 1, turn.turn_index - 1)


def attempts_of(store: Store, task: str) -> tuple[int, ...]:
    """The attempts on a task that may have turns, each followed by what stands beside it.

    0 is for turns from before the first one; below 0 each has those of one agent that had none.
    """
    found, row = find_task(store, task), store.stream(turns_stream(task))
    if isinstance(found, Refusal) or row is None:
        return ()
    log = state_of(store, row)
    assert isinstance(log, TurnLog), "nothing else is folded from that stream"
    return tuple(
        one
        for attempt in range(found.task.attempts + 1)
        for one in (attempt, *(-1 - at for at, who in enumerate(log.beside) if who[1] == attempt))
    )


def _turn(entry: Entry) -> ShownTurn:
    line = read_line(entry.line)
    turn = CODEC.decode(line.event, line.v, line.body)
    assert isinstance(turn, TurnRecorded), "the store finds turns by their rows"
    return ShownTurn(
        entry.position,
        turn.attempt,
        turn.turn_index,
        turn.masked,
        line.at,
        turn.envelope,
        turn.by,
        turn.beside if turn.attempt < 0 else None,
    )


def last_turns(store: Store, task: str, attempt: int, count: int) -> list[ShownTurn]:
    """The last turns of an attempt, in their order."""
    return [_turn(entry) for entry in reversed(store.turns_back(task, attempt, count))]
