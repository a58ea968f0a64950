"""Explains why no dialect recognised a message: broken syntax, or the shape of none of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.engine.operation import Dialect, Fault, fault_from_json_error
from dragoman.text.strict_cbor import is_cbor_map, parse_cbor
from dragoman.text.strict_json import StrictJsonError, parse_json


def explain_unrecognized(
    message: bytes | str | Mapping[str, Any], dialects: Sequence[Dialect]
) -> Fault:
    """Explain to the sender why no dialect took the message; `dialects`: those it could have been
    of."""
    text = message.encode(errors="surrogatepass") if isinstance(message, str) else message
    broken = _syntax_fault(text) if isinstance(text, bytes) else None
    if broken is not None:
        return broken
    shapes = "; ".join(f"{one.name}: {one.recognition_hint}" for one in dialects)
    return Fault("not_recognized", f"{_describe(text)} ({shapes})")


def _describe(message: bytes | Mapping[str, Any]) -> str:
    first = message.lstrip()[:1] if isinstance(message, bytes) else message
    if first == b"[":
        return "it is a list: send each message by itself, or several as JSON Lines, one per line"
    return "no dialect recognises it" if first else "there is nothing in it"


def _syntax_fault(text: bytes) -> Fault | None:
    """The syntax error of a text that begins as JSON or CBOR; other text may be of any dialect."""
    is_cbor = is_cbor_map(text)
    if not is_cbor and text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        (parse_cbor if is_cbor else parse_json)(text)
    except StrictJsonError as error:
        return fault_from_json_error(error)
    return None
