"""Detect AOF/1 messages, bare or wrapped, and parse them to the shape of their type (S-AOF-1)."""

from codecs import BOM_UTF8
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeGuard, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.core.limits import MAX_LINKS
from dragoman.engine.operation import Fault, RawMessage, candidate_messages, truncated_text
from dragoman.protocols.aof import validation
from dragoman.protocols.aof.translate import string_list
from dragoman.protocols.aof.validation import unknown_message_faults
from dragoman.protocols.aof.wire import MESSAGES, HandoffRequestMessage, Message, UnknownMessage
from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.strict_json import StrictJsonError, parse_json

# --- detection --------------------------------------------------------------------------------

PREFIX: Final = "AOF/1 "

_PREFIX_BYTES: Final = PREFIX.encode()

_PROTOCOL_FIELD: Final = lazy_regex(r'"protocol"\s*:\s*"aof"')

_PROTOCOL_FIELD_BYTES: Final = lazy_regex(_PROTOCOL_FIELD.pattern.encode())


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


# --- parsing ----------------------------------------------------------------------------------

_decode = msgspec.json.Decoder(Message).decode

_encode = msgspec.json.Encoder().encode

_encode_sorted = msgspec.json.Encoder(order="sorted").encode


class ShapedMessage(Struct, frozen=True):
    """A message in the shape of its type, and the content by which a repeat is recognized."""

    message: Message
    content: bytes
    original_text: Raw


def fast_parse(text: bytes) -> ShapedMessage | None:
    """Parse a text that needs no closer look; None: parse it thoroughly.

    Nearly every message is bare, without unknown fields and without needless escapes. Encoded again
    it is then exactly as long as it came, and only then: every needless character, every unknown
    field and every repeated key makes the original longer. So the faults that `strict_json` looks
    for are absent, and its bounds are those of the shape.
    """
    try:
        message = _decode(text)
        compact = msgspec.json.format(text, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    content = _encode(message)
    if len(content) != len(compact):
        return None
    if type(message) is HandoffRequestMessage and _is_unusual(message.payload.acceptance_criteria):
        return None
    return ShapedMessage(message, content, Raw(compact))


def _is_unusual(criteria: Any) -> bool:
    """Tell whether a field of open shape holds anything but a list of strings within bounds.

    Numbers are excluded because a number can be encoded longer than it came.
    """
    items = string_list(criteria)
    return items is None or len(items) > MAX_LINKS


def parse_envelope(value: Any, original_text: Raw) -> ShapedMessage | Fault:
    """Parse a JSON value in the shape of its type, or return its fault."""
    kind = text_field(value, "type")
    if kind not in MESSAGES:
        message = validation.convert_shape(value, UnknownMessage)
        return message if isinstance(message, Fault) else unknown_message_faults(message)[0]
    message = validation.convert_shape(value, MESSAGES[kind])
    if isinstance(message, Fault):
        return message
    content, whole = _encode(message), _encode_sorted(validation.normalize_integers(value))
    return ShapedMessage(message, content if len(content) == len(whole) else whole, original_text)


def text_field(value: Any, field: str) -> str:
    text = cast(Mapping[str, Any], value).get(field) if isinstance(value, dict) else ""
    return text if isinstance(text, str) else ""


def validate(message: Any, faults: Callable[[Any], list[Fault]]) -> Any:
    """Return the message, or its first fault."""
    first_faults = faults(message)
    return first_faults[0] if first_faults else message
