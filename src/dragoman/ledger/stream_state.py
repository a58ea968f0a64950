"""The state of a stream: folded from its entries, stored as a row, replayed when folds change."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec

from dragoman.core.actor import ACTOR_FOLDS, ActorRecord, CommandRefused, MessageReceived
from dragoman.core.agent import (
    AGENT_FOLDS,
    REPUTATION_FOLDS,
    AgentAssigned,
    AgentDescribed,
    AgentKeySet,
    AgentPaused,
    AgentRated,
    AgentRecord,
    AgentRegistered,
    AgentRelieved,
    AgentResumed,
    Reputation,
    TokenIssued,
    TokenRevoked,
)
from dragoman.core.errors import LedgerError
from dragoman.core.event_table import EVENT_NAMES, AnyEvent
from dragoman.core.handoff.state import (
    HANDOFF_FOLDS,
    Handoff,
    HandoffApproved,
    HandoffEscalated,
    HandoffExtended,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
)
from dragoman.core.intent.state import INTENT_FOLDS, Intent, IntentCreated, IntentEvent
from dragoman.core.mail import (
    MAIL_FOLDS,
    Mail,
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
)
from dragoman.core.reservation import (
    RESERVATION_FOLDS,
    ReservationRenewed,
    Reservations,
    ReservationsEnded,
    ReservationTaken,
)
from dragoman.core.task_state import TASK_FOLDS, Task, TaskCreated
from dragoman.core.trace import (
    TRACE_FOLDS,
    TURN_FOLDS,
    EntropyEscalated,
    EntropySettled,
    Trace,
    TraceAnomaly,
    TraceRecorded,
    TurnLog,
    TurnRecorded,
)
from dragoman.core.wave import WAVE_FOLDS, Wave, WaveBeadReleased, WaveCompleted, WaveStarted
from dragoman.core.work_queue import WORK_ITEM_FOLDS, WorkItem, WorkItemAdded, WorkItemOwnerChanged
from dragoman.ledger.entry import CODEC, read_line

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
    "reputation": msgspec.json.Decoder(Reputation),
    "intent": msgspec.json.Decoder(Intent),
    "trace": msgspec.json.Decoder(Trace),
    "turns": msgspec.json.Decoder(TurnLog),
}
"""Kind of stream (the word before its first colon) -> the decoder of its state row."""

encode_state = msgspec.json.Encoder().encode


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
    HandoffProposed: (type(None),),
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


def fold(state: State | None, event: AnyEvent, at: int) -> State:
    """Fold one more stored entry into the state of a stream; LedgerError if it is misplaced."""
    if type(state) not in ALLOWED_STATES.get(type(event), (Task,)):
        raise LedgerError(f"{EVENT_NAMES[type(event)]} is not allowed at this point of its stream")
    return FOLDS[type(event)](state, event, at)


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
