"""Words into messages: which ones are CCOS, which of the three they are, and what is wrong in them.

A TaskResult that is wrong is not only refused: it is an anomaly of the intent that it names.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.engine.faults import Fault, in_shape
from dragoman.engine.incoming import Incoming, beginning, layers
from dragoman.protocols.ccos.wire import (
    KINDS,
    Message,
    TaskResult,
    kind_of,
    with_others,
    without_nulls,
)
from dragoman.text.strict_json import MOST_BYTES, StrictJsonError

_WHOLE: Final = ("attempt", "sequence", "protocol_version")
_CLAIMS: Final = (b'"intent_id"', b'"success"')
"""Markers of a result, searched in a very long message before it is parsed."""
_PAYLOADS: Final = ("output", "partial")
_MOST_SHOWN: Final = 300


class Broken(Struct, frozen=True):
    """A malformed TaskResult about an intent."""

    intent_id: str
    agent_id: str
    request_id: str
    reason: str


class Spoken(Struct, frozen=True):
    """A recognized message: its type and its JSON value."""

    kind: str
    value: Mapping[str, Any]


def detect(incoming: Incoming) -> Spoken | Fault | None:
    """Recognize the message in what came in; a Fault: it is CCOS, but too long; None: it is not
    CCOS.
    """
    is_long = len(incoming.text) > MOST_BYTES
    if is_long and not all(claim in incoming.text for claim in _CLAIMS):
        return None
    if incoming.is_too_large:
        most = incoming.most_bytes
        return Fault("message_too_large", f"it has more than {most} bytes, and no more are taken")
    found = None if isinstance(incoming.value, StrictJsonError) else _unwrapped(incoming.value)
    if found is not None and is_long and found.kind != "TaskResult":
        return Fault(
            "message_too_large", f"only a TaskResult may have more than {MOST_BYTES} bytes"
        )
    return found


def _unwrapped(value: Any) -> Spoken | None:
    """Recognize a message, bare or under one of the usual keys."""
    for inner in layers(value):
        if isinstance(inner, dict):
            found = cast(dict[str, Any], inner)
            is_ours = all(isinstance(found.get(key), str) for key in ("intent_id", "agent_id"))
            kind = kind_of(found) if is_ours else ""
            if kind:
                return Spoken(kind, found)
    return None


def shaped(value: Any, shape: type[Any], code: str = "invalid_field") -> Any:
    """Validate a JSON value against a shape; a Fault if it does not fit."""
    said = without_nulls(value) if shape in KINDS.values() else value
    if isinstance(said, dict):
        said, shape = with_others(cast(dict[str, Any], said), shape)
    return in_shape(_with_whole_numbers(said), shape, code)


def reader(shape: type[Any]) -> Callable[[Any], Any]:
    """Make a parser for arguments of this shape."""
    return lambda value: shaped(value, shape)


def read_result(value: Any) -> TaskResult | Broken | Fault:
    """Parse a TaskResult; of a malformed one, what it is about, and the reason."""
    read = shaped(value, TaskResult, "anomaly")
    if not isinstance(read, Fault) or not isinstance(value, dict):
        return read
    said = cast(dict[str, Any], value)
    intent = said.get("intent_id")
    if not isinstance(intent, str) or not intent:
        return read
    return Broken(intent, _text(said, "agent_id"), _text(said, "request_id"), read.detail)


def read_message(kind: str, value: Mapping[str, Any]) -> Message | Broken | Fault:
    """Parse a message of one of the three types."""
    if KINDS[kind] is TaskResult:
        return read_result(value)
    return shaped(value, KINDS[kind], "invalid_envelope")


def words(value: Mapping[str, Any], kept_bytes: int) -> Raw:
    """Text of a result or an update that the ledger stores; of payloads above the limit only the
    size.
    """
    payloads = {name: value[name] for name in _PAYLOADS if name in value}
    sizes = {name: len(msgspec.json.encode(part)) for name, part in payloads.items()}
    left_out = {name: size for name, size in sizes.items() if size > kept_bytes}
    kept = {name: part for name, part in value.items() if name not in left_out}
    text = msgspec.json.encode(kept | {f"{name}_bytes": size for name, size in left_out.items()})
    return Raw(text) if len(text) <= MOST_BYTES else beginning(text)


def words_of_call(incoming: Incoming, kept_bytes: int) -> Raw:
    """The same for a call that is no valid message.

    Of one that cannot be parsed nothing above the limit is stored, because nobody knows where in it
    the payload is.
    """
    value = incoming.value
    if isinstance(value, dict):
        return words(cast(dict[str, Any], value), kept_bytes)
    return beginning(incoming.text if len(incoming.text) <= kept_bytes else b"")


def _text(value: Mapping[str, Any], key: str) -> str:
    said = value.get(key)
    return said[:_MOST_SHOWN] if isinstance(said, str) else ""


def _with_whole_numbers(value: Any) -> Any:
    """Convert 1.0 to 1 where an integer is expected: JSON has one kind of number."""
    if not isinstance(value, dict):
        return value
    said = cast(dict[str, Any], value)
    floats = [name for name in _WHOLE if isinstance(said.get(name), float)]
    whole = {name: int(said[name]) for name in floats if said[name].is_integer()}
    return said | whole if whole else said
