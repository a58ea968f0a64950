"""Lines that a shell reads as one: a backslash at the end of a line goes on with the next."""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import Linear
from dragoman.text.redact.reading import Piece, Reading, in_lines

_ENDS: Final = (b"\\\n", b"\\\r")
_LINES: Final = Linear(
    rb"(?:(?:[^\r\n]*\\(?:\r\n?|\n))+[^\r\n]*[\r\n]*)+",
    captures=False,
)
_BREAK: Final = re.compile(rb"\\(?:\r\n?|\n)[ \t]*+")
_INSTEAD: Final = b" "
"""What is broken so is mostly words; one that is broken in its middle is not put together."""


def continued_lines(data: bytes) -> Reading | None:
    """The lines that go on in the next one, as one line each; None: there is none."""
    if b"\\" not in data or not any(end in data for end in _ENDS):
        return None
    return in_lines(data, _LINES, lambda lines: _BREAK.sub(_INSTEAD, lines), _breaks)


def _breaks(lines: bytes) -> Iterator[Piece]:
    return ((*found.span(), _INSTEAD) for found in _BREAK.finditer(lines))
