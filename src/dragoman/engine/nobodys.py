"""Why no dialect takes a message for its own: it is broken, or nothing in it is said in one."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.engine.faults import Fault, json_fault
from dragoman.engine.operation import Dialect
from dragoman.text.strict_cbor import is_cbor_map, parse_cbor
from dragoman.text.strict_json import StrictJsonError, parse_json


def why_nobodys(said: bytes | str | Mapping[str, Any], meant: Sequence[Dialect]) -> Fault:
    """Explain to the sender why no dialect took the message; `dialects`: those it could have been
    of."""
    text = said.encode(errors="surrogatepass") if isinstance(said, str) else said
    broken = _broken(text) if isinstance(text, bytes) else None
    if broken is not None:
        return broken
    shapes = "; ".join(f"{one.name}: {one.known_by}" for one in meant)
    return Fault("not_recognized", f"{_what(text)} ({shapes})")


def _what(said: bytes | Mapping[str, Any]) -> str:
    begin = said.lstrip()[:1] if isinstance(said, bytes) else said
    if begin == b"[":
        return "it is a list: send each message by itself, or several as JSON Lines, one per line"
    return "no dialect recognises it" if begin else "there is nothing in it"


def _broken(text: bytes) -> Fault | None:
    """The syntax error of a text that begins as JSON or CBOR; other text may be of any dialect."""
    is_cbor = is_cbor_map(text)
    if not is_cbor and text.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        (parse_cbor if is_cbor else parse_json)(text)
    except StrictJsonError as error:
        return json_fault(error)
    return None
