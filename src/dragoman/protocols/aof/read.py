"""From JSON to a message: the shape that its type asks for, and nothing wrong in it."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.core.limits import LINKS
from dragoman.engine.faults import Fault
from dragoman.protocols.aof import check
from dragoman.protocols.aof.translate import strings
from dragoman.protocols.aof.wire import (
    MESSAGES,
    HandoffRequested,
    Message,
    UnknownMessage,
)

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="sorted").encode


class Shaped(Struct, frozen=True):
    """A message in the shape of its type, and the content by which a repeat is recognized."""

    message: Message
    content: bytes
    said: Raw


def at_a_glance(text: bytes) -> Shaped | None:
    """Parse a text that needs no closer look; None: parse it thoroughly.

    Nearly every message is bare, without unknown fields and without needless escapes. Encoded again
    it is then exactly as long as it came, and only then: every needless character, every unknown
    field and every repeated key makes the original longer. So the faults that `strict_json` looks
    for are absent, and its bounds are those of the shape.
    """
    try:
        message = _decode(text)
        said = msgspec.json.format(text, indent=-1)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    content = _encode(message)
    if len(content) != len(said):
        return None
    if type(message) is HandoffRequested and _is_odd(message.payload.acceptance_criteria):
        return None
    return Shaped(message, content, Raw(said))


def _is_odd(criteria: Any) -> bool:
    """Tell whether a field of open shape holds anything but a list of strings within bounds.

    Numbers are excluded because a number can be encoded longer than it came.
    """
    read = strings(criteria)
    return read is None or len(read) > LINKS


def shaped(value: Any, said: Raw) -> Shaped | Fault:
    """Parse a JSON value in the shape of its type, or return its fault."""
    kind = text_of(value, "type")
    if kind not in MESSAGES:
        message = check.shaped(value, UnknownMessage)
        return message if isinstance(message, Fault) else check.unknown_type(message)
    message = check.shaped(value, MESSAGES[kind])
    if isinstance(message, Fault):
        return message
    content, everything = _encode(message), _sorted(check.with_whole_numbers(value))
    return Shaped(message, content if len(content) == len(everything) else everything, said)


def text_of(value: Any, field: str) -> str:
    """Return a field of any value, or an empty text if it is no text."""
    text = cast(Mapping[str, Any], value).get(field) if isinstance(value, dict) else ""
    return text if isinstance(text, str) else ""


def flawless(read: Any, faults: Callable[[Any], list[Fault]]) -> Any:
    """Return the message, or its first fault."""
    found = faults(read)
    return found[0] if found else read
