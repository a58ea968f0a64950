"""Translate turns and events to commands."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct, field

from dragoman.core.base import Status
from dragoman.core.trace import RecordTrace, RecordTurn, RequestTransition
from dragoman.engine.redaction import redaction_warnings
from dragoman.engine.redaction_carry_over import CarryOver
from dragoman.engine.request import Commands
from dragoman.protocols.saop import masking, wire
from dragoman.protocols.saop.settings import Choices
from dragoman.text.keyed_digest import uuid8


class SentTurn(Struct, frozen=True):
    """A parsed turn, and the original value with fields that the schema does not know."""

    turn: wire.TurnEnvelope
    original: dict[str, Any]
    masking_notes: list[str] = field(default_factory=list[str])
    """Notes for the sender about secrets that were masked."""


class SentEvent(Struct, frozen=True):
    """A parsed event, and the original value with fields that the schema does not know."""

    event: wire.Event
    original: dict[str, Any]
    masking_notes: list[str] = field(default_factory=list[str])


def turn_commands(sent: SentTurn, choices: Choices) -> Commands:
    """Build the command that records a turn; the first turn of a task may create it (S-ADOPT)."""
    turn, (envelope, findings) = sent.turn, masking.mask_turn(sent.original, choices)
    sent.masking_notes[:] = redaction_warnings(findings)
    return (
        RecordTurn(
            task=turn.metadata.task_id,
            turn_index=int(turn.turn_index),
            agent=turn.agent_id,
            confidence=turn.metadata.confidence,
            envelope=envelope,
            digest=_digest(sent.original, choices),
            masked=bool(findings),
            adopt=choices.adopt,
            review_required=choices.review_required,
            max_attempts=choices.max_attempts,
            ttl_ms=choices.ttl_ms,
        ),
    )


def event_command(
    sent: SentEvent, speaker: str, choices: Choices
) -> tuple[RecordTrace, CarryOver | None]:
    """Build the command that records an event, and its chunk if it is one: the command of a chunk
    has no text until that is masked.
    """
    event = sent.event
    digest = _digest({**sent.original, "event_id": event.event_id.lower()}, choices)
    key = masking.carry_over_key(event, speaker)
    if not key:
        return _trace_command(
            sent, digest, masking.mask_event(sent.original, "", choices), choices
        ), None

    def redact(carried: str) -> tuple[RecordTrace, str]:
        masked = masking.mask_event(sent.original, carried, choices)
        return _trace_command(sent, digest, masked, choices), masked.carry_over

    chunk = CarryOver(choices.tails, key, event.event_id.lower(), digest, redact)
    return _trace_command(sent, digest, masking.MaskedEvent({}, ()), choices), chunk


def _trace_command(
    sent: SentEvent, digest: str, masked: masking.MaskedEvent, choices: Choices
) -> RecordTrace:
    """Build the command that records a masked event."""
    event, context = sent.event, sent.event.payload.context()
    sent.masking_notes[:] = redaction_warnings(masked.findings)
    return RecordTrace(
        event_id=event.event_id,
        session=event.session_id,
        kind=str(type(event.payload).__struct_config__.tag),
        envelope=masked.envelope,
        digest=digest,
        masked=bool(masked.findings),
        task=context.task or _stated_task(sent),
        agent=context.agent,
        call=masked.envelope["payload"]["call_id"] if context.call else "",
        ends_call=context.ends_call,
        turn=context.turn,
        is_final=context.is_final,
        commit=choices.head() if requests_transition(sent) else "",
    )


def _stated_task(sent: SentEvent) -> str:
    """Task that an event names beside its session, as those that are read back do."""
    task: Any = sent.original.get("task_id")
    return task if isinstance(task, str) else ""


def pulse_command(
    event_id: str, session: str, pulse: wire.SandboxPulse, digest: Callable[[bytes], str]
) -> RecordTrace:
    """Record a terminal line of a program that the hub started, already masked."""
    event = wire.Event(event_id, session, pulse)
    value = msgspec.to_builtins(event)
    return RecordTrace(
        event_id=event_id,
        session=session,
        kind=str(wire.SandboxPulse.__struct_config__.tag),
        envelope=value,
        digest=digest(msgspec.json.encode(value, order="sorted")),
        masked=pulse.masked,
    )


def final_chunk(key: str, held: str, choices: Choices) -> RecordTrace | None:
    """End a thought that its sender never finished, with the text carried over from its last chunk.

    The event id is derived from the text, so that repeating it after a crash neither loses nor
    doubles anything. None: the key is not that of a thought.
    """
    thought = masking.parse_carry_over_key(key)
    if thought is None:
        return None
    (session, turn, role), stream = thought, choices.redactor.stream(held)
    text = stream.close()
    payload = wire.ThoughtStream(msgspec.convert(role, wire.SaopRole), turn, text, is_final=True)
    digest = choices.digest(f"{key}\0{held}".encode(errors="surrogatepass"))
    event_id = uuid8(bytes.fromhex(digest))
    return RecordTrace(
        event_id=event_id,
        session=session,
        kind=str(wire.ThoughtStream.__struct_config__.tag),
        envelope=msgspec.to_builtins(wire.Event(event_id, session, payload)),
        digest=digest,
        masked=bool(stream.found),
        agent=role,
        turn=turn,
        is_final=True,
    )


def names_task(sent: SentEvent) -> bool:
    """Tell whether an event is about a task, and not only about its session."""
    return isinstance(sent.event.payload, wire.NoticePayload | wire.TaskTransition)


def is_transition(sent: SentEvent) -> bool:
    """Tell whether an event reports a task transition, known here or not."""
    return isinstance(sent.event.payload, wire.TaskTransition)


def requests_transition(sent: SentEvent) -> bool:
    """Tell whether an event requests a transition to a known status (S-SAOP-11)."""
    return sent.event.payload.context().to_state in masking.STATUSES


def transition_commands(sent: SentEvent, choices: Choices) -> Commands:
    """Build the transition that an event requests; if it is refused, the event stays a trace."""
    if not requests_transition(sent):
        return ()
    event, context = sent.event, sent.event.payload.context()
    # A stated commit counts only where the hub cannot read the checked-out commit itself.
    is_commit_stated = masking.is_commit(context.commit) and not choices.head()
    return (
        RequestTransition(
            task=context.task,
            to=msgspec.convert(context.to_state, Status),
            caused_by=event.event_id.lower(),
            commit=context.commit if is_commit_stated else "",
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
