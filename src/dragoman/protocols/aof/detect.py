"""Which messages are AOF/1, and which are somebody else's (S-AOF-1)."""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any, Final, TypeGuard, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.engine.incoming import RawMessage, candidate_messages, truncated_text
from dragoman.text.strict_json import StrictJsonError, parse_json

PREFIX: Final = "AOF/1 "

_PREFIX_BYTES: Final = PREFIX.encode()
_PROTOCOL_FIELD: Final = re.compile(r'"protocol"\s*:\s*"aof"')
_PROTOCOL_FIELD_BYTES: Final = re.compile(_PROTOCOL_FIELD.pattern.encode())


class DetectedMessage(Struct, frozen=True):
    """A message that claims to be AOF/1, unwrapped."""

    original_text: Raw
    """Original text for the ledger, always JSON."""
    value: Any = None
    """The envelope."""
    fault: StrictJsonError | None = None
    """Reason why there is no value."""


def detect(incoming: RawMessage) -> DetectedMessage | None:
    """Detect an AOF/1 message; None: it is not one."""
    value, text = incoming.value, incoming.text
    if not isinstance(value, StrictJsonError):
        return (
            DetectedMessage(Raw(text), value)
            if is_aof(value)
            else unwrap(value, incoming.max_bytes)
        )
    if text.startswith(_PREFIX_BYTES):
        return _parse_prefixed(value, incoming)
    # Broken, but it claims to be AOF/1, so its sender is told.
    bare = text.removeprefix(BOM_UTF8)
    is_object = bare.lstrip()[:1] == b"{"
    has_protocol_field = is_object and _PROTOCOL_FIELD_BYTES.search(text, 0, incoming.max_bytes)
    if has_protocol_field or bare.startswith(_PREFIX_BYTES):
        return DetectedMessage(truncated_text(text), None, value)
    return None


def unwrap(value: Any, most_bytes: int) -> DetectedMessage | None:
    """Detect a message within an event, as an object or as text."""
    if not isinstance(value, dict):
        return None
    for inner in candidate_messages(value):
        if is_aof(inner):
            return DetectedMessage(Raw(msgspec.json.encode(inner)), inner)
        found = _detect_in_text(inner, most_bytes)
        if found is not None:
            return found
    return None


def is_aof(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether a JSON value names the protocol AOF."""
    return isinstance(value, dict) and cast(Mapping[str, Any], value).get("protocol") == "aof"


def has_aof_marker(text: str) -> bool:
    """Tell whether a text claims to be AOF/1, though it may be broken."""
    return text.startswith(PREFIX) or (
        text.lstrip().startswith("{") and _PROTOCOL_FIELD.search(text) is not None
    )


def _detect_in_text(text: Any, most_bytes: int) -> DetectedMessage | None:
    if not isinstance(text, str) or not has_aof_marker(text):
        return None
    bare = text.removeprefix(PREFIX)
    try:
        value = parse_json(bare, most_bytes)
    except StrictJsonError as error:
        return DetectedMessage(truncated_text(text.encode()), None, error)
    is_prefixed = text.startswith(PREFIX)
    return DetectedMessage(Raw(bare.encode()), value) if is_prefixed or is_aof(value) else None


def _parse_prefixed(fault: StrictJsonError, incoming: RawMessage) -> DetectedMessage:
    if fault.too_large:
        return DetectedMessage(truncated_text(incoming.text), None, fault)
    text = incoming.text.removeprefix(_PREFIX_BYTES)
    try:
        return DetectedMessage(Raw(text), parse_json(text, incoming.max_bytes))
    except StrictJsonError as error:
        return DetectedMessage(truncated_text(incoming.text), None, error)
