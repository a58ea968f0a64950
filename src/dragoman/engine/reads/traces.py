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
from dragoman.core.states.moves import MOVE_NAMES, move_of
from dragoman.core.states.trace import REMEMBERED, Trace
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import decode, find_task, state_of
from dragoman.engine.reads.mailbox import LAST
from dragoman.engine.reads.sessions import asked_in, session_of
from dragoman.engine.subscribe import Gap, gap_at
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, Line, read_line
from dragoman.ledger.transitions import transition_id

TRANSITION: Final = "TASK_TRANSITION"
_RECORDED: Final = EVENT_NAMES[TraceRecorded]
TRACED: Final = frozenset({_RECORDED, *MOVE_NAMES})
"""Names of the events that may be events of a trace."""

_STATUSES: Final = frozenset(get_args(Status))
_PAGE: Final = 500


class Reach(Struct, frozen=True):
    """Limit of one scan of the ledger: number of pages, and entries on each."""

    pages: int = 20
    page: int = _PAGE


_USUAL: Final = Reach()


class Told(Struct, frozen=True, gc=False):
    """An event of a trace in the form of SAOP, and its position in the ledger."""

    position: int
    type: str
    task: str
    masked: bool
    event: dict[str, Any]
    asked_in: str = ""
    """The session in which a move was requested, which need not be that of the work."""

    def is_of(self, session: str) -> bool:
        """True if the event belongs to this session; an empty one is any."""
        return session in ("", self.event["session_id"], self.asked_in)


class TracePage(Struct, frozen=True):
    """Events by position; `next` is the `after` of the next page, at the end too."""

    events: tuple[Told, ...]
    next: int
    gap: Gap | None = None
    """The gap, if the ledger does not reach the requested position: `next` is then its end."""


def is_recorded(store: Store, event_id: str) -> bool:
    """True if the event with this id, in lower case, is recorded."""
    return store.trace(event_id) is not None


def traced(store: Store, entry: Entry) -> Told | None:
    """The trace event that an entry stands for, if any."""
    if entry.event not in TRACED:
        return None
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    if not isinstance(event, TraceRecorded):
        return _moved(store, entry, line, event)
    return None if _is_request(event) else _recorded(entry.position, event)


def _is_request(event: TraceRecorded) -> bool:
    """True for a request of a move: if it was granted, the move itself is the event."""
    payload: Any = event.envelope["payload"] if event.type == TRANSITION else {}
    return payload.get("to_state") in _STATUSES


def _recorded(position: int, event: TraceRecorded) -> Told:
    envelope = event.envelope
    if event.type == TRANSITION:
        payload: Any = envelope["payload"]
        commit = {"git_hash": event.commit} if event.commit else {}
        envelope = {**envelope, "payload": {**payload, **commit, "requested": True}}
    return Told(position, event.type, event.task, event.masked, envelope)


def _moved(store: Store, entry: Entry, line: Line[Any], event: AnyEvent) -> Told:
    move = move_of(event)
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
    told = {
        "event_id": asked_by or transition_id(entry.hash),
        "session_id": session_of(store, entry, event),
        "payload": payload,
    }
    return Told(entry.position, TRANSITION, task, False, told, asked_in(store, event))


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
        return _of_session(store, session, after, limit)
    return _of_everyone(store, after, limit, reach)


def _of_task(store: Store, task: str, session: str, after: int, limit: int) -> TracePage:
    recorded = store.traces(task, after, limit)
    # After the last one of a full page there may be more: moves beyond it belong to the next page.
    until = recorded[-1].position if len(recorded) == limit else None
    moves = [
        entry for entry in _moves(store, task, after) if until is None or entry.position <= until
    ]
    entries = sorted((*recorded, *moves), key=lambda entry: entry.position)
    told = (event for entry in entries if (event := traced(store, entry)) is not None)
    wanted = (one for one in told if one.is_of(session))
    return _page(wanted, after if not entries else entries[-1].position, limit)


def _of_session(store: Store, session: str, after: int, limit: int) -> TracePage:
    """The recorded events of a session, and the moves in it or requested in it, which replace their
    requests."""
    stream = trace_stream(session)
    recorded = (one for one in _history(store, stream, after) if one.event == _RECORDED)
    said = [(one, decode(one)) for one in islice(recorded, limit)]
    claims = store.claims(session, after, limit)
    # After the last one of a full page there may be more, which belong to the next page.
    full = [page[-1].position for page in ([one for one, _ in said], claims) if len(page) == limit]
    until = min(full, default=LAST)
    moves, granted = list[Told](), set[str]()
    claims += store.claims_back(session, after + 1, REMEMBERED)
    for task in _tasks_of(store, session, claims, (event for _, event in said)):
        for entry in _moves(store, task, after):
            move = _moved(store, entry, read_line(entry.line), decode(entry))
            if move.is_of(session):
                moves.append(move)
                granted |= {move.event["event_id"]}
    events = [
        _recorded(entry.position, event)
        for entry, event in said
        if isinstance(event, TraceRecorded) and event.event_id not in granted
    ]
    told = sorted((*events, *moves), key=lambda one: one.position)
    end = until if full else said[-1][0].position if said else after
    return _page((one for one in told if one.position <= until), end, limit)


def _tasks_of(
    store: Store, session: str, claims: Iterable[Entry], said: Iterable[AnyEvent]
) -> set[str]:
    """The tasks of a session: by its events, by its claims, and by requests for moves, which may
    precede the task."""
    row = store.stream(trace_stream(session))
    trace = None if row is None else state_of(store, row)
    known = trace.tasks if isinstance(trace, Trace) else ()
    held = (claim.stream.partition(":")[2] for claim in claims)
    found = (
        find_task(store, _named_in(one))
        for one in said
        if isinstance(one, TraceRecorded) and not one.task and _is_request(one)
    )
    return {*known, *held, *(one.task.id for one in found if not isinstance(one, Refusal))}


def _named_in(request: TraceRecorded) -> str:
    payload: Any = request.envelope["payload"]
    return payload["task_id"]


def _moves(store: Store, task: str, after: int) -> Iterator[Entry]:
    return (one for one in _history(store, task_stream(task), after) if one.event in MOVE_NAMES)


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
            told = traced(store, entry)
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
