"""Steps of an agent's work, independent of the record's format, and tolerant field accessors."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, cast

import msgspec
from msgspec import Struct

from dragoman.core.timestamps import parse_rfc3339

# --- steps ------------------------------------------------------------------------------------

ToolStatus = Literal["success", "failure", "timeout"]


class AgentStep(Struct, frozen=True, kw_only=True):
    """One step of an agent's work."""

    at: int | None = None
    """Time in milliseconds; None: the record does not state it."""


class ModelStep(AgentStep, frozen=True, kw_only=True):
    """A step of the model's answer; all steps of one answer belong to one turn."""

    answer: str = ""
    """Id of the answer; empty: an answer ends where something is observed."""


class Thought(ModelStep, frozen=True):
    """Reasoning of the model."""

    text: str


class AnswerText(ModelStep, frozen=True):
    """Text of an answer."""

    text: str


class ToolRequest(ModelStep, frozen=True):
    """Request of the model to call a tool."""

    tool: str
    arguments: Any


class AnswerEnd(AgentStep, frozen=True):
    """The record states that the model's answer is complete."""


class ToolStart(AgentStep, frozen=True):
    """Start of a tool call."""

    call_id: str
    tool: str
    arguments: Any


class ToolEnd(AgentStep, frozen=True):
    """End of a tool call."""

    call_id: str
    status: ToolStatus
    output: str
    tool: str = ""
    """Empty: the tool of its call."""
    duration_ms: int | None = None
    """None: the time since the start of its call."""
    has_run: bool = True
    """The output is the tool's own, not the reason why it did not run."""


class Observation(AgentStep, frozen=True):
    """Anything else that the model was told, such as a person's request."""

    text: str


# --- tolerant access to fields of foreign records: an unexpected value counts as absent -------

Record = Mapping[str, Any]

_encode = msgspec.json.Encoder().encode

_EMPTY_RECORD: Record = {}


def as_record(value: Any) -> Record:
    """Return an object, or an empty one for anything else."""
    return cast(Record, value) if isinstance(value, dict) else _EMPTY_RECORD


def as_records(value: Any) -> Iterator[Record]:
    """Yield the items of a list that are objects."""
    if isinstance(value, list):
        yield from (cast(Record, item) for item in cast(list[Any], value) if isinstance(item, dict))


def as_string(value: Any) -> str:
    """Return a text, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def as_timestamp(value: Any) -> int | None:
    """Parse an RFC 3339 timestamp to milliseconds, or return None."""
    with suppress(ValueError):
        return parse_rfc3339(as_string(value))
    return None


def as_milliseconds(value: Any, unit: float = 1) -> int | None:
    """Convert a duration in units of so many milliseconds, or return None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e12:
        return round(value * unit)
    return None


def readable_text(value: Any) -> str:
    """Make a value readable: a text as it is, the texts of a list's parts, others as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [part.get("text", part.get("content")) for part in as_records(cast(Any, value))]
        if parts and len(parts) == len(cast(list[Any], value)):
            return "\n".join(map(_readable_part, parts, as_records(cast(Any, value))))
    return "" if value is None else _encode(value).decode()


def _readable_part(text: Any, part: Record) -> str:
    return text if isinstance(text, str) else f"[{as_string(part.get('type')) or 'something'}]"


def as_arguments(value: Any) -> dict[str, Any]:
    """Return a tool call's arguments: an object, also as JSON text; anything else under `input`."""
    if isinstance(value, str):
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            decoded = msgspec.json.decode(value.encode(errors="replace"))
            if isinstance(decoded, dict):
                return cast(dict[str, Any], decoded)
    if isinstance(value, dict):
        return cast(dict[str, Any], value)
    return {} if value is None else {"input": value}
