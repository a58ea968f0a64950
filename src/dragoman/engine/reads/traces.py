"""Reading traces: the turns of a task in their order, and events from any position on (S-SAOP-3).

A move of a task, whoever made it and in whatever dialect, is an event of type TASK_TRANSITION here,
under the id of the event that has asked for it, if one did. What somebody only said is none: a
request for one of our statuses that was not granted is told in its own session alone, and other
states as `requested`.
"""

from collections.abc import Iterable, Iterator
from itertools import chain, dropwhile, islice
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.events import (
    EVENT_NAMES,
    AnyEvent,
    Status,
    TraceRecorded,
    TurnRecorded,
)
from dragoman.core.ids import task_stream, trace_stream, turns_stream
from dragoman.core.limits import PAGE_BYTES
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.moves import MOVE_NAMES, move_of
from dragoman.core.states.trace import REMEMBERED, Trace, TurnLog
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
    """How far the ledger is looked through for one answer: so many pages, each of so many."""

    pages: int = 20
    page: int = _PAGE


_USUAL: Final = Reach()
_MOST_GAPS: Final = 1_000
"""So many turns that are missing are counted out; `missing` has them all."""


class Told(Struct, frozen=True, gc=False):
    """An event of a trace as SAOP has it, and where it stands in the ledger."""

    position: int
    type: str
    task: str
    masked: bool
    event: dict[str, Any]
    asked_in: str = ""
    """The session in which somebody asked for a move, which need not be that of the work."""

    def is_of(self, session: str) -> bool:
        """Whether it is told to who asks for this session; an empty one is any."""
        return session in ("", self.event["session_id"], self.asked_in)


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


class TracePage(Struct, frozen=True):
    """Events by position; `next` is the `after` of the next page, at the end too."""

    events: tuple[Told, ...]
    next: int
    gap: Gap | None = None
    """Where the page was asked for, if the ledger does not go so far: `next` is its end."""


def is_recorded(store: Store, event_id: str) -> bool:
    """Whether the event with this id, in small letters, is on record."""
    return store.trace(event_id) is not None


def traced(store: Store, entry: Entry) -> Told | None:
    """The event of a trace that an entry is, if it is one."""
    if entry.event not in TRACED:
        return None
    line = read_line(entry.line)
    event = CODEC.decode(line.event, line.v, line.body)
    if not isinstance(event, TraceRecorded):
        return _moved(store, entry, line, event)
    return None if _is_request(event) else _recorded(entry.position, event)


def _is_request(event: TraceRecorded) -> bool:
    """Whether it asks for a move: if that was granted, the move is told."""
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
    assert move is not None, "only moves have these names"
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
    # Behind the last one of a full page there may be more: moves beyond it belong to the next.
    until = recorded[-1].position if len(recorded) == limit else None
    moves = [
        entry for entry in _moves(store, task, after) if until is None or entry.position <= until
    ]
    entries = sorted((*recorded, *moves), key=lambda entry: entry.position)
    told = (event for entry in entries if (event := traced(store, entry)) is not None)
    wanted = (one for one in told if one.is_of(session))
    return _page(wanted, after if not entries else entries[-1].position, limit)


def _of_session(store: Store, session: str, after: int, limit: int) -> TracePage:
    """What was said in a session, and the moves in it or asked for in it, which take the place of
    what has asked for them."""
    stream = trace_stream(session)
    recorded = (one for one in _history(store, stream, after) if one.event == _RECORDED)
    said = [(one, decode(one)) for one in islice(recorded, limit)]
    claims = store.claims(session, after, limit)
    # Behind the last one of a full page there may be more, which belongs to the next.
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
    """The tasks that a session has to do with: by its events, by its claims, and by what somebody
    asks for, who may do so before there is such a task."""
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


def last_turns(store: Store, task: str, attempt: int, count: int) -> list[ShownTurn]:
    """The last turns of an attempt, in their order."""
    return [_turn(entry) for entry in reversed(store.turns_back(task, attempt, count))]
