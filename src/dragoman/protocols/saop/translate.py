"""What a turn and an event ask the core for."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct, field

from dragoman.core.commands import RecordTrace, RecordTurn, RequestTransition
from dragoman.core.events import Status
from dragoman.engine.operation import Commands
from dragoman.engine.redaction import told_of
from dragoman.engine.rests import Rest, Shelf
from dragoman.protocols.saop.masking import (
    STATUSES,
    is_commit,
    key_of,
    mask_event,
    mask_turn,
    place_of,
)
from dragoman.protocols.saop.settings import Choices
from dragoman.protocols.saop.shapes import (
    Event,
    Part,
    SandboxPulse,
    TaskTransition,
    ThoughtStream,
    TurnEnvelope,
)
from dragoman.text.uuid8 import uuid8


class SentTurn(Struct, frozen=True):
    """A parsed turn, and the original value with fields that the schema does not know."""

    turn: TurnEnvelope
    value: dict[str, Any]
    masked: list[str] = field(default_factory=list[str])
    """Notes for the sender about secrets that were masked."""


class SentEvent(Struct, frozen=True):
    """A parsed event, and the original value with fields that the schema does not know."""

    event: Event
    value: dict[str, Any]
    masked: list[str] = field(default_factory=list[str])
    rests: list[Rest] = field(default_factory=list[Rest])
    """Carry-over of a chunk, at most one; empty for any other event."""


def turn_commands(sent: SentTurn, choices: Choices) -> Commands:
    """Build the command that records a turn; the first turn of a task may create it (S-ADOPT)."""
    turn, (envelope, found) = sent.turn, mask_turn(sent.value, choices)
    sent.masked[:] = told_of(found)
    return (
        RecordTurn(
            task=turn.metadata.task_id,
            turn_index=int(turn.turn_index),
            agent=turn.agent_id,
            confidence=turn.metadata.confidence,
            envelope=envelope,
            digest=_digest(sent.value, choices),
            masked=bool(found),
            adopt=choices.adopt,
            review_required=choices.review_required,
            max_attempts=choices.max_attempts,
            ttl_ms=choices.ttl_ms,
        ),
    )


def event_commands(sent: SentEvent, speaker: str, choices: Choices, shelf: Shelf) -> Commands:
    """Build the command that records an event; a chunk is masked on its expected carry-over."""
    key = key_of(sent.event, speaker)
    if not key:
        return (_event_command(sent, choices)[0],)
    rest = _rest(sent, key, shelf.expected(key), choices, shelf)
    shelf.expect(rest)
    sent.rests[:] = [rest]
    return rest.commands


def _rest(sent: SentEvent, key: str, before: str, choices: Choices, shelf: Shelf) -> Rest:
    """Mask a chunk on this carry-over; it can be masked again on another one."""
    command, held = _event_command(sent, choices, before)

    def again(instead: str) -> Rest:
        return _rest(sent, key, instead, choices, shelf)

    id = sent.event.event_id.lower()
    return Rest(shelf, key, id, command.digest, before, held, (command,), again)


def _event_command(sent: SentEvent, choices: Choices, before: str = "") -> tuple[RecordTrace, str]:
    """Build the command that records an event masked on this carry-over, and the new carry-over."""
    event, footing = sent.event, sent.event.payload.footing()
    masked = mask_event(sent.value, before, choices)
    envelope = masked.envelope
    sent.masked[:] = told_of(masked.found)
    command = RecordTrace(
        event_id=event.event_id,
        session=event.session_id,
        kind=str(type(event.payload).__struct_config__.tag),
        envelope=envelope,
        digest=_digest({**sent.value, "event_id": event.event_id.lower()}, choices),
        masked=bool(masked.found),
        task=footing.task,
        agent=footing.agent,
        call=envelope["payload"]["call_id"] if footing.call else "",
        ends_call=footing.ends_call,
        turn=footing.turn,
        is_final=footing.is_final,
        commit=choices.head() if asks_for_move(sent) else "",
    )
    return command, masked.held


def pulse_command(
    event_id: str, session: str, pulse: SandboxPulse, digest: Callable[[bytes], str]
) -> RecordTrace:
    """Record a terminal line of a program that the hub started, already masked."""
    event = Event(event_id, session, pulse)
    value = msgspec.to_builtins(event)
    return RecordTrace(
        event_id=event_id,
        session=session,
        kind=str(SandboxPulse.__struct_config__.tag),
        envelope=value,
        digest=digest(msgspec.json.encode(value, order="sorted")),
        masked=pulse.masked,
    )


def last_chunk(key: str, held: str, choices: Choices) -> RecordTrace | None:
    """End a thought that its sender never finished, with the text carried over from its last chunk.

    The event id is derived from the text, so that repeating it after a crash neither loses nor
    doubles anything. None: the key is not that of a thought.
    """
    place = place_of(key)
    if place is None:
        return None
    (session, turn, part), stream = place, choices.redactor.stream(held)
    text = stream.close()
    payload = ThoughtStream(msgspec.convert(part, Part), turn, text, is_final=True)
    mark = choices.digest(f"{key}\0{held}".encode(errors="surrogatepass"))
    event_id = uuid8(bytes.fromhex(mark))
    return RecordTrace(
        event_id=event_id,
        session=session,
        kind=str(ThoughtStream.__struct_config__.tag),
        envelope=msgspec.to_builtins(Event(event_id, session, payload)),
        digest=mark,
        masked=bool(stream.found),
        agent=part,
        turn=turn,
        is_final=True,
    )


def tells_move(sent: SentEvent) -> bool:
    """Tell whether an event reports a task transition, known here or not."""
    return isinstance(sent.event.payload, TaskTransition)


def asks_for_move(sent: SentEvent) -> bool:
    """Tell whether an event requests a transition to a known status (S-SAOP-11)."""
    return sent.event.payload.footing().to_state in STATUSES


def event_effect(sent: SentEvent, choices: Choices) -> Commands:
    """Build the transition that an event requests; if it is refused, the event stays a trace."""
    if not asks_for_move(sent):
        return ()
    event, footing = sent.event, sent.event.payload.footing()
    # A stated commit counts only where the hub cannot read the checked-out commit itself.
    told = is_commit(footing.commit) and not choices.head()
    return (
        RequestTransition(
            task=footing.task,
            to=msgspec.convert(footing.to_state, Status),
            asked_by=event.event_id.lower(),
            commit=footing.commit if told else "",
            session=event.session_id,
            adopt=choices.adopt,
            review_required=choices.review_required,
            max_attempts=choices.max_attempts,
            ttl_ms=choices.ttl_ms,
        ),
    )


def _digest(value: dict[str, Any], choices: Choices) -> str:
    """Digest that tells a repeat from another message under the same id."""
    return choices.digest(msgspec.json.encode(value, order="sorted"))
