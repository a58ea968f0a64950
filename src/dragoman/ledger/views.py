"""What entries fold into: the state of a stream, and where the store's indexes put it."""

from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec
from msgspec import Struct

from dragoman.core.actors import EVOLVE_ACTOR, ActorRecord
from dragoman.core.errors import LedgerError
from dragoman.core.events import (
    EVENT_NAMES,
    AgentAssigned,
    AgentDescribed,
    AgentKeyed,
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
    HandoffMoved,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
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
    WorkItemPassed,
)
from dragoman.core.states.agent import EVOLVE_AGENT, AgentRecord, lists_of_agent
from dragoman.core.states.handoff import Handoff, lists_of_handoff
from dragoman.core.states.handoff_fold import EVOLVE_HANDOFF
from dragoman.core.states.intent import EVOLVE_INTENT, Intent, lists_of_intent
from dragoman.core.states.letter import EVOLVE_MAIL, Mail, lists_of_mail
from dragoman.core.states.reservations import EVOLVE_RESERVATIONS, Reservations
from dragoman.core.states.standing import EVOLVE_STANDING, Standing, lists_of_standing
from dragoman.core.states.task import PRIORITY_RANK, Task, lists_of_task
from dragoman.core.states.task_fold import EVOLVE_TASK
from dragoman.core.states.trace import EVOLVE_TRACE, EVOLVE_TURNS, Trace, TurnLog
from dragoman.core.states.wave import EVOLVE_WAVE, Wave, lists_of_wave
from dragoman.core.states.work_item import EVOLVE_WORK_ITEM, WorkItem
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import read_line

FOLD = 8
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
    | Standing
    | Intent
    | Trace
    | TurnLog
)

_STATES: dict[str, msgspec.json.Decoder[Any]] = {
    "task": msgspec.json.Decoder(Task),
    "actor": msgspec.json.Decoder(ActorRecord),
    "agent": msgspec.json.Decoder(AgentRecord),
    "mail": msgspec.json.Decoder(Mail),
    "handoff": msgspec.json.Decoder(Handoff),
    "workq": msgspec.json.Decoder(WorkItem),
    "wave": msgspec.json.Decoder(Wave),
    "reservations": msgspec.json.Decoder(Reservations),
    "standing": msgspec.json.Decoder(Standing),
    "intent": msgspec.json.Decoder(Intent),
    "trace": msgspec.json.Decoder(Trace),
    "turns": msgspec.json.Decoder(TurnLog),
}
"""Kind of stream (the word before its first colon) -> the decoder of its state row."""

encode_state = msgspec.json.Encoder().encode


class Shelf(Struct, frozen=True, gc=False):
    """The index row of a stream: status, ready queue, and times at which it is due."""

    status: Status | None = None
    queue: str | None = None
    """Its ready queue: an agent's own, or "" for everyone's; None: it is in none."""
    rank: int = 0
    since: int = 0
    due: int | None = None
    """When a service has to put it into its queue."""
    owner: str | None = None
    deadline: int | None = None
    """When a service has to escalate: a delegation, an ack, an answer, a result."""


_NOWHERE = Shelf()

LISTS: dict[type[Any], Callable[[Any], tuple[str, ...]]] = {
    Task: lists_of_task,
    AgentRecord: lists_of_agent,
    Mail: lists_of_mail,
    Handoff: lists_of_handoff,
    Wave: lists_of_wave,
    Standing: lists_of_standing,
    Intent: lists_of_intent,
}
"""State -> the lists that its stream is on; other states are on none."""

SHELVES: dict[type[Any], Callable[[Any], Shelf]] = {
    Mail: lambda mail: Shelf(deadline=mail.deadline),
    Handoff: lambda handoff: Shelf(deadline=handoff.deadline),
    Intent: lambda intent: Shelf(deadline=intent.deadline),
}
"""State -> its index row, where that does not depend on the time; a task's does."""


def lists_of(state: State | None) -> tuple[str, ...]:
    """The lists that a stream in this state is on."""
    lists = LISTS.get(type(state))
    return () if lists is None else lists(state)


EVOLVE: dict[type[AnyEvent], Callable[[Any, Any, int], State]] = {
    **EVOLVE_TASK,
    **EVOLVE_ACTOR,
    **EVOLVE_AGENT,
    **EVOLVE_MAIL,
    **EVOLVE_HANDOFF,
    **EVOLVE_WORK_ITEM,
    **EVOLVE_WAVE,
    **EVOLVE_RESERVATIONS,
    **EVOLVE_STANDING,
    **EVOLVE_INTENT,
    **EVOLVE_TRACE,
    **EVOLVE_TURNS,
}
"""Event -> its fold."""


def fold(state: State | None, event: AnyEvent, at: int) -> State:
    """Fold one more stored entry into the state of a stream; LedgerError if it is misplaced."""
    if type(state) not in FOLLOWS.get(type(event), (Task,)):
        raise LedgerError(f"{EVENT_NAMES[type(event)]} is not allowed at this point of its stream")
    return EVOLVE[type(event)](state, event, at)


FOLLOWS: dict[type[AnyEvent], tuple[type[State] | type[None], ...]] = {
    TaskCreated: (type(None),),
    CommandRefused: (type(None), ActorRecord),
    MessageReceived: (type(None), ActorRecord),
    AgentRegistered: (type(None), AgentRecord),
    AgentKeyed: (AgentRecord,),
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
    HandoffMoved: (Handoff,),
    HandoffVerified: (Handoff,),
    HandoffRejected: (Handoff,),
    HandoffApproved: (Handoff,),
    HandoffEscalated: (Handoff,),
    HandoffExtended: (Handoff,),
    HandoffNoted: (Handoff,),
    WorkItemAdded: (type(None),),
    WorkItemPassed: (WorkItem,),
    WaveStarted: (type(None),),
    WaveBeadReleased: (Wave,),
    WaveCompleted: (Wave,),
    ReservationTaken: (type(None), Reservations),
    ReservationRenewed: (Reservations,),
    ReservationsEnded: (Reservations,),
    AgentDescribed: (type(None), Standing),
    AgentAssigned: (type(None), Standing),
    AgentRelieved: (Standing,),
    AgentRated: (Standing,),
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
        return _STATES[stream.partition(":")[0]].decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError) as error:
        raise LedgerError(f"the state of {stream} cannot be read: {error}") from error


def is_same_state(stream: str, one: bytes, other: bytes) -> bool:
    """True if two rows decode to the same state, however they are encoded.

    A state in memory may encode 3 where a decoded one encodes 3.0, and write out a default.
    """
    return one == other or _as_read(stream, one) == _as_read(stream, other)


def _as_read(stream: str, data: bytes) -> bytes:
    try:
        return encode_state(decode_state(stream, data))
    except LedgerError:
        return data


def shelve(state: State | None, now: int) -> Shelf:
    """The index row of a stream in this state at this time."""
    if not isinstance(state, Task):
        shelf = SHELVES.get(type(state))
        return _NOWHERE if shelf is None else shelf(state)
    owner, deadline = state.assignee or None, state.delegation and state.deadline
    if state.status != "ready" or state.open_blockers:
        return Shelf(state.status, owner=owner, deadline=deadline)
    rank, since = PRIORITY_RANK[state.priority], state.created_at
    if state.not_before > now:
        return Shelf("ready", None, rank, since, state.not_before, owner, deadline)
    return Shelf("ready", state.reserved_for, rank, since, None, owner, deadline)


REQUEST = "request id"
"""The kind of name that the request of a delegation has, unique for ever. It cannot be the kind of
a task's alias, which is one word."""


def names_of(event: AnyEvent) -> tuple[tuple[str, str], ...]:
    """The (name, kind) pairs that an event binds to its stream, beside the primary id."""
    naming = NAMING.get(type(event))
    return naming(event) if naming is not None else ()


def _names_at_birth(event: TaskCreated) -> tuple[tuple[str, str], ...]:
    own = () if event.aof_id == event.id else ((event.aof_id, "aof"),)
    return own + tuple(map(split_alias, event.aliases))


NAMING: dict[type[AnyEvent], Callable[[Any], tuple[tuple[str, str], ...]]] = {
    TaskCreated: _names_at_birth,
    TaskAliased: lambda event: (split_alias(event.alias),),
    IntentDispatched: lambda event: ((event.request_id, REQUEST),),
}


def split_alias(alias: str) -> tuple[str, str]:
    """KIND:NAME as (name, kind): names come first, so that a bare name finds all its kinds."""
    kind, _, name = alias.partition(":")
    return name, kind


def refold(lines: Iterable[bytes]) -> State | None:
    """Replay a stream's lines from the first one on."""
    state: State | None = None
    for data in lines:
        line = read_line(data)
        state = fold(state, CODEC.decode(line.event, line.v, line.body), line.at)
    return state


def current_state(
    stream: str, fold_number: int, stored: bytes, lines: Iterable[bytes]
) -> State | None:
    """The state of a stored row: decoded, or replayed if older folds made it."""
    if fold_number != FOLD:
        return refold(lines)
    if not stored:
        return None
    return decode_state(stream, stored)
