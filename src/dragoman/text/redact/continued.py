"""Lines that a shell reads as one: a backslash at the end of a line goes on with the next."""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import LinearRegex
from dragoman.text.redact.reading import NormalizedText, Replacement, normalize_lines

_ENDS: Final = (b"\\\n", b"\\\r")
_CONTINUED_LINES: Final = LinearRegex(
    rb"(?:(?:[^\r\n]*\\(?:\r\n?|\n))+[^\r\n]*[\r\n]*)+",
    captures=False,
)
_BREAK: Final = re.compile(rb"([ \t\\]?)\\(?:\r\n?|\n)([ \t]*+)")
_CUT: Final = re.compile(rb"[^\s\\]\\(?:\r\n?|\n)\Z")
_BLANK: Final = re.compile(rb"\s")


def join_continued_lines(data: bytes) -> NormalizedText | None:
    """Join lines that go on in the next one; None: there are none."""
    if b"\\" not in data or not any(end in data for end in _ENDS):
        return None
    return normalize_lines(
        data, _CONTINUED_LINES, lambda lines: _BREAK.sub(_joint, lines), _break_replacements
    )


def continued_word_start(data: bytes) -> int:
    """Start of a word that goes on in the line which follows; -1: none."""
    if not data.endswith((*_ENDS, b"\\\r\n")) or (end := _CUT.search(data)) is None:
        return -1
    begins = (found.end() for found in _BLANK.finditer(data, 0, end.start()))
    return max(begins, default=0)


def _break_replacements(lines: bytes) -> Iterator[Replacement]:
    return ((*found.span(), _joint(found)) for found in _BREAK.finditer(lines))


def _joint(found: re.Match[bytes]) -> bytes:
    """Blank between words; nothing within a word."""
    return b" " if found[1] or found[2] else b""
