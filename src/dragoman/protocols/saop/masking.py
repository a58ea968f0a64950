"""Mask secrets in turns and events before they are stored, also across the borders of chunks.

Ids and times are left alone (S-SAOP-5); everything else is searched, including fields that SAOP
does not know. The end of a thought chunk that may be the beginning of a secret is carried over:
it is stored with the next chunk, or with the final one. A terminal line is stored at once; carried
over is only the fact that a private key has begun, so that the lines that continue it are masked.
"""

import re
from collections.abc import Callable
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.base import Status
from dragoman.engine.redaction import Findings
from dragoman.protocols.saop.settings import Choices
from dragoman.protocols.saop.wire import Event, SandboxPulse, ThoughtStream
from dragoman.text.redact import NO_OPEN_KEY

_TURN_PLAIN_FIELDS: Final = frozenset({"turn_index", "agent_id", "role", "metadata"})
_METADATA_PLAIN_FIELDS: Final = frozenset(
    {"version", "task_id", "timestamp", "confidence", "estimated_complexity"}
)
_EVENT_PLAIN_FIELDS: Final = frozenset({"event_id", "session_id", "task_id", "payload"})
_PAYLOAD_PLAIN_FIELDS: Final = frozenset({"type", "agent_id", "task_id", "timestamp"})
_CHUNK_PLAIN_FIELDS: Final = _PAYLOAD_PLAIN_FIELDS | {"chunk"}
_LINE_PLAIN_FIELDS: Final = _PAYLOAD_PLAIN_FIELDS | {"line"}
STATUSES: Final = frozenset(get_args(Status))
is_commit: Final = re.compile(r"[0-9a-fA-F]{7,64}").fullmatch
_PLAIN_IF_VALID: Final[dict[str, Callable[[Any], object]]] = {
    "git_hash": lambda value: isinstance(value, str) and is_commit(value),
    "from_state": lambda value: value in STATUSES,
    "to_state": lambda value: value in STATUSES,
}
"""Field of a payload -> test of its value; a value that passes is stored unmasked."""
_MASKABLE_TYPES: Final = (str, dict, list)
_THOUGHT_TAG: Final = ThoughtStream.__struct_config__.tag
_PULSE_TAG: Final = SandboxPulse.__struct_config__.tag


class MaskedEvent(Struct, frozen=True):
    """A masked event, its findings, and the text that it carries over."""

    envelope: dict[str, Any]
    findings: Findings
    carry_over: str = ""


def carry_over_key(event: Event, speaker: str) -> str:
    """Key of the chunked text that an event is part of; empty for any other event."""
    payload = event.payload
    if isinstance(payload, ThoughtStream):
        parts = speaker, event.session_id, int(payload.turn_index), payload.agent_id
        return "\n".join(map(str, parts))
    return f"{speaker}\n{event.session_id}" if isinstance(payload, SandboxPulse) else ""


def parse_carry_over_key(key: str) -> tuple[str, int, str] | None:
    """Parse a key to the session, turn index and role of its thought; None: no thought's key."""
    _, session, *thought = key.split("\n")
    if not thought:
        return None
    turn, role = thought
    return session, int(turn), role


def mask_turn(value: dict[str, Any], choices: Choices) -> tuple[dict[str, Any], Findings]:
    """Mask the secrets of a turn, and return the findings."""
    turn, findings = _mask_fields(value, "", _TURN_PLAIN_FIELDS, choices)
    metadata, metadata_findings = _mask_fields(
        value["metadata"], "metadata", _METADATA_PLAIN_FIELDS, choices
    )
    return {**turn, "metadata": metadata}, (*findings, *metadata_findings)


def mask_event(value: dict[str, Any], carried: str, choices: Choices) -> MaskedEvent:
    """Mask an event that continues the carried-over text."""
    event, findings = _mask_fields(value, "", _EVENT_PLAIN_FIELDS, choices)
    payload: dict[str, Any] = value["payload"]
    if payload["type"] == _THOUGHT_TAG:
        chunk, kinds, carry_over = _mask_chunk(payload, carried, choices)
        other_fields, payload_findings = _mask_fields(
            payload, "payload", _CHUNK_PLAIN_FIELDS, choices
        )
        chunk_findings = [("payload.chunk", kind) for kind in kinds]
        masked_fields = {**event, "payload": {**other_fields, "chunk": chunk}}
        return MaskedEvent(
            masked_fields, (*findings, *chunk_findings, *payload_findings), carry_over
        )
    if payload["type"] == _PULSE_TAG:
        masked = choices.redactor.line(payload["line"], int(carried or NO_OPEN_KEY))
        other_fields, payload_findings = _mask_fields(
            payload, "payload", _LINE_PLAIN_FIELDS, choices
        )
        line_findings = [("payload.line", kind) for kind in masked.kinds]
        masked_fields = (
            {"line": masked.text, "masked": True} if line_findings or payload_findings else {}
        )
        line_carry_over = "" if masked.since == NO_OPEN_KEY else str(masked.since)
        masked_fields = {**event, "payload": {**other_fields, **masked_fields}}
        return MaskedEvent(
            masked_fields, (*findings, *line_findings, *payload_findings), line_carry_over
        )
    plain = {name for name, is_valid in _PLAIN_IF_VALID.items() if is_valid(payload.get(name))}
    other_fields, payload_findings = _mask_fields(
        payload, "payload", _PAYLOAD_PLAIN_FIELDS | plain, choices
    )
    return MaskedEvent({**event, "payload": other_fields}, (*findings, *payload_findings))


def _mask_fields(
    value: dict[str, Any], path: str, plain_fields: frozenset[str], choices: Choices
) -> tuple[dict[str, Any], Findings]:
    """Mask the fields of an object, except those that are left alone."""
    maskable: dict[str, Any] = {
        name: part
        for name, part in value.items()
        if name not in plain_fields and isinstance(part, _MASKABLE_TYPES)
    }
    if not maskable:
        return value, ()
    masked = choices.redactor.tree(maskable, path)
    return ({**value, **masked.value}, masked.found) if masked.found else (value, ())


def _mask_chunk(
    payload: dict[str, Any], carried: str, choices: Choices
) -> tuple[str, list[str], str]:
    """Mask a chunk: the text to store now, the kinds of secrets in it, and the new carry-over."""
    stream = choices.redactor.stream(carried)
    text = stream.feed(payload["chunk"])
    if payload["is_final"]:
        text += stream.close()
    return text, [kind for kind, _ in stream.found], stream.carry_over
