"""A text as it is read: without what steers a terminal and what cannot be seen.

Colours in the middle of a secret do not hide it, and one beside it parts it from other words.
"""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import Anywhere, Linear
from dragoman.text.redact.reading import Piece, Reading, in_lines
from dragoman.text.safe_text import HARMFUL_CLASS

ANY_HIDDEN: Final = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|"
    rb"[\xe1\xe2\xe3\xed\xef\xf0\xf3]"
)
"""The bytes with which something hidden begins; other characters may begin so, too."""
_PERHAPS: Final = Anywhere(ANY_HIDDEN)
_LINES: Final = Linear(rb"(?:[^\r\n]*(?:" + ANY_HIDDEN + rb")[^\r\n]*[\r\n]*)+", captures=False)

_CSI: Final = r"[0-?]*+[ -/]*+[@-~]"
_PAYLOAD: Final = r"[^\x00-\x1f\x7f-\x9f]*+"
_OSC: Final = rf"{_PAYLOAD}(?:\x07|\x1b\\|\x9c)"
_STRING: Final = rf"{_PAYLOAD}(?:\x1b\\|\x9c)"
"""What follows the beginning of OSC; and that of DCS, SOS, PM and APC."""
_ESCAPED: Final = rf"\[{_CSI}|\]{_OSC}|[PX^_]{_STRING}|[ -/]++[0-~]|[0-OQ-WYZ\\`-~]"
_HARMFUL: Final = HARMFUL_CLASS.replace(r"\ud800-\udfff", "").replace(
    r"\x0b-\x1f", r"\x0b\x0c\x0e-\x1f"
)
"""But for the carriage return, which ends a line; bytes that are no characters stay."""
_HIDDEN: Final = re.compile(
    rf"[^\t\n\r -~](?<=[{_HARMFUL}])(?:(?<=\x1b)(?:{_ESCAPED})|(?<=\x9b){_CSI}|(?<=\x9d){_OSC}"
    rf"|(?<=[\x90\x98\x9e\x9f]){_STRING})?"
)
"""It goes back over nothing (safe_text says why), so that it is linear like those of google-re2; of
many matches each is told in less time. What it begins with is found at once."""
_OPEN_PAYLOAD: Final = r"[^\x00-\x1f\x7f-\x{9f}]*"
_OPEN: Final = Linear(
    rf"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_]{_OPEN_PAYLOAD}\x1b?|[ -/]*)"
    rf"|\x{{9b}}[0-?]*[ -/]*"
    rf"|[\x{{9d}}\x{{90}}\x{{98}}\x{{9e}}\x{{9f}}]{_OPEN_PAYLOAD}\x1b?)\z".encode(),
    captures=False,
    characters=True,
)
"""A sequence that has not ended yet."""


def may_hide(data: bytes) -> bool:
    """Whether something in a text may be hidden."""
    return _PERHAPS.is_in(data)


def read(data: bytes) -> Reading:
    """A text without what is hidden in it."""
    return Reading(data, _with(data, ""), lambda text: _pieces(text, b""))


def read_apart(data: bytes) -> Reading:
    """The lines in which something is hidden, with a blank in its place: it parts words."""
    return in_lines(data, _LINES, lambda line: _with(line, " "), lambda line: _pieces(line, b" "))


def _with(data: bytes, instead: str) -> bytes:
    return _encoded(_HIDDEN.sub(instead, _decoded(data)))


def _pieces(data: bytes, instead: bytes) -> Iterator[Piece]:
    text, behind, end = _decoded(data), 0, 0
    for found in _HIDDEN.finditer(text):
        start = end + len(_encoded(text[behind : found.start()]))
        behind, end = found.end(), start + len(_encoded(found[0]))
        yield start, end, instead


def _decoded(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def open_sequence(data: bytes) -> int:
    """Where a sequence begins that has not ended when the text does; -1: none does."""
    found = _OPEN.search(data)
    return found.start() if found else -1
