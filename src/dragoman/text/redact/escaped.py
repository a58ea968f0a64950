r"""A text as it is meant: with the signs that JSON, programs, URLs and HTML write otherwise.

`\u0026`, `\"`, `%26`, `%2526`, `&amp;`, `&#38;`. However often a text was written so, once more is
the same again: `\\\"` is `"`, and so is `&amp;quot;`. A value that is read in the same way is found
in it however many of its signs were written otherwise, and by whom.
"""

import html
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from dragoman.text.linear import LinearRegex
from dragoman.text.redact.reading import NormalizedText, Replacement, normalize_lines

_HEX: Final = rb"[0-9A-Fa-f]"
ANY_ESCAPED: Final = (
    rb"\\(?:u" + _HEX + rb"{4}|x" + _HEX + rb"{2}|[0-3][0-7]{2})|%" + _HEX + rb"{2}"
    rb"|&(?:#[0-9]|#[xX]" + _HEX + rb"|[A-Za-z][A-Za-z0-9]{1,31};)|\\{4,}[\"']"
)
"""A character that is escaped by number or name, or a quote behind so many backslashes that it is
JSON in JSON in JSON."""
_PAIR: Final = rb"u[Dd][89ABab]" + _HEX + rb"{2}\\++u[Dd][C-Fc-f]" + _HEX + rb"{2}"
_BACKSLASHED: Final = (
    rb"\\*+(?:" + _PAIR + rb"|u" + _HEX + rb"{4}|x" + _HEX + rb"{2}|[0-3][0-7]{2}|[bfnrtv]"
    rb"|[^A-Za-z0-9\t-\r\\])|\\++"
)
_NAMED: Final = rb"(?:amp;)*(?:#[0-9]{1,7}|#[xX]" + _HEX + rb"{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
_ESCAPE: Final = re.compile(
    rb"[\\%&](?:(?<=\\)(?:" + _BACKSLASHED + rb")"
    rb"|(?<=%)(?:25)*" + _HEX + rb"{2}|(?<=&)" + _NAMED + rb")"
)
"""An escape. The expression goes back by no more than one of its parts, so that it is linear like
those of google-re2, and faster for many matches. Its first byte is found at once."""
_ESCAPED_LINES: Final = LinearRegex(
    rb"(?:[^\r\n]*(?:" + ANY_ESCAPED + rb")[^\r\n]*[\r\n]*)+", captures=False
)
_LETTERS: Final = dict(zip(b"bfnrtv", b"\b\f\n\r\t\v", strict=True))
"""Letter behind a backslash -> byte."""
_REMEMBERED: Final = 4_096
_OCTAL: Final = b"0123"
_FIRST_PAIRED: Final = 0xD800
_SECOND_PAIRED: Final = 0xDC00
_BEYOND: Final = 0x10000


def unescape(data: bytes) -> bytes:
    """Decode all escapes of a text; the same object, if there are none."""
    return _ESCAPE.sub(_decode_match, data) if _may_have_escapes(data) else data


def unescape_with_positions(data: bytes) -> NormalizedText:
    """Decode all escapes, with positions in the original."""
    return NormalizedText(data, unescape(data), _find_escapes)


def unescape_lines(data: bytes) -> NormalizedText | None:
    """Decode the lines with escapes by number or name; None: there are none."""
    is_there = _may_have_escapes(data) and _ESCAPED_LINES.search(data)
    return normalize_lines(data, _ESCAPED_LINES, unescape, _find_escapes) if is_there else None


def _may_have_escapes(data: bytes) -> bool:
    return b"\\" in data or b"%" in data or b"&" in data


def _find_escapes(data: bytes) -> Iterator[Replacement]:
    return ((*found.span(), _decode_escape(found[0])) for found in _ESCAPE.finditer(data))


def _decode_match(found: re.Match[bytes]) -> bytes:
    return _decode_escape(found[0])


@lru_cache(_REMEMBERED)
def _decode_escape(escape: bytes) -> bytes:
    """Decode one escape."""
    if escape[0] == ord("%"):
        return bytes.fromhex(escape[-2:].decode())
    if escape[0] == ord("&"):
        name = escape[1:-1].rpartition(b";")[2].decode()
        return html.unescape(f"&{name};").encode(errors="surrogatepass")
    rest = escape.lstrip(b"\\")
    if not rest:
        return b"\\"
    if rest[0] == ord("u"):
        return _character(*(int(code, 16) for code in re.split(rb"\\+u", rest[1:])))
    if rest[0] == ord("x"):
        return bytes.fromhex(rest[1:].decode())
    if rest[0] in _OCTAL:
        return bytes((int(rest, 8),))
    return bytes((_LETTERS.get(rest[0], rest[0]),))


def _character(code: int, second: int = 0) -> bytes:
    if second:
        code = _BEYOND + ((code - _FIRST_PAIRED) << 10) + (second - _SECOND_PAIRED)
    return chr(code).encode(errors="surrogatepass")
