"""A text as it is read: without what steers a terminal and what cannot be seen.

Colours in the middle of a secret do not hide it, and one beside it parts it from other words. What
a sequence carries (a title, the address of a link, what is put on the clipboard) is read by itself.
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
"""First bytes of hidden characters; other characters may begin with them, too."""
_PERHAPS: Final = Anywhere(ANY_HIDDEN)
_LINES: Final = Linear(rb"(?:[^\r\n]*(?:" + ANY_HIDDEN + rb")[^\r\n]*[\r\n]*)+", captures=False)

_CSI: Final = r"[0-?]*+[ -/]*+[@-~]"
_PAYLOAD: Final = r"[^\x00-\x1f\x7f-\x9f]*+"
_OSC: Final = rf"{_PAYLOAD}(?:\x07|\x1b\\|\x9c)"
_STRING: Final = rf"{_PAYLOAD}(?:\x1b\\|\x9c)"
"""Rest of an OSC sequence; and of DCS, SOS, PM and APC."""
_ESCAPED: Final = rf"\[{_CSI}|\]{_OSC}|[PX^_]{_STRING}|[\]PX^_]|[ -/]++[0-~]|[0-OQ-WYZ\\`-~]"
"""Of a string sequence without an end only its start is hidden."""
_HARMFUL: Final = HARMFUL_CLASS.replace(r"\ud800-\udfff", "").replace(
    r"\x0b-\x1f", r"\x0b\x0c\x0e-\x1f"
)
"""Without the carriage return, which ends a line; invalid bytes stay."""
_HIDDEN: Final = re.compile(
    rf"[^\t\n\r -~](?<=[{_HARMFUL}])(?:(?<=\x1b)(?:{_ESCAPED})|(?<=\x9b){_CSI}|(?<=\x9d){_OSC}"
    rf"|(?<=[\x90\x98\x9e\x9f]){_STRING})?"
)
"""Hidden characters and sequences. The expression does not backtrack (safe_text says why), so that
it is linear like those of google-re2, and faster for many matches. Its first character is found at
once."""
_OPEN_PAYLOAD: Final = r"[^\x00-\x1f\x7f-\x{9f}]*"
_OPEN: Final = Linear(
    rf"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_]{_OPEN_PAYLOAD}\x1b?|[ -/]*)"
    rf"|\x{{9b}}[0-?]*[ -/]*"
    rf"|[\x{{9d}}\x{{90}}\x{{98}}\x{{9e}}\x{{9f}}]{_OPEN_PAYLOAD}\x1b?)\z".encode(),
    captures=False,
    characters=True,
)
"""A sequence that has not ended yet."""
_END: Final = rb"(?:\x07|\x1b\\|\xc2\x9c)"
_CARRYING: Final = Linear(
    rb"(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])"
    rb"(?:[^\x00-\x1f\x7f\xc2]|\xc2[\xa0-\xbf])*" + _END,
    captures=False,
)
_BEGIN: Final = 2
"""Length of such a sequence's start in bytes, be it an escape or one character."""
_LAST: Final = re.compile(_END + rb"\Z")


def may_hide(data: bytes) -> bool:
    """Check whether a text may have hidden characters."""
    return _PERHAPS.is_in(data)


def read(data: bytes) -> Reading:
    """Remove hidden characters."""
    return Reading(data, _with(data, ""), lambda text: _pieces(text, b""))


def read_apart(data: bytes) -> Reading:
    """Lines with hidden characters, each replaced by a blank, so that it separates words."""
    return in_lines(data, _LINES, lambda line: _with(line, " "), lambda line: _pieces(line, b" "))


def carried(data: bytes) -> Reading | None:
    """Payloads of the sequences in a text, each in a line of its own; None: there are none."""
    if _CARRYING.search(data) is None:
        return None
    return in_lines(data, _CARRYING, lambda one: _LAST.sub(b"\n", one[_BEGIN:]), _around)


def _around(sequence: bytes) -> Iterator[Piece]:
    yield 0, _BEGIN, b""
    yield from ((*end.span(), b"\n") for end in _LAST.finditer(sequence))


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
    """Start of a sequence that has not ended; -1: none."""
    found = _OPEN.search(data)
    return found.start() if found else -1
