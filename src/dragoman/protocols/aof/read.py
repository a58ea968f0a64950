"""From JSON to a message: the shape that its type asks for, and nothing wrong in it."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.core.limits import MAX_LINKS
from dragoman.engine.faults import Fault
from dragoman.protocols.aof import check
from dragoman.protocols.aof.translate import string_list
from dragoman.protocols.aof.wire import (
    MESSAGES,
    HandoffRequestMessage,
    Message,
    UnknownMessage,
)

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
        message = check.convert_shape(value, UnknownMessage)
        return message if isinstance(message, Fault) else check.unknown_type_fault(message)
    message = check.convert_shape(value, MESSAGES[kind])
    if isinstance(message, Fault):
        return message
    content, whole = _encode(message), _encode_sorted(check.normalize_integers(value))
    return ShapedMessage(message, content if len(content) == len(whole) else whole, original_text)


def text_field(value: Any, field: str) -> str:
    """Return a field of any value, or an empty text if it is no text."""
    text = cast(Mapping[str, Any], value).get(field) if isinstance(value, dict) else ""
    return text if isinstance(text, str) else ""


def validate(message: Any, faults: Callable[[Any], list[Fault]]) -> Any:
    """Return the message, or its first fault."""
    first_faults = faults(message)
    return first_faults[0] if first_faults else message
