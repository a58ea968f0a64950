"""SAOP: what an agent thinks, does and observes, turn by turn and live, for everyone to see.

>>> turn = safe_parse('{"turn_index": 0}', "turn")
>>> turn.ok, str(turn.issues[0])
(False, 'agent_id: this is missing')
"""

from typing import Any, Final, Literal

from dragoman.protocols.saop.operations import dialect
from dragoman.protocols.saop.schema import Issue, Parsed, Raw, SaopError, Schema
from dragoman.protocols.saop.settings import Choices, ShortTails
from dragoman.protocols.saop.shapes import (
    Content,
    Event,
    Footing,
    Metadata,
    Payload,
    SandboxPulse,
    TaskTransition,
    ThoughtStream,
    ToolCompleted,
    ToolInvoked,
    TurnEnvelope,
)
from dragoman.protocols.saop.translate import last_chunk, pulse_command
from dragoman.protocols.saop.types import TYPES, Types
from dragoman.protocols.saop.versions import VERSIONS, Turns, Version

Kind = Literal["turn", "event", "payload"]

TurnEnvelopeSchema: Final = Turns()
EventSchema: Final = TYPES.event
EventPayloadSchema: Final = TYPES.payload

_SCHEMAS: Final[dict[Kind, Any]] = {
    "turn": TurnEnvelopeSchema,
    "event": EventSchema,
    "payload": EventPayloadSchema,
}


def parse(raw: Raw, kind: Kind = "turn") -> Any:
    """Parse a message; raises SaopError with all its issues if it does not fit its schema."""
    return _schema(kind).parse(raw)


def safe_parse(raw: Raw, kind: Kind = "turn") -> Parsed[Any]:
    """Parse a message without an exception: returns `ok` and `data`, or `issues`."""
    return _schema(kind).safe_parse(raw)


def _schema(kind: str) -> Any:
    for known, schema in _SCHEMAS.items():
        if known == kind:
            return schema
    raise ValueError(f"{kind!a} is no kind of message: use {', '.join(_SCHEMAS)}")


__all__ = [
    "TYPES",
    "VERSIONS",
    "Choices",
    "Content",
    "Event",
    "EventPayloadSchema",
    "EventSchema",
    "Footing",
    "Issue",
    "Metadata",
    "Parsed",
    "Payload",
    "SandboxPulse",
    "SaopError",
    "Schema",
    "ShortTails",
    "TaskTransition",
    "ThoughtStream",
    "ToolCompleted",
    "ToolInvoked",
    "TurnEnvelope",
    "TurnEnvelopeSchema",
    "Turns",
    "Types",
    "Version",
    "dialect",
    "last_chunk",
    "parse",
    "pulse_command",
    "safe_parse",
]
