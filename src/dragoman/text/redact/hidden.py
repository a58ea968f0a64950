"""A text as it is read: without what steers a terminal and what cannot be seen.

Colours in the middle of a secret do not hide it, and one beside it parts it from other words.
"""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import Anywhere, Linear
from dragoman.text.redact.reading import Piece, Reading, in_lines, left_out
from dragoman.text.safe_text import HARMFUL_CLASS

ANY_HIDDEN: Final = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|"
    rb"[\xe1\xe2\xe3\xed\xef\xf0\xf3]"
)
"""The bytes with which something hidden begins; other characters may begin so, too."""
_PERHAPS: Final = Anywhere(ANY_HIDDEN)
_LINES: Final = Linear(rb"(?:[^\r\n]*(?:" + ANY_HIDDEN + rb")[^\r\n]*[\r\n]*)+", captures=False)

_PAYLOAD: Final = r"[^\x00-\x1f\x7f-\x{9f}]*"
_SEQUENCES: Final = (
    r"(?:\x1b\[|\x{9b})[0-?]*[ -/]*[@-~]",
    rf"(?:\x1b\]|\x{{9d}}){_PAYLOAD}(?:\x07|\x1b\\|\x{{9c}})",
    rf"(?:\x1b[PX^_]|[\x{{90}}\x{{98}}\x{{9e}}\x{{9f}}]){_PAYLOAD}(?:\x1b\\|\x{{9c}})",
    r"\x1b[ -/]+[0-~]",
    r"\x1b[0-OQ-WYZ\\`-~]",
)
"""CSI; OSC; DCS, SOS, PM and APC; escapes like ESC ( B; escapes like ESC c."""


def _in_re2(inside: str) -> str:
    """The class of what is harmful, but for the carriage return, which ends a line."""
    inside = inside.replace(r"\ud800-\udfff", "").replace(r"\x0b-\x1f", r"\x0b\x0c\x0e-\x1f")
    return re.sub(r"\\[xuU]([0-9a-f]+)", r"\\x{\1}", inside)


_HIDDEN: Final = Linear(
    "|".join((*_SEQUENCES, f"[{_in_re2(HARMFUL_CLASS)}]")).encode(),
    captures=False,
    characters=True,
)
_OPEN: Final = Linear(
    rf"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_]{_PAYLOAD}\x1b?|[ -/]*)"
    rf"|\x{{9b}}[0-?]*[ -/]*|[\x{{9d}}\x{{90}}\x{{98}}\x{{9e}}\x{{9f}}]{_PAYLOAD}\x1b?)\z".encode(),
    captures=False,
    characters=True,
)
"""A sequence that has not ended yet."""


def may_hide(data: bytes) -> bool:
    """Whether something in a text may be hidden."""
    return _PERHAPS.is_in(data)


def read(data: bytes) -> Reading:
    """A text without what is hidden in it."""
    return left_out(data, _HIDDEN)


def read_apart(data: bytes) -> Reading:
    """The lines in which something is hidden, with a blank in its place: it parts words."""
    return in_lines(data, _LINES, _as_blanks)


def _as_blanks(line: bytes) -> Iterator[Piece]:
    return ((*found.span(), b" ") for found in _HIDDEN.finditer(line))


def open_sequence(data: bytes) -> int:
    """Where a sequence begins that has not ended when the text does; -1: none does."""
    found = _OPEN.search(data)
    return found.start() if found else -1
