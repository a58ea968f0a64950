"""Traces: events of sessions and tasks from any position on (S-SAOP-3), and turns of attempts.

A move of a task, whoever made it and in whatever dialect, is an event of type TASK_TRANSITION here,
under the id of the event that has asked for it, if one did. A request for one of our statuses that
was not granted is no move: it is shown in its own session alone, and other states as `requested`.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, islice
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.attempt_state import TaskClaimed
from dragoman.core.base import Event, Status
from dragoman.core.errors import Refusal
from dragoman.core.event_table import EVENT_NAMES, STATUS_CHANGE_NAMES
from dragoman.core.ids import task_stream, trace_stream, turns_stream
from dragoman.core.limits import MAX_PAGE_BYTES
from dragoman.core.task_state import status_change_of
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.trace import MAX_REMEMBERED, Trace, TraceRecorded, TurnLog, TurnRecorded
from dragoman.engine.ports import Gap, Store, find_gap
from dragoman.engine.queries.entries import (
    END_OF_LIST,
    decode_event,
    stream_entries,
    stream_state,
    version_at,
)
from dragoman.engine.queries.tasks import find_task
from dragoman.ledger.entry import CODEC, Entry, Line, read_line, transition_id

# --- sessions of moves ------------------------------------------------------------------------

_CLAIMED: Final = EVENT_NAMES[TaskClaimed]

_CLAIM_PAGE: Final = 100
"""Number of entries of a task that are read at a time, to find the claim before one of them."""


def session_of_move(store: Store, entry: Entry, event: Event) -> str:
    """The session of a move: that of the attempt which it begins or ends; else the one in which it
    was requested; else the stream of its task stands for it."""
    return (
        _session_of_attempt(store, entry, event) or requesting_session(store, event) or entry.stream
    )


def requesting_session(store: Store, event: Event) -> str:
    """The session of the event that requested a move; empty: none did."""
    caused_by: str = getattr(event, "caused_by", "")
    found = store.trace_event(caused_by.lower()) if caused_by else None
    return "" if found is None else found.stream.partition(":")[2]


def _session_of_attempt(store: Store, entry: Entry, event: Event) -> str:
    if isinstance(event, TaskClaimed):
        return event.session
    move = status_change_of(event)
    if move is None or move.from_ != "in-progress":
        return ""
    ends = range(entry.version - 1, 0, -_CLAIM_PAGE)
    pages = (
        store.history(entry.stream, max(0, end - _CLAIM_PAGE), min(end, _CLAIM_PAGE))
        for end in ends
    )
    claims = (one for page in pages for one in reversed(page) if one.event == _CLAIMED)
    claim = next(map(decode_event, claims), None)
    return claim.session if isinstance(claim, TaskClaimed) else ""


# --- events -----------------------------------------------------------------------------------

TRANSITION: Final = "TASK_TRANSITION"

_RECORDED: Final = EVENT_NAMES[TraceRecorded]

TRACE_EVENTS: Final = frozenset({_RECORDED, *STATUS_CHANGE_NAMES})
"""Names of the events that may be events of a trace."""

_STATUSES: Final = frozenset(get_args(Status))

_PAGE: Final = 500


class ScanLimit(Struct, frozen=True):
    """Limit of one scan of the ledger: number of pages, and entries on each."""

    pages: int = 20
    page_size: int = _PAGE


_DEFAULT_SCAN: Final = ScanLimit()


class TraceEvent(Struct, frozen=True, gc=False):
    """An event of a trace in the form of SAOP, and its position in the ledger."""

    position: int
    type: str
    task: str
    masked: bool
    event: dict[str, Any]
    requested_in: str = ""
    """The session in which a move was requested, which need not be that of the work."""

    def is_in_session(self, session: str) -> bool:
        """True if the event belongs to this session; an empty one is any."""
        return session in ("", self.event["session_id"], self.requested_in)


class TracePage(Struct, frozen=True):
    """Events by position; `next` is the `after` of the next page, at the end too."""

    events: tuple[TraceEvent, ...]
    next: int
    gap: Gap | None = None
    """The gap, if the ledger does not reach the requested position: `next` is then its end."""


def is_event_recorded(store: Store, event_id: str) -> bool:
    """True if the event with this id, in lower case, is recorded."""
    return store.trace_event(event_id) is not None


def trace_event_of(store: Store, entry: Entry) -> TraceEvent | None:
    """The trace event that an entry stands for, if any."""
    if entry.event not in TRACE_EVENTS:
        return None
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    if not isinstance(event, TraceRecorded):
        return _move_event(store, entry, line, event)
    return None if _is_move_request(event) else _recorded_event(entry.position, event)


def _is_move_request(event: TraceRecorded) -> bool:
    """True for a request of a move: if it was granted, the move itself is the event."""
    payload: Any = event.envelope["payload"] if event.type == TRANSITION else {}
    return payload.get("to_state") in _STATUSES


def _recorded_event(position: int, event: TraceRecorded) -> TraceEvent:
    envelope = event.envelope
    if event.type == TRANSITION:
        payload: Any = envelope["payload"]
        commit = {"git_hash": event.commit} if event.commit else {}
        envelope = {**envelope, "payload": {**payload, **commit, "requested": True}}
    return TraceEvent(position, event.type, event.task, event.masked, envelope)


def _move_event(store: Store, entry: Entry, line: Line[Any], event: Event) -> TraceEvent:
    move = status_change_of(event)
    assert move is not None, "only moves have these event names"
    caused_by: str = getattr(event, "caused_by", "")
    task, commit = entry.stream.partition(":")[2], getattr(event, "commit", "")
    payload = {
        "type": TRANSITION,
        "task_id": task,
        "from_state": move.from_,
        "to_state": move.to,
        **({"git_hash": commit} if commit else {}),
        "timestamp": to_rfc3339(line.at),
        **({"caused_by": caused_by} if caused_by else {}),
    }
    event_data = {
        "event_id": caused_by or transition_id(entry.hash),
        "session_id": session_of_move(store, entry, event),
        "payload": payload,
    }
    return TraceEvent(
        entry.position, TRANSITION, task, False, event_data, requesting_session(store, event)
    )


def trace_page(
    store: Store,
    *,
    task: str = "",
    session: str = "",
    after: int = 0,
    limit: int = _PAGE,
    scan: ScanLimit = _DEFAULT_SCAN,
) -> TracePage:
    """Events after a position: of a task (by its id), of a session, of both, or of everyone."""
    gap = find_gap(store, after)
    if gap is not None:
        return TracePage((), gap.until, gap)
    if task:
        return _list_of_task(store, task, session, after, limit)
    if session:
        return _list_of_session(store, session, after, limit)
    return _list_all(store, after, limit, scan)


def _list_of_task(store: Store, task: str, session: str, after: int, limit: int) -> TracePage:
    recorded = store.trace_events(task, after, limit)
    # After the last one of a full page there may be more: moves beyond it belong to the next page.
    until = recorded[-1].position if len(recorded) == limit else None
    moves = [
        entry for entry in _moves(store, task, after) if until is None or entry.position <= until
    ]
    entries = sorted((*recorded, *moves), key=lambda entry: entry.position)
    events = (event for entry in entries if (event := trace_event_of(store, entry)) is not None)
    in_session = (one for one in events if one.is_in_session(session))
    return _take_page(in_session, after if not entries else entries[-1].position, limit)


def _list_of_session(store: Store, session: str, after: int, limit: int) -> TracePage:
    """The recorded events of a session, and the moves in it or requested in it, which replace their
    requests."""
    stream = trace_stream(session)
    recorded = (one for one in _history_after(store, stream, after) if one.event == _RECORDED)
    recorded_events = [(one, decode_event(one)) for one in islice(recorded, limit)]
    claims = store.claims(session, after, limit)
    # After the last one of a full page there may be more, which belong to the next page.
    full = [
        page[-1].position
        for page in ([one for one, _ in recorded_events], claims)
        if len(page) == limit
    ]
    until = min(full, default=END_OF_LIST)
    moves, granted = list[TraceEvent](), set[str]()
    claims += store.last_claims(session, after + 1, MAX_REMEMBERED)
    for task in _tasks_of_session(store, session, claims, (event for _, event in recorded_events)):
        for entry in _moves(store, task, after):
            move = _move_event(store, entry, read_line(entry.line), decode_event(entry))
            if move.is_in_session(session):
                moves.append(move)
                granted |= {move.event["event_id"]}
    events = [
        _recorded_event(entry.position, event)
        for entry, event in recorded_events
        if isinstance(event, TraceRecorded) and event.event_id not in granted
    ]
    ordered = sorted((*events, *moves), key=lambda one: one.position)
    end = until if full else recorded_events[-1][0].position if recorded_events else after
    return _take_page((one for one in ordered if one.position <= until), end, limit)


def _tasks_of_session(
    store: Store, session: str, claims: Iterable[Entry], events: Iterable[Event]
) -> set[str]:
    """The tasks of a session: by its events, by its claims, and by requests for moves, which may
    precede the task."""
    row = store.stream(trace_stream(session))
    trace = None if row is None else stream_state(store, row)
    known = trace.tasks if isinstance(trace, Trace) else ()
    held = (claim.stream.partition(":")[2] for claim in claims)
    found = (
        find_task(store, _requested_task(one))
        for one in events
        if isinstance(one, TraceRecorded) and not one.task and _is_move_request(one)
    )
    return {*known, *held, *(one.task.id for one in found if not isinstance(one, Refusal))}


def _requested_task(request: TraceRecorded) -> str:
    payload: Any = request.envelope["payload"]
    return payload["task_id"]


def _moves(store: Store, task: str, after: int) -> Iterator[Entry]:
    return (
        one
        for one in _history_after(store, task_stream(task), after)
        if one.event in STATUS_CHANGE_NAMES
    )


def _list_all(store: Store, after: int, limit: int, scan: ScanLimit) -> TracePage:
    found: list[TraceEvent] = []
    for _ in range(scan.pages):
        page = store.entries(after, scan.page_size)
        for entry in page:
            after = entry.position
            event = trace_event_of(store, entry)
            if event is not None:
                found.append(event)
                if len(found) == limit:
                    return TracePage(tuple(found), after)
        if len(page) < scan.page_size:
            break
    return TracePage(tuple(found), after)


def _take_page(events: Iterator[TraceEvent], end: int, limit: int) -> TracePage:
    found: list[TraceEvent] = []
    for event in events:
        found.append(event)
        if len(found) == limit:
            return TracePage(tuple(found), event.position)
    return TracePage(tuple(found), max(end, found[-1].position if found else 0))


def _history_after(store: Store, stream: str, after: int) -> Iterator[Entry]:
    return stream_entries(store, stream, version_at(store, stream, after), page=_PAGE)


# --- turns ------------------------------------------------------------------------------------

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
    after_attempt: int | None = None
    """The attempt after which it came; None: it belongs to one."""

    @property
    def attempt_fields(self) -> dict[str, Any]:
        """JSON fields that say to which attempt it belongs."""
        return {"attempt": self.attempt, "by": self.by, "after_attempt": self.after_attempt}


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
            *(-1 - at for at, agent in enumerate(log.outside_authors) if agent[1] == attempt),
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
        turn.after_attempt if turn.attempt < 0 else None,
    )


def last_turns(store: Store, task: str, attempt: int, count: int) -> list[TurnView]:
    """The last turns of an attempt, in their order."""
    return [_turn_view(entry) for entry in reversed(store.last_turns(task, attempt, count))]
