"""Where a value begins and ends that a name stands before: in quotes, or as a word."""

import re
from typing import Final, NamedTuple

_BARE: Final = rb"[!#$%*+\-./0-9:=?@A-Z^_a-z~\x80-\xff]"
_JOINED: Final = rb"""(?![A-Za-z_][A-Za-z0-9_.-]{0,40}[ ]?["']?[=:])(?=""" + _BARE + rb")"
"""Allowed in the middle of a password, unless the next name follows."""
_NO_ENTITY: Final = rb"(?!&(?:amp|lt|gt|quot|apos|nbsp|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});)"
"""HTML entities are left to the unescaped text."""
_INSIDE: Final = rb"(?:" + _BARE + rb"|" + _NO_ENTITY + rb"[&;,)|]" + _JOINED + rb")"
_NO_TAG: Final = rb"(?!</?[A-Za-z][A-Za-z0-9:._-]{0,40}(?:[ \t][^<>\r\n]{0,80})?/?>|\]\]>)"
_BARE_VALUE: Final = re.compile(rb"`?" + _BARE + _INSIDE + rb"{0,127}+")
_REST: Final = re.compile(rb"(?:" + _INSIDE + rb"|" + _NO_TAG + rb"[(\[{}\]<>]" + _JOINED + rb")*+")
"""In a random value brackets are no code, but a tag is no part of it."""
_OF_STRING: Final = re.compile(
    rb"(?:(?:Some|Ok|Just|String|Secret[A-Za-z]{0,12})\()?[FRBUfrbu]{0,2}(?=\\{0,3}[\"'])"
)
"""Prefix of a string literal in some languages."""
_GOES_ON: Final = rb"(?=[^\s,;:)\]}\"'])"
_QUOTE: Final = {
    b"'": re.compile(rb"(?P<own>'(?:'" + _GOES_ON + rb"|\\''|\"'\"'))|(?P<behind>\\*)'"),
    b'"': re.compile(rb'(?P<own>""' + _GOES_ON + rb')|(?P<behind>\\*)"'),
}
"""A quote; one that is doubled, or put between others as in a shell, belongs to the text."""
_LONGEST_QUOTED: Final = 200


class Value(NamedTuple):
    """Span of a value, and whether it has no quotes."""

    start: int
    end: int
    is_bare: bool


def parse_value(data: bytes, at: int) -> Value | None:
    """Parse the value here: quoted, or a word."""
    prefix = _OF_STRING.match(data, at)
    quote = begin = prefix.end() if prefix else at
    while data[quote : quote + 1] == b"\\":
        quote += 1
    sign = data[quote : quote + 1]
    if sign not in _QUOTE:
        return _parse_bare(data, at)
    if data.startswith(3 * sign, quote):
        start, end = quote + 3, data.find(3 * sign, quote + 3, quote + 4 + _LONGEST_QUOTED)
    else:
        start, end = quote + 1, _closing_quote(data, quote + 1, sign, quote - begin)
    if end > start and b"\n" not in data[start:end]:
        return Value(start, end, False)
    return _parse_unclosed(data, start) if end != start else None


def extend_value(data: bytes, value: Value) -> Value:
    """Extend a value without quotes, of which a bounded part was parsed, to its end."""
    rest = _REST.match(data, value.end)
    assert rest is not None, "it matches nothing, too"
    return strip_punctuation(data, value._replace(end=rest.end()))


def strip_punctuation(data: bytes, value: Value) -> Value:
    """Remove the punctuation of the sentence around a word."""
    end = value.end
    while end > value.start and data[end - 1] in b".,;:":
        end -= 1
    return value._replace(end=end)


def _parse_unclosed(data: bytes, at: int) -> Value | None:
    """Parse the first word of a quoted text that is too long, or does not end in its line."""
    word = _parse_bare(data, at)
    return extend_value(data, word)._replace(is_bare=False) if word else None


def _parse_bare(data: bytes, at: int) -> Value | None:
    bare = _BARE_VALUE.match(data, at)
    return Value(at + (data[at] == ord("`")), bare.end(), True) if bare else None


def _closing_quote(data: bytes, start: int, quote_character: bytes, opening: int) -> int:
    """Position of the closing quote behind as many backslashes as the opening one; -1: none.

    One behind more of them belongs to the text, unless they are backslashes of the text.
    """
    for quote in _QUOTE[quote_character].finditer(data, start, start + _LONGEST_QUOTED + 1):
        if quote["own"] and not opening:
            continue
        backslashes = len(quote["behind"] or b"")
        if backslashes <= opening or (backslashes + 1) // (opening + 1) % 2:
            return quote.start() + backslashes - min(backslashes, opening)
    return -1
