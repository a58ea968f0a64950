"""Parse CCOS messages: recognize which of the three it is, and validate its shape.

A malformed TaskResult is not only refused: it is recorded as an anomaly of the intent that it
names.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.engine.operation import (
    Fault,
    RawMessage,
    candidate_messages,
    truncated_text,
    validate_shape,
)
from dragoman.protocols.ccos.wire import (
    MESSAGE_SHAPES,
    Message,
    TaskResult,
    detect_kind,
    drop_null_fields,
    split_unknown_fields,
)
from dragoman.text.strict_json import MAX_BYTES, StrictJsonError

_INTEGER_FIELDS: Final = ("attempt", "sequence", "protocol_version")
_RESULT_MARKERS: Final = (b'"intent_id"', b'"success"')
"""Markers of a result, searched in a very long message before it is parsed."""
_PAYLOAD_FIELDS: Final = ("output", "partial")
_MAX_SHOWN_CHARS: Final = 300


class InvalidResult(Struct, frozen=True):
    """A malformed TaskResult about an intent."""

    intent_id: str
    agent_id: str
    request_id: str
    reason: str


class DetectedMessage(Struct, frozen=True):
    """A recognized message: its type and its JSON value."""

    kind: str
    value: Mapping[str, Any]


def detect_message(raw: RawMessage) -> DetectedMessage | Fault | None:
    """Recognize the message in what came in; a Fault: it is CCOS, but too long; None: it is not
    CCOS.
    """
    is_long = len(raw.text) > MAX_BYTES
    if is_long and not all(claim in raw.text for claim in _RESULT_MARKERS):
        return None
    if raw.is_too_large:
        most = raw.max_bytes
        return Fault("message_too_large", f"it has more than {most} bytes, and no more are taken")
    found = None if isinstance(raw.value, StrictJsonError) else _unwrap(raw.value)
    if found is not None and is_long and found.kind != "TaskResult":
        return Fault("message_too_large", f"only a TaskResult may have more than {MAX_BYTES} bytes")
    return found


def _unwrap(value: Any) -> DetectedMessage | None:
    """Recognize a message, bare or under one of the usual keys."""
    for inner in candidate_messages(value):
        if isinstance(inner, dict):
            found = cast(dict[str, Any], inner)
            is_ours = all(isinstance(found.get(key), str) for key in ("intent_id", "agent_id"))
            kind = detect_kind(found) if is_ours else ""
            if kind:
                return DetectedMessage(kind, found)
    return None


def parse_shape(value: Any, shape: type[Any], code: str = "invalid_field") -> Any:
    """Validate a JSON value against a shape; a Fault if it does not fit."""
    fields = drop_null_fields(value) if shape in MESSAGE_SHAPES.values() else value
    if isinstance(fields, dict):
        fields, shape = split_unknown_fields(cast(dict[str, Any], fields), shape)
    return validate_shape(_integral_floats_to_ints(fields), shape, code)


def argument_parser(shape: type[Any]) -> Callable[[Any], Any]:
    """Make a parser for arguments of this shape."""
    return lambda value: parse_shape(value, shape)


def parse_result(value: Any) -> TaskResult | InvalidResult | Fault:
    """Parse a TaskResult; of a malformed one, what it is about, and the reason."""
    read = parse_shape(value, TaskResult, "anomaly")
    if not isinstance(read, Fault) or not isinstance(value, dict):
        return read
    fields = cast(dict[str, Any], value)
    intent = fields.get("intent_id")
    if not isinstance(intent, str) or not intent:
        return read
    return InvalidResult(
        intent, _short_text(fields, "agent_id"), _short_text(fields, "request_id"), read.detail
    )


def parse_message(kind: str, value: Mapping[str, Any]) -> Message | InvalidResult | Fault:
    """Parse a message of one of the three types."""
    if MESSAGE_SHAPES[kind] is TaskResult:
        return parse_result(value)
    return parse_shape(value, MESSAGE_SHAPES[kind], "invalid_envelope")


def stored_text(value: Mapping[str, Any], max_output_bytes: int) -> Raw:
    """Text of a result or an update that the ledger stores; of payloads above the limit only the
    size.
    """
    payloads = {name: value[name] for name in _PAYLOAD_FIELDS if name in value}
    sizes = {name: len(msgspec.json.encode(part)) for name, part in payloads.items()}
    omitted = {name: size for name, size in sizes.items() if size > max_output_bytes}
    remaining = {name: part for name, part in value.items() if name not in omitted}
    text = msgspec.json.encode(
        remaining | {f"{name}_bytes": size for name, size in omitted.items()}
    )
    return Raw(text) if len(text) <= MAX_BYTES else truncated_text(text)


def stored_text_of_call(raw: RawMessage, max_output_bytes: int) -> Raw:
    """The same for a call that is no valid message.

    Of one that cannot be parsed nothing above the limit is stored, because nobody knows where in it
    the payload is.
    """
    value = raw.value
    if isinstance(value, dict):
        return stored_text(cast(dict[str, Any], value), max_output_bytes)
    return truncated_text(raw.text if len(raw.text) <= max_output_bytes else b"")


def _short_text(value: Mapping[str, Any], key: str) -> str:
    text = value.get(key)
    return text[:_MAX_SHOWN_CHARS] if isinstance(text, str) else ""


def _integral_floats_to_ints(value: Any) -> Any:
    """Convert 1.0 to 1 where an integer is expected: JSON has one kind of number."""
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    floats = [name for name in _INTEGER_FIELDS if isinstance(fields.get(name), float)]
    whole = {name: int(fields[name]) for name in floats if fields[name].is_integer()}
    return fields | whole if whole else fields
