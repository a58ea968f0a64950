"""The state of a stream: folded from its entries, stored as a row, replayed when folds change."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from dragoman.core.actor import ACTOR_FOLDS, ActorRecord, CommandRefused, MessageReceived
from dragoman.core.agent import (
    AGENT_FOLDS,
    REPUTATION_FOLDS,
    AgentAssigned,
    AgentDescribed,
    AgentRecord,
    AgentRegistered,
    Reputation,
)
from dragoman.core.base import Event
from dragoman.core.errors import LedgerError
from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.handoff.state import (
    HANDOFF_FOLDS,
    Handoff,
    HandoffProposed,
)
from dragoman.core.intent.state import INTENT_FOLDS, Intent, IntentCreated
from dragoman.core.mail import (
    MAIL_FOLDS,
    Mail,
    MailPosted,
)
from dragoman.core.reservation import (
    RESERVATION_FOLDS,
    Reservations,
    ReservationTaken,
)
from dragoman.core.task_state import TASK_FOLDS, Task, TaskCreated
from dragoman.core.trace import (
    TRACE_FOLDS,
    TURN_FOLDS,
    Trace,
    TraceRecorded,
    TurnLog,
    TurnRecorded,
)
from dragoman.core.wave import WAVE_FOLDS, Wave, WaveStarted
from dragoman.core.work_queue import WORK_ITEM_FOLDS, WorkItem, WorkItemAdded
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

_STATE_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(state) for kind, (state, _) in _STREAMS.items()
}

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
