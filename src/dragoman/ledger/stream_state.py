"""The state of a stream, folded from its entries, and all rows that a store derives from it.

All of them can be made anew from the ledger, and `verify` compares them with it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core import not_found
from dragoman.core.actor import ACTOR_FOLDS, ActorRecord, CommandRefused, MessageReceived
from dragoman.core.agent import (
    AGENT_FOLDS,
    REPUTATION_FOLDS,
    AgentAssigned,
    AgentDescribed,
    AgentRecord,
    AgentRegistered,
    Reputation,
    agent_list_keys,
    reputation_list_keys,
)
from dragoman.core.base import Event, Status
from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.handoff.state import (
    ACTIVE_STATES,
    HANDOFF_FOLDS,
    Handoff,
    HandoffEscalation,
    HandoffProposed,
    handoff_list_keys,
    package_section,
)
from dragoman.core.ids import check_alias, check_task_id
from dragoman.core.intent.state import (
    INTENT_FOLDS,
    Intent,
    IntentCreated,
    IntentDispatched,
    intent_list_keys,
)
from dragoman.core.mail import (
    MAIL_FOLDS,
    Mail,
    MailPosted,
    mail_list_keys,
)
from dragoman.core.reservation import (
    RESERVATION_FOLDS,
    Reservations,
    ReservationTaken,
)
from dragoman.core.task_state import (
    PRIORITY_RANK,
    TASK_FOLDS,
    Task,
    TaskAliased,
    TaskCreated,
    task_list_keys,
)
from dragoman.core.timestamps import format_hours, to_rfc3339
from dragoman.core.trace import (
    TRACE_FOLDS,
    TURN_FOLDS,
    Trace,
    TraceRecorded,
    TurnLog,
    TurnRecorded,
)
from dragoman.core.wave import WAVE_FOLDS, Wave, WaveStarted, wave_list_keys
from dragoman.core.work_queue import WORK_ITEM_FOLDS, WorkItem, WorkItemAdded
from dragoman.ledger.entry import CODEC, read_line

# --- stream state -----------------------------------------------------------------------------

FOLD_VERSION = 8
"""The version of the folds, raised when the same entries fold into another state; older state rows
are replayed.

A migration comes with it, be it an empty one: a process with the older folds must write no more.
"""

State = (
    Task
    | ActorRecord
    | AgentRecord
    | Mail
    | Wave
    | Reservations
    | Handoff
    | WorkItem
    | Reputation
    | Intent
    | Trace
    | TurnLog
)

Folds = Mapping[type[Any], Callable[[Any, Any, int], Any]]

_STREAMS: dict[str, tuple[type[State], Folds]] = {
    "task": (Task, TASK_FOLDS),
    "actor": (ActorRecord, ACTOR_FOLDS),
    "agent": (AgentRecord, AGENT_FOLDS),
    "mail": (Mail, MAIL_FOLDS),
    "handoff": (Handoff, HANDOFF_FOLDS),
    "workq": (WorkItem, WORK_ITEM_FOLDS),
    "wave": (Wave, WAVE_FOLDS),
    "reservations": (Reservations, RESERVATION_FOLDS),
    "reputation": (Reputation, REPUTATION_FOLDS),
    "intent": (Intent, INTENT_FOLDS),
    "trace": (Trace, TRACE_FOLDS),
    "turns": (TurnLog, TURN_FOLDS),
}
"""Kind of stream (the word before its first colon) -> its state, and the folds of its events."""


@cache
def _state_decoder(kind: str) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_STREAMS[kind][0])


encode_state = msgspec.json.Encoder().encode


def decode_state(stream: str, data: bytes) -> State:
    """The state of a stored row."""
    try:
        return _state_decoder(stream.partition(":")[0]).decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise LedgerError(f"the state of {stream} cannot be read: {error}") from error


def is_same_state(stream: str, one: bytes, other: bytes) -> bool:
    """True if two rows decode to the same state, however they are encoded.

    A state in memory may encode 3 where a decoded one encodes 3.0, and write out a default.
    """
    return one == other or _normalized(stream, one) == _normalized(stream, other)


def _normalized(stream: str, data: bytes) -> bytes:
    try:
        return encode_state(decode_state(stream, data))
    except LedgerError:
        return data


FOLDS: Folds = {event: fold for _, folds in _STREAMS.values() for event, fold in folds.items()}
"""Event -> its fold."""

_ALWAYS_FIRST: Final = frozenset(
    (TaskCreated, MailPosted, HandoffProposed, WorkItemAdded, WaveStarted, IntentCreated)
)
_MAY_BE_FIRST: Final = frozenset(
    (
        *(CommandRefused, MessageReceived, AgentRegistered, AgentDescribed, AgentAssigned),
        *(ReservationTaken, TraceRecorded, TurnRecorded),
    )
)
"""Events with which a stream begins, or may begin; every other one follows a state."""

ALLOWED_STATES: dict[type[Event], tuple[type[Any], ...]] = {
    event: (type(None),)
    if event in _ALWAYS_FIRST
    else (state, type(None))
    if event in _MAY_BE_FIRST
    else (state,)
    for state, folds in _STREAMS.values()
    for event in folds
}
"""Event -> the states that it may follow."""


def fold(state: State | None, event: Event, at: int) -> State:
    """Fold one more stored entry into the state of a stream; LedgerError if it is misplaced."""
    if type(state) not in ALLOWED_STATES[type(event)]:
        raise LedgerError(f"{EVENT_NAMES[type(event)]} is not allowed at this point of its stream")
    return FOLDS[type(event)](state, event, at)


def replay(lines: Iterable[bytes]) -> State | None:
    """Replay a stream's lines from the first one on."""
    state: State | None = None
    for after in replay_each(lines):
        state = after
    return state


def replay_each(lines: Iterable[bytes]) -> Iterator[State]:
    """Replay a stream's lines from the first one on; the state after each."""
    state: State | None = None
    for data in lines:
        line = read_line(data)
        state = fold(state, CODEC.decode(line.event, line.v, line.body), line.at)
        yield state


def load_state(
    stream: str, fold_version: int, stored: bytes, lines: Iterable[bytes]
) -> State | None:
    """The state of a stored row: decoded, or replayed if older folds made it."""
    if fold_version != FOLD_VERSION:
        return replay(lines)
    if not stored:
        return None
    return decode_state(stream, stored)


# --- index rows and lists ---------------------------------------------------------------------


class IndexRow(Struct, frozen=True, gc=False):
    """The index row of a stream: status, ready queue, and times at which it is due."""

    status: Status | None = None
    queue: str | None = None
    """Its ready queue: an agent's own, or "" for everyone's; None: it is in none."""
    rank: int = 0
    since: int = 0
    ready_at: int | None = None
    """Time at which a service puts it into its queue."""
    owner: str | None = None
    deadline: int | None = None
    """Time at which a service escalates: a delegation, an ack, an answer, a result."""


_NOT_INDEXED = IndexRow()

LISTS: dict[type[Any], Callable[[Any], tuple[str, ...]]] = {
    Task: task_list_keys,
    AgentRecord: agent_list_keys,
    Mail: mail_list_keys,
    Handoff: handoff_list_keys,
    Wave: wave_list_keys,
    Reputation: reputation_list_keys,
    Intent: intent_list_keys,
}
"""State -> the lists that its stream is on; other states are on none."""

INDEX_ROWS: dict[type[Any], Callable[[Any], IndexRow]] = {
    Mail: lambda mail: IndexRow(deadline=mail.deadline),
    Handoff: lambda handoff: IndexRow(deadline=handoff.escalation_due_at),
    Intent: lambda intent: IndexRow(deadline=intent.deadline),
}
"""State -> its index row, where that does not depend on the time; a task's does."""


def lists_of(state: State | None) -> tuple[str, ...]:
    lists = LISTS.get(type(state))
    return () if lists is None else lists(state)


def index_row(state: State | None, now: int) -> IndexRow:
    """The index row of a stream in this state at this time."""
    if not isinstance(state, Task):
        row_of = INDEX_ROWS.get(type(state))
        return _NOT_INDEXED if row_of is None else row_of(state)
    owner, deadline = state.assignee or None, state.delegation and state.delegation_deadline
    if state.status != "ready" or state.open_blockers:
        return IndexRow(state.status, owner=owner, deadline=deadline)
    rank, since = PRIORITY_RANK[state.priority], state.created_at
    if state.not_before > now:
        return IndexRow("ready", None, rank, since, state.not_before, owner, deadline)
    return IndexRow("ready", state.reserved_for, rank, since, None, owner, deadline)


# --- aliases ----------------------------------------------------------------------------------

REQUEST_ID = "request id"
"""The kind of name that the request of a delegation has, unique for ever. It cannot be the kind of
a task's alias, which is one word."""


def split_alias(alias: str) -> tuple[str, str]:
    """KIND:NAME as (name, kind): names come first, so that a bare name finds all its kinds."""
    kind, _, name = alias.partition(":")
    return name, kind


def _aliases_at_creation(event: TaskCreated) -> tuple[tuple[str, str], ...]:
    own = () if event.aof_id == event.id else ((event.aof_id, "aof"),)
    return own + tuple(map(split_alias, event.aliases))


ALIASES_BOUND_BY: dict[type[Event], Callable[[Any], tuple[tuple[str, str], ...]]] = {
    TaskCreated: _aliases_at_creation,
    TaskAliased: lambda event: (split_alias(event.alias),),
    IntentDispatched: lambda event: ((event.request_id, REQUEST_ID),),
}


def aliases_bound_by(event: Event) -> tuple[tuple[str, str], ...]:
    """The (name, kind) pairs that an event binds to its stream, beside the primary id."""
    aliases_of = ALIASES_BOUND_BY.get(type(event))
    return aliases_of(event) if aliases_of is not None else ()


def is_storable_name(name: str) -> bool:
    """True for a name that every database can store."""
    return name.isascii() and name.isprintable()


def streams_named(kind: str, aliases: Sequence[tuple[str, str]]) -> Sequence[str]:
    """The streams of the tasks that have this alias, of one kind or (empty) of any."""
    if not aliases:
        return ()
    tasks = (stream for k, stream in aliases if k != REQUEST_ID and kind in ("", k))
    return tuple(dict.fromkeys(tasks))


def unresolved_name(name: str, streams: Sequence[str]) -> Refusal:
    """The refusal of a name that does not lead to one task."""
    if streams:
        tasks = ", ".join(stream.partition(":")[2] for stream in streams)
        return Refusal(
            "ambiguous_name",
            f"{name} names several tasks: {tasks}; use the id of one, or put the kind of the name "
            f"before it, as in bead:{name}",
        )
    malformed = check_alias(name) if ":" in name else check_task_id(name)
    return malformed or not_found.task(name)


# --- the table handoffs -----------------------------------------------------------------------


class HandoffRow(Struct, frozen=True, gc=False):
    """A row of the table `handoffs`, with the columns of the protocol's own schema; times are RFC
    3339 with Z (S-ACP-12)."""

    id: str
    thread_id: str
    task_id: str
    from_agent: str
    to_agent: str
    title: str
    reason: str
    package_json: str
    status: str
    provenance_json: str
    verification_json: str
    initiated_at: str
    resolved_at: str | None = None
    resolution_notes: str | None = None

    @property
    def is_active(self) -> bool:
        """True if the task may have no other active handoff."""
        return self.status in ACTIVE_STATES


class HandoffUpdate(Struct, frozen=True, gc=False):
    """The columns of a row that change after it was written."""

    status: str
    verification_json: str
    resolved_at: str | None
    resolution_notes: str | None
    id: str


def handoff_update(handoff: Handoff) -> HandoffUpdate:
    """The update of a handoff's row."""
    verification = {
        **package_section(handoff.package, "verification"),
        "passed": handoff.passed,
        "failed": handoff.failed,
    }
    resolved_at = handoff.resolved_at
    return HandoffUpdate(
        handoff.status,
        _json(verification),
        None if resolved_at is None else to_rfc3339(resolved_at),
        _resolution_notes(handoff),
        handoff.id,
    )


def handoff_row(state: State | None) -> HandoffRow | None:
    """The row of a handoff; None for any other state."""
    if not isinstance(state, Handoff):
        return None
    update = handoff_update(state)
    return HandoffRow(
        id=state.id,
        thread_id=state.thread,
        task_id=state.task,
        from_agent=state.sender,
        to_agent=state.recipient,
        title=_without_nul(state.title),
        reason=_without_nul(state.reason),
        package_json=_json(state.package),
        status=update.status,
        provenance_json=_json(package_section(state.package, "provenance")),
        verification_json=update.verification_json,
        initiated_at=to_rfc3339(state.created_at),
        resolved_at=update.resolved_at,
        resolution_notes=update.resolution_notes,
    )


def order_handoff_rows(states: Iterable[State | None]) -> list[HandoffRow]:
    """The rows of those that are handoffs; finished ones first, so that they make room."""
    rows = [record for record in map(handoff_row, states) if record is not None]
    return sorted(rows, key=_write_order)


def _write_order(row: HandoffRow) -> tuple[bool, str]:
    return row.is_active, row.id


def _resolution_notes(handoff: Handoff) -> str | None:
    """The resolution, and the latest escalation to a coordinator."""
    notes: dict[str, object] = {}
    rejection = handoff.rejection
    if rejection is not None:
        notes = {"reason": rejection.reason, "detail": rejection.detail, "by": rejection.by}
        if rejection.suggested_fix:
            notes["suggested_fix"] = rejection.suggested_fix
    for to in ("completed", "closed"):
        step = handoff.find_step(to)
        if step is not None and step.note:
            notes[to] = step.note
    if handoff.escalations:
        notes["escalation"] = _escalation_note(handoff.escalations[-1])
    return _json(notes) if notes else None


def _escalation_note(escalation: HandoffEscalation) -> dict[str, str]:
    return {
        "trigger": escalation.trigger,
        "stage": escalation.stage,
        "sla_configured": format_hours(escalation.sla_ms),
        "sla_elapsed": format_hours(escalation.elapsed_ms),
        "escalated_to": escalation.to,
        "escalated_at": to_rfc3339(escalation.at),
    }


def _without_nul(text: str) -> str:
    """A text without characters that a database refuses; the package keeps the original."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


# --- the logs of agents -----------------------------------------------------------------------


class LogRow(Struct, frozen=True, gc=False):
    """The row of the agent logs that a turn or a trace event is found by.

    The entry has the text; the row has its unique key (S-SAOP-3), and its task.
    """

    task: str
    attempt: int
    turn_index: int | None
    """Of a turn; None: it is an event."""
    event_id: str | None
    """Of an event; None: it is a turn."""
    digest: str
    masked: bool
    """True if secrets were masked in it."""

    @property
    def key(self) -> str:
        """The key by which it is looked up."""
        if self.event_id is not None:
            return f"event:{self.event_id}"
        return f"turn:{self.task}/{self.attempt}/{self.turn_index}"


LOG_ROWS: Final[dict[type[Event], Callable[[Any], LogRow]]] = {
    TurnRecorded: lambda turn: LogRow(
        turn.task, turn.attempt, turn.turn_index, None, turn.digest, turn.masked
    ),
    TraceRecorded: lambda event: LogRow(
        event.task, event.attempt, None, event.event_id, event.digest, event.masked
    ),
}
"""Event -> its log row; other events have none."""


def log_row(event: Event) -> LogRow | None:
    row_of = LOG_ROWS.get(type(event))
    return None if row_of is None else row_of(event)


def parse_log_key(key: str) -> tuple[str, int, int] | str:
    """Parse a key: task, attempt and index of a turn, or the id of a trace event."""
    kind, _, suffix = key.partition(":")
    if kind == "event":
        return suffix
    task, attempt, index = suffix.rsplit("/", 2)
    return task, int(attempt), int(index)
