"""Reading traces: their events, from any position on (S-SAOP-3).

A move of a task, whoever made it and in whatever dialect, is an event of type TASK_TRANSITION here,
under the id of the event that has asked for it, if one did. What somebody only said is none: a
request for one of our statuses that was not granted is told in its own session alone, and other
states as `requested`.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.events import (
    EVENT_NAMES,
    AnyEvent,
    Status,
    TraceRecorded,
)
from dragoman.core.ids import task_stream, trace_stream
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.moves import STATUS_CHANGE_NAMES, status_change_of
from dragoman.core.states.trace import MAX_REMEMBERED, Trace
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import decode_event, find_task, stream_state
from dragoman.engine.reads.mailbox import END_OF_LIST
from dragoman.engine.reads.sessions import requesting_session, session_of_move
from dragoman.engine.subscribe import Gap, find_gap
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, Line, read_line
from dragoman.ledger.transitions import transition_id

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


def _move_event(store: Store, entry: Entry, line: Line[Any], event: AnyEvent) -> TraceEvent:
    move = status_change_of(event)
    assert move is not None, "only moves have these event names"
    asked_by: str = getattr(event, "asked_by", "")
    task, commit = entry.stream.partition(":")[2], getattr(event, "commit", "")
    payload = {
        "type": TRANSITION,
        "task_id": task,
        "from_state": move.from_,
        "to_state": move.to,
        **({"git_hash": commit} if commit else {}),
        "timestamp": to_rfc3339(line.at),
        **({"asked_by": asked_by} if asked_by else {}),
    }
    event_data = {
        "event_id": asked_by or transition_id(entry.hash),
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
    store: Store, session: str, claims: Iterable[Entry], events: Iterable[AnyEvent]
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
    version = _version_after(store, stream, after)
    while page := store.history(stream, version, _PAGE):
        version = page[-1].version
        yield from page
