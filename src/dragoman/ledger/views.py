"""What entries fold into: the state of a stream, and where the store's indexes put it."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec
from msgspec import Struct

from dragoman.core.actors import ACTOR_FOLDS, ActorRecord
from dragoman.core.errors import LedgerError
from dragoman.core.events import (
    EVENT_NAMES,
    AgentAssigned,
    AgentDescribed,
    AgentKeySet,
    AgentPaused,
    AgentRated,
    AgentRegistered,
    AgentRelieved,
    AgentResumed,
    AnyEvent,
    CommandRefused,
    EntropyEscalated,
    EntropySettled,
    HandoffApproved,
    HandoffDiscarded,
    HandoffDrafted,
    HandoffEscalated,
    HandoffExtended,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
    IntentCreated,
    IntentDispatched,
    IntentEvent,
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
    MessageReceived,
    ReservationRenewed,
    ReservationsEnded,
    ReservationTaken,
    Status,
    TaskAliased,
    TaskCreated,
    TokenIssued,
    TokenRevoked,
    TraceAnomaly,
    TraceRecorded,
    TurnRecorded,
    WaveBeadReleased,
    WaveCompleted,
    WaveStarted,
    WorkItemAdded,
    WorkItemOwnerChanged,
)
from dragoman.core.states.agent import AGENT_FOLDS, AgentRecord, agent_list_keys
from dragoman.core.states.handoff import Handoff, handoff_list_keys
from dragoman.core.states.handoff_fold import HANDOFF_FOLDS
from dragoman.core.states.intent import INTENT_FOLDS, Intent, intent_list_keys
from dragoman.core.states.letter import MAIL_FOLDS, Mail, mail_list_keys
from dragoman.core.states.reservations import RESERVATION_FOLDS, Reservations
from dragoman.core.states.standing import REPUTATION_FOLDS, Reputation, reputation_list_keys
from dragoman.core.states.task import PRIORITY_RANK, Task, task_list_keys
from dragoman.core.states.task_fold import TASK_FOLDS
from dragoman.core.states.trace import TRACE_FOLDS, TURN_FOLDS, Trace, TurnLog
from dragoman.core.states.wave import WAVE_FOLDS, Wave, wave_list_keys
from dragoman.core.states.work_item import WORK_ITEM_FOLDS, WorkItem
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import read_line

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

_STATE_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    "task": msgspec.json.Decoder(Task),
    "actor": msgspec.json.Decoder(ActorRecord),
    "agent": msgspec.json.Decoder(AgentRecord),
    "mail": msgspec.json.Decoder(Mail),
    "handoff": msgspec.json.Decoder(Handoff),
    "workq": msgspec.json.Decoder(WorkItem),
    "wave": msgspec.json.Decoder(Wave),
    "reservations": msgspec.json.Decoder(Reservations),
    "standing": msgspec.json.Decoder(Reputation),
    "intent": msgspec.json.Decoder(Intent),
    "trace": msgspec.json.Decoder(Trace),
    "turns": msgspec.json.Decoder(TurnLog),
}
"""Kind of stream (the word before its first colon) -> the decoder of its state row."""

encode_state = msgspec.json.Encoder().encode


class IndexRow(Struct, frozen=True, gc=False):
    """The index row of a stream: status, ready queue, and times at which it is due."""

    status: Status | None = None
    queue: str | None = None
    """Its ready queue: an agent's own, or "" for everyone's; None: it is in none."""
    rank: int = 0
    since: int = 0
    ready_at: int | None = None
    """When a service has to put it into its queue."""
    owner: str | None = None
    deadline: int | None = None
    """When a service has to escalate: a delegation, an ack, an answer, a result."""


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
    Handoff: lambda handoff: IndexRow(deadline=handoff.deadline),
    Intent: lambda intent: IndexRow(deadline=intent.deadline),
}
"""State -> its index row, where that does not depend on the time; a task's does."""


def lists_of(state: State | None) -> tuple[str, ...]:
    """The lists that a stream in this state is on."""
    lists = LISTS.get(type(state))
    return () if lists is None else lists(state)


FOLDS: dict[type[AnyEvent], Callable[[Any, Any, int], State]] = {
    **TASK_FOLDS,
    **ACTOR_FOLDS,
    **AGENT_FOLDS,
    **MAIL_FOLDS,
    **HANDOFF_FOLDS,
    **WORK_ITEM_FOLDS,
    **WAVE_FOLDS,
    **RESERVATION_FOLDS,
    **REPUTATION_FOLDS,
    **INTENT_FOLDS,
    **TRACE_FOLDS,
    **TURN_FOLDS,
}
"""Event -> its fold."""


def fold(state: State | None, event: AnyEvent, at: int) -> State:
    """Fold one more stored entry into the state of a stream; LedgerError if it is misplaced."""
    if type(state) not in ALLOWED_STATES.get(type(event), (Task,)):
        raise LedgerError(f"{EVENT_NAMES[type(event)]} is not allowed at this point of its stream")
    return FOLDS[type(event)](state, event, at)


ALLOWED_STATES: dict[type[AnyEvent], tuple[type[State] | type[None], ...]] = {
    TaskCreated: (type(None),),
    CommandRefused: (type(None), ActorRecord),
    MessageReceived: (type(None), ActorRecord),
    AgentRegistered: (type(None), AgentRecord),
    AgentKeySet: (AgentRecord,),
    TokenIssued: (AgentRecord,),
    TokenRevoked: (AgentRecord,),
    AgentPaused: (AgentRecord,),
    AgentResumed: (AgentRecord,),
    MailPosted: (type(None),),
    MailRead: (Mail,),
    MailAcked: (Mail,),
    MailAnswered: (Mail,),
    MailEscalated: (Mail,),
    HandoffDrafted: (type(None), Handoff),
    HandoffDiscarded: (Handoff,),
    HandoffProposed: (type(None), Handoff),
    HandoffTransitioned: (Handoff,),
    HandoffVerified: (Handoff,),
    HandoffRejected: (Handoff,),
    HandoffApproved: (Handoff,),
    HandoffEscalated: (Handoff,),
    HandoffExtended: (Handoff,),
    HandoffNoted: (Handoff,),
    WorkItemAdded: (type(None),),
    WorkItemOwnerChanged: (WorkItem,),
    WaveStarted: (type(None),),
    WaveBeadReleased: (Wave,),
    WaveCompleted: (Wave,),
    ReservationTaken: (type(None), Reservations),
    ReservationRenewed: (Reservations,),
    ReservationsEnded: (Reservations,),
    AgentDescribed: (type(None), Reputation),
    AgentAssigned: (type(None), Reputation),
    AgentRelieved: (Reputation,),
    AgentRated: (Reputation,),
    **dict.fromkeys(get_args(IntentEvent), (Intent,)),
    IntentCreated: (type(None),),
    TraceRecorded: (type(None), Trace),
    TraceAnomaly: (Trace,),
    TurnRecorded: (type(None), TurnLog),
    EntropyEscalated: (TurnLog,),
    EntropySettled: (TurnLog,),
}
"""Event -> the states that it may follow; every other event follows a task."""


def decode_state(stream: str, data: bytes) -> State:
    """The state of a stored row."""
    try:
        return _STATE_DECODERS[stream.partition(":")[0]].decode(data)
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


REQUEST_ID = "request id"
"""The kind of name that the request of a delegation has, unique for ever. It cannot be the kind of
a task's alias, which is one word."""


def aliases_bound_by(event: AnyEvent) -> tuple[tuple[str, str], ...]:
    """The (name, kind) pairs that an event binds to its stream, beside the primary id."""
    aliases_of = ALIASES_BOUND_BY.get(type(event))
    return aliases_of(event) if aliases_of is not None else ()


def _aliases_at_creation(event: TaskCreated) -> tuple[tuple[str, str], ...]:
    own = () if event.aof_id == event.id else ((event.aof_id, "aof"),)
    return own + tuple(map(split_alias, event.aliases))


ALIASES_BOUND_BY: dict[type[AnyEvent], Callable[[Any], tuple[tuple[str, str], ...]]] = {
    TaskCreated: _aliases_at_creation,
    TaskAliased: lambda event: (split_alias(event.alias),),
    IntentDispatched: lambda event: ((event.request_id, REQUEST_ID),),
}


def split_alias(alias: str) -> tuple[str, str]:
    """KIND:NAME as (name, kind): names come first, so that a bare name finds all its kinds."""
    kind, _, name = alias.partition(":")
    return name, kind


def replay(lines: Iterable[bytes]) -> State | None:
    """Replay a stream's lines from the first one on."""
    state: State | None = None
    for data in lines:
        line = read_line(data)
        state = fold(state, CODEC.decode(line.event, line.v, line.body), line.at)
    return state


def load_state(
    stream: str, fold_version: int, stored: bytes, lines: Iterable[bytes]
) -> State | None:
    """The state of a stored row: decoded, or replayed if older folds made it."""
    if fold_version != FOLD_VERSION:
        return replay(lines)
    if not stored:
        return None
    return decode_state(stream, stored)
