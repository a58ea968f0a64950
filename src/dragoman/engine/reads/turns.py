"""Reading the turns of a task: in their order, attempt after attempt, with what is missing."""

from collections.abc import Iterator
from itertools import chain, dropwhile, islice
from typing import Any, Final

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.events import TurnRecorded
from dragoman.core.ids import turns_stream
from dragoman.core.limits import MAX_PAGE_BYTES
from dragoman.core.states.trace import TurnLog
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task, stream_state
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line

_TURN_PAGE: Final = 500
_MAX_GAPS: Final = 1_000
"""Limit of missing turns that are listed one by one; `missing` has all as ranges."""


class TurnView(Struct, frozen=True, gc=False):
    """A turn as it was recorded, and its position."""

    position: int
    attempt: int
    turn_index: int
    masked: bool
    at: int
    envelope: dict[str, Any]
    by: str = ""
    """The agent that sent it, of a turn outside of the attempts."""
    beside: int | None = None
    """The attempt after which it came; None: it belongs to one."""

    @property
    def attempt_fields(self) -> dict[str, Any]:
        """JSON fields that say to which attempt it belongs."""
        return {"attempt": self.attempt, "by": self.by, "beside": self.beside}


_CURSOR_PATTERN = r"-?[0-9]{1,16}\.[0-9]{1,16}"
CURSOR_PATTERN = rf"^{_CURSOR_PATTERN}$(?!\n)"
"""The end of a page of turns: its attempt and its last turn."""
CURSOR_DESCRIPTION = "the cursor of the previous page, unchanged"
OPTIONAL_CURSOR_PATTERN = rf"^(?:{_CURSOR_PATTERN})?$(?!\n)"
"""The same, or empty."""
OPTIONAL_CURSOR_DESCRIPTION = f"{CURSOR_DESCRIPTION}, or empty"


class MissingTurns(Struct, frozen=True, gc=False):
    """A range of missing turns of an attempt."""

    attempt: int
    first: int
    last: int


class TurnPage(Struct, frozen=True):
    """Turns in order, the missing ones before the last, and whether there are more."""

    turns: tuple[TurnView, ...]
    missing: tuple[MissingTurns, ...]
    more: bool = False

    @property
    def gaps(self) -> tuple[int, ...]:
        """Indexes of missing turns, in any attempt; only the first ones, if there are many."""
        ranges = (range(one.first, one.last + 1) for one in self.missing)
        some = (islice(each, _MAX_GAPS) for each in ranges)
        return tuple(islice(dict.fromkeys(chain.from_iterable(some)), _MAX_GAPS))

    @property
    def cursor(self) -> str:
        """The cursor of the next page; empty: there is none."""
        return f"{self.turns[-1].attempt}.{self.turns[-1].turn_index}" if self.more else ""


def turn_page(
    store: Store,
    task: str,
    attempt: int | None = None,
    after: int = -1,
    limit: int = _TURN_PAGE,
    cursor: str = "",
) -> TurnPage:
    """A page of the turns of the task with this id; of all its attempts in order, or of one.

    `after` is a turn index of that attempt; `cursor` is that of the page before.
    """
    attempts = attempts_with_turns(store, task) if attempt is None else (attempt,)
    first = attempt
    if cursor:
        first, after = map(int, cursor.split("."))
        attempts = tuple(dropwhile(lambda one: one != first, attempts))
    turns: list[TurnView] = []
    missing: list[MissingTurns] = []
    size = 0
    for one in attempts:
        last = after if one == first else -1
        while page := store.turns(task, one, last, min(limit, 50)):
            for entry in page:
                if len(turns) == limit or size >= MAX_PAGE_BYTES:
                    return TurnPage(tuple(turns), tuple(missing), more=True)
                turn = _turn_view(entry)
                if turn.turn_index > last + 1:
                    missing += _missing_before(store, task, last, turn)
                last = turn.turn_index
                turns.append(turn)
                size += len(entry.line)
    return TurnPage(tuple(turns), tuple(missing))


def _missing_before(store: Store, task: str, last: int, turn: TurnView) -> Iterator[MissingTurns]:
    """The turns that are missing between the last one (below 0: none) and this one.

    An attempt may continue the count of those before it: then nothing is missing.
    """
    if last < 0:
        before = (store.last_turns(task, one, 1) for one in range(turn.attempt))
        ends = (_turn_view(entry).turn_index for page in before for entry in page)
        last = max((end for end in ends if end < turn.turn_index), default=last)
    if turn.turn_index > last + 1:
        yield MissingTurns(turn.attempt, last + 1, turn.turn_index - 1)


def attempts_with_turns(store: Store, task: str) -> tuple[int, ...]:
    """The attempts on a task that may have turns, each followed by the turns outside of it.

    0 is for turns from before the first attempt; numbers below 0 are for agents that held none.
    """
    found, row = find_task(store, task), store.stream(turns_stream(task))
    if isinstance(found, Refusal) or row is None:
        return ()
    log = stream_state(store, row)
    assert isinstance(log, TurnLog), "the stream folds into a TurnLog"
    return tuple(
        one
        for attempt in range(found.task.attempts + 1)
        for one in (
            attempt,
            *(-1 - at for at, agent in enumerate(log.beside) if agent[1] == attempt),
        )
    )


def _turn_view(entry: Entry) -> TurnView:
    line = read_line(entry.line)
    turn = CODEC.decode(line.event, line.v, line.body)
    assert isinstance(turn, TurnRecorded), "rows of turns belong to TurnRecorded"
    return TurnView(
        entry.position,
        turn.attempt,
        turn.turn_index,
        turn.masked,
        line.at,
        turn.envelope,
        turn.by,
        turn.beside if turn.attempt < 0 else None,
    )


def last_turns(store: Store, task: str, attempt: int, count: int) -> list[TurnView]:
    """The last turns of an attempt, in their order."""
    return [_turn_view(entry) for entry in reversed(store.last_turns(task, attempt, count))]
