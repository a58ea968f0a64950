"""Reading traces: the turns of a task in their order, and events from any position on (S-SAOP-3).

A move of a task, whoever made it and in whatever dialect, is an event of type TASK_TRANSITION here,
under the id of the event that has asked for it, if one did. What somebody only said is none: a
request for one of our statuses is told in its own session alone, and other states as `requested`.
"""

from collections.abc import Iterator
from itertools import dropwhile
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.events import (
    EVENT_NAMES,
    AnyEvent,
    Status,
    TaskClaimed,
    TraceRecorded,
    TurnRecorded,
)
from dragoman.core.ids import task_stream, trace_stream, turns_stream
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.moves import MOVE_NAMES, move_of
from dragoman.core.states.trace import TurnLog
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task, state_of
from dragoman.engine.subscribe import Gap, gap_at
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, Line, read_line
from dragoman.ledger.transitions import transition_id

TRANSITION: Final = "TASK_TRANSITION"
TRACED: Final = frozenset({EVENT_NAMES[TraceRecorded], *MOVE_NAMES})
"""Names of the events that may be events of a trace."""

_STATUSES: Final = frozenset(get_args(Status))
_PAGE: Final = 500


class Reach(Struct, frozen=True):
    """How far the ledger is looked through for one answer: so many pages, each of so many."""

    pages: int = 20
    page: int = _PAGE


_USUAL: Final = Reach()
_MOST_BYTES: Final = 32 * 1024 * 1024
"""A page ends with the turn with which it becomes as long as this."""
MOST_GAPS: Final = 1_000


class Told(Struct, frozen=True, gc=False):
    """An event of a trace as SAOP has it, and where it stands in the ledger."""

    position: int
    type: str
    task: str
    masked: bool
    event: dict[str, Any]


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
GIVEN_CURSOR = rf"\A{_PLACE}\Z"
"""Where a page of turns ended: its attempt and its last turn."""
GIVEN_CURSOR_WORDS = "the cursor of the page before, as it was given"
CURSOR = rf"\A(?:{_PLACE})?\Z"
"""The same, or nothing."""
CURSOR_WORDS = f"{GIVEN_CURSOR_WORDS}, or empty"


class TurnPage(Struct, frozen=True):
    """Turns in their order; which of those before the last one are missing; whether it goes on."""

    turns: tuple[ShownTurn, ...]
    gaps: tuple[int, ...]
    more: bool = False

    @property
    def cursor(self) -> str:
        """Where the next page begins; empty: there is none."""
        return f"{self.turns[-1].attempt}.{self.turns[-1].turn_index}" if self.more else ""


class TracePage(Struct, frozen=True):
    """Events by position; `next` is the `after` of the next page, at the end too."""

    events: tuple[Told, ...]
    next: int
    gap: Gap | None = None
    """Where the page was asked for, if the ledger does not go so far: `next` is its end."""


def traced(entry: Entry) -> Told | None:
    """The event of a trace that an entry is, if it is one."""
    if entry.event not in TRACED:
        return None
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    if not isinstance(event, TraceRecorded):
        return _moved(entry, line, event)
    told = _recorded(entry.position, event)
    is_request = told.type == TRANSITION and told.event["payload"]["to_state"] in _STATUSES
    return None if is_request else told


def _said(entry: Entry) -> Told | None:
    """The event of a session as it was sent, whatever came of it."""
    if entry.event != EVENT_NAMES[TraceRecorded]:
        return None
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    assert isinstance(event, TraceRecorded), "it has that name"
    return _recorded(entry.position, event)


def _recorded(position: int, event: TraceRecorded) -> Told:
    envelope = event.envelope
    if event.type == TRANSITION:
        payload: Any = envelope["payload"]
        commit = {"git_hash": event.commit} if event.commit else {}
        envelope = {**envelope, "payload": {**payload, **commit, "requested": True}}
    return Told(position, event.type, event.task, event.masked, envelope)


def _moved(entry: Entry, line: Line[Any], event: AnyEvent) -> Told:
    move = move_of(event)
    assert move is not None, "only moves have these names"
    asked_by: str = getattr(event, "asked_by", "")
    task, commit = entry.stream.partition(":")[2], getattr(event, "commit", "")
    session = event.session if isinstance(event, TaskClaimed) else ""
    payload = {
        "type": TRANSITION,
        "task_id": task,
        "from_state": move.from_,
        "to_state": move.to,
        **({"git_hash": commit} if commit else {}),
        "timestamp": to_rfc3339(line.at),
        **({"asked_by": asked_by} if asked_by else {}),
    }
    told = {
        "event_id": asked_by or transition_id(entry.hash),
        "session_id": session or entry.stream,
        "payload": payload,
    }
    return Told(entry.position, TRANSITION, task, False, told)


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
    gaps: list[int] = []
    size = 0
    for one in attempts:
        last = after if one == first else -1
        while page := store.turns(task, one, last, min(limit, 50)):
            for entry in page:
                if len(shown) == limit or size >= _MOST_BYTES:
                    return TurnPage(tuple(shown), tuple(dict.fromkeys(gaps)), more=True)
                turn = _turn(entry)
                room = MOST_GAPS - len(gaps)
                gaps += range(last + 1, min(turn.turn_index, last + 1 + room))
                last = turn.turn_index
                shown.append(turn)
                size += len(entry.line)
    return TurnPage(tuple(shown), tuple(dict.fromkeys(gaps)))


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


def events_of(
    store: Store,
    *,
    task: str = "",
    session: str = "",
    after: int = 0,
    limit: int = _PAGE,
    reach: Reach = _USUAL,
) -> TracePage:
    """Events after a position: of a task (by its id), of a session, of both, or of everyone."""
    gap = gap_at(store, after)
    if gap is not None:
        return TracePage((), gap.until, gap)
    if task:
        return _of_task(store, task, session, after, limit)
    if session:
        return _page(_of_session(store, session, after), after, limit)
    return _of_everyone(store, after, limit, reach)


def _of_task(store: Store, task: str, session: str, after: int, limit: int) -> TracePage:
    recorded = store.traces(task, after, limit)
    # Behind the last one of a full page there may be more: moves beyond it belong to the next.
    until = recorded[-1].position if len(recorded) == limit else None
    moves = [
        entry
        for entry in _history(store, task_stream(task), after)
        if entry.event in MOVE_NAMES and (until is None or entry.position <= until)
    ]
    entries = sorted((*recorded, *moves), key=lambda entry: entry.position)
    told = (event for event in map(traced, entries) if event is not None)
    wanted = (one for one in told if session in ("", one.event["session_id"]))
    return _page(wanted, after if not entries else entries[-1].position, limit)


def _of_session(store: Store, session: str, after: int) -> Iterator[Told]:
    stream = trace_stream(session)
    version = _version_after(store, stream, after)
    while page := store.history(stream, version, _PAGE):
        version = page[-1].version
        yield from filter(None, map(_said, page))


def _version_after(store: Store, stream: str, position: int) -> int:
    """The version of a stream's last entry up to a position: both rise together."""
    row = store.stream(stream)
    low, high = 0, 0 if row is None else row.version
    while low < high:
        middle = (low + high + 1) // 2
        (entry,) = store.history(stream, middle - 1, 1)
        if entry.position <= position:
            low = middle
        else:
            high = middle - 1
    return low


def _of_everyone(store: Store, after: int, limit: int, reach: Reach) -> TracePage:
    found: list[Told] = []
    for _ in range(reach.pages):
        page = store.entries(after, reach.page)
        for entry in page:
            after = entry.position
            told = traced(entry)
            if told is not None:
                found.append(told)
                if len(found) == limit:
                    return TracePage(tuple(found), after)
        if len(page) < reach.page:
            break
    return TracePage(tuple(found), after)


def _page(events: Iterator[Told], end: int, limit: int) -> TracePage:
    found: list[Told] = []
    for told in events:
        found.append(told)
        if len(found) == limit:
            return TracePage(tuple(found), told.position)
    return TracePage(tuple(found), max(end, found[-1].position if found else 0))


def _history(store: Store, stream: str, after: int) -> Iterator[Entry]:
    version = _version_after(store, stream, after)
    while page := store.history(stream, version, _PAGE):
        version = page[-1].version
        yield from page


def last_turns(store: Store, task: str, attempt: int, count: int) -> list[ShownTurn]:
    """The last turns of an attempt, in their order."""
    return [_turn(entry) for entry in reversed(store.turns_back(task, attempt, count))]
