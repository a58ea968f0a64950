"""SAOP: live traces of an agent's thoughts, actions and observations, turn by turn.

>>> turn = safe_parse('{"turn_index": 0}', "turn")
>>> turn.ok, str(turn.issues[0])
(False, 'agent_id: it is missing')
"""

from typing import Any, Literal

from dragoman.protocols.saop.errors import Issue, SaopError
from dragoman.protocols.saop.operations import dialect
from dragoman.protocols.saop.parse import (
    SCHEMAS,
    TYPES,
    VERSIONS,
    EventTypes,
    Parsed,
    RawMessage,
    Schema,
    Version,
    VersionedTurnSchema,
)
from dragoman.protocols.saop.settings import Choices, MemoryCarryOver
from dragoman.protocols.saop.translate import final_chunk, pulse_command
from dragoman.protocols.saop.wire import (
    Content,
    Event,
    EventContext,
    Metadata,
    Payload,
    SandboxPulse,
    TaskTransition,
    ThoughtStream,
    ToolCompleted,
    ToolInvoked,
    TurnEnvelope,
)

Kind = Literal["turn", "event", "payload"]

TurnEnvelopeSchema, EventSchema, EventPayloadSchema = SCHEMAS.values()


def parse(raw: RawMessage, kind: Kind = "turn") -> Any:
    """Parse a message; raises SaopError with all its issues if it does not fit its schema."""
    return _schema_of(kind).parse(raw)


def safe_parse(raw: RawMessage, kind: Kind = "turn") -> Parsed[Any]:
    """Parse a message without an exception: returns `ok` and `data`, or `issues`."""
    return _schema_of(kind).safe_parse(raw)


def _schema_of(kind: str) -> Any:
    if kind not in SCHEMAS:
        raise ValueError(f"{kind!a} is no kind of message: use {', '.join(SCHEMAS)}")
    return SCHEMAS[kind]


__all__ = [
    "TYPES",
    "VERSIONS",
    "Choices",
    "Content",
    "Event",
    "EventContext",
    "EventPayloadSchema",
    "EventSchema",
    "EventTypes",
    "Issue",
    "MemoryCarryOver",
    "Metadata",
    "Parsed",
    "Payload",
    "SandboxPulse",
    "SaopError",
    "Schema",
    "TaskTransition",
    "ThoughtStream",
    "ToolCompleted",
    "ToolInvoked",
    "TurnEnvelope",
    "TurnEnvelopeSchema",
    "Version",
    "VersionedTurnSchema",
    "dialect",
    "final_chunk",
    "parse",
    "pulse_command",
    "safe_parse",
]
