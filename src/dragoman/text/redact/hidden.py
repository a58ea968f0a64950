"""A text as it is read: without what steers a terminal and what cannot be seen.

Colours in the middle of a secret do not hide it; a place in what is read is a place in the text.
"""

import re
from bisect import bisect_right
from typing import Final

from dragoman.text.linear import Linear
from dragoman.text.safe_text import HARMFUL, SEQUENCE

ANY_HIDDEN: Final = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|"
    rb"[\xe1\xe2\xe3\xed\xef\xf0\xf3]"
)
"""The bytes with which something hidden begins; other characters may begin so, too."""
_PERHAPS: Final = Linear(ANY_HIDDEN, captures=False)
_HIDDEN: Final = re.compile(f"{SEQUENCE.pattern}|(?!\\r){HARMFUL.pattern}", re.VERBOSE)
_OPEN: Final = re.compile(
    r"(?:\x1b(?:\[[0-?]*+[ -/]*+|[\]PX^_][^\x00-\x1f\x7f-\x9f]*+\x1b?|[ -/]*+)"
    r"|\x9b[0-?]*+[ -/]*+|[\x9d\x90\x98\x9e\x9f][^\x00-\x1f\x7f-\x9f]*+\x1b?)\Z"
)
"""A sequence that has not ended yet."""
_LONGEST_OPEN: Final = 512


def may_hide(data: bytes) -> bool:
    """Whether something in a text may be hidden."""
    return _PERHAPS.search(data) is not None


class Reading:
    """A text as it is read, and where in the text each of its characters stands."""

    def __init__(self, text: str) -> None:
        kept: list[str] = []
        self._at: list[int] = [0]
        self._shift: list[int] = [0]
        end = size = 0
        for hidden in _HIDDEN.finditer(text):
            start = hidden.start()
            kept.append(text[end:start])
            size += start - end
            end = hidden.end()
            self._at.append(size)
            self._shift.append(end - size)
        kept.append(text[end:])
        self.text = "".join(kept)

    def place(self, at: int) -> int:
        """Where in the text the character stands that is read here."""
        return at + self._shift[bisect_right(self._at, at) - 1]


def open_sequence(text: str) -> int:
    """Where a sequence begins that has not ended when the text does; -1: none does."""
    found = _OPEN.search(text, max(0, len(text) - _LONGEST_OPEN))
    return found.start() if found else -1
