"""Which messages are AOF/1, and which are somebody else's (S-AOF-1)."""

import re
from codecs import BOM_UTF8
from collections.abc import Mapping
from typing import Any, Final, TypeGuard, cast

import msgspec
from msgspec import Raw, Struct

from dragoman.engine.incoming import Incoming, beginning, layers
from dragoman.text.strict_json import StrictJsonError, parse_json

PREFIX: Final = "AOF/1 "

_PREFIX: Final = PREFIX.encode()
_CLAIM: Final = re.compile(r'"protocol"\s*:\s*"aof"')
_CLAIM_IN_BYTES: Final = re.compile(_CLAIM.pattern.encode())


class Found(Struct, frozen=True):
    """A message that claims to be AOF/1, unwrapped."""

    said: Raw
    """Original text for the ledger, always JSON."""
    value: Any = None
    """The envelope."""
    fault: StrictJsonError | None = None
    """Reason why there is no value."""


def detect(incoming: Incoming) -> Found | None:
    """Detect an AOF/1 message; None: it is not one."""
    value, text = incoming.value, incoming.text
    if not isinstance(value, StrictJsonError):
        return Found(Raw(text), value) if is_ours(value) else unwrapped(value, incoming.most_bytes)
    if text.startswith(_PREFIX):
        return _prefixed(value, incoming)
    # Broken, but it claims to be AOF/1, so its sender is told.
    bare = text.removeprefix(BOM_UTF8)
    is_object = bare.lstrip()[:1] == b"{"
    says_so = is_object and _CLAIM_IN_BYTES.search(text, 0, incoming.most_bytes)
    if says_so or bare.startswith(_PREFIX):
        return Found(beginning(text), None, value)
    return None


def unwrapped(value: Any, most_bytes: int) -> Found | None:
    """Detect a message within an event, as an object or as text."""
    if not isinstance(value, dict):
        return None
    for inner in layers(value):
        if is_ours(inner):
            return Found(Raw(msgspec.json.encode(inner)), inner)
        found = _in_text(inner, most_bytes)
        if found is not None:
            return found
    return None


def is_ours(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether a JSON value names the protocol AOF."""
    return isinstance(value, dict) and cast(Mapping[str, Any], value).get("protocol") == "aof"


def is_claimed(text: str) -> bool:
    """Tell whether a text claims to be AOF/1, though it may be broken."""
    return text.startswith(PREFIX) or (
        text.lstrip().startswith("{") and _CLAIM.search(text) is not None
    )


def _in_text(text: Any, most_bytes: int) -> Found | None:
    if not isinstance(text, str) or not is_claimed(text):
        return None
    bare = text.removeprefix(PREFIX)
    try:
        value = parse_json(bare, most_bytes)
    except StrictJsonError as error:
        return Found(beginning(text.encode()), None, error)
    is_prefixed = text.startswith(PREFIX)
    return Found(Raw(bare.encode()), value) if is_prefixed or is_ours(value) else None


def _prefixed(fault: StrictJsonError, incoming: Incoming) -> Found:
    if fault.too_large:
        return Found(beginning(incoming.text), None, fault)
    text = incoming.text.removeprefix(_PREFIX)
    try:
        return Found(Raw(text), parse_json(text, incoming.most_bytes))
    except StrictJsonError as error:
        return Found(beginning(incoming.text), None, error)
