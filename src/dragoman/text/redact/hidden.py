"""A text as it is read: without what steers a terminal and what cannot be seen.

Colours in the middle of a secret do not hide it; a place in what is read is a place in the text.
"""

import re
from bisect import bisect_right
from typing import Final

from dragoman.text.linear import Anywhere, Linear
from dragoman.text.safe_text import HARMFUL_CLASS

ANY_HIDDEN: Final = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|"
    rb"[\xe1\xe2\xe3\xed\xef\xf0\xf3]"
)
"""The bytes with which something hidden begins; other characters may begin so, too."""
_PERHAPS: Final = Anywhere(ANY_HIDDEN)

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


class Reading:
    """A text as it is read, and where in the text each of its bytes stands."""

    def __init__(self, data: bytes, left_out: Linear = _HIDDEN) -> None:
        kept: list[bytes] = []
        self._at: list[int] = [0]
        self._shift: list[int] = [0]
        end = size = 0
        for hidden in left_out.finditer(data):
            start = hidden.start()
            kept.append(data[end:start])
            size += start - end
            end = hidden.end()
            self._at.append(size)
            self._shift.append(end - size)
        self.data = b"".join((*kept, data[end:])) if kept else data

    def place(self, at: int) -> int:
        """Where in the text the byte stands that is read here."""
        return at + self._shift[bisect_right(self._at, at) - 1]


def open_sequence(data: bytes) -> int:
    """Where a sequence begins that has not ended when the text does; -1: none does."""
    found = _OPEN.search(data)
    return found.start() if found else -1
