"""A text as it is read: without what steers a terminal and what cannot be seen.

Colours in the middle of a secret do not hide it, and one beside it parts it from other words. What
a sequence carries (a title, the address of a link, what is put on the clipboard) is read by itself.
"""

import re
from collections.abc import Iterator
from typing import Final

from dragoman.text.linear import AnyRegex, LinearRegex
from dragoman.text.redact.reading import NormalizedText, Replacement, normalize_lines
from dragoman.text.safe_text import HARMFUL_CLASS

ANY_HIDDEN: Final = (
    rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]|\xc2[\x80-\x9f\xad]|\xcd\x8f|\xd8\x9c|"
    rb"[\xe1\xe2\xe3\xed\xef\xf0\xf3]"
)
"""First bytes of hidden characters; other characters may begin with them, too."""
_PERHAPS: Final = AnyRegex(ANY_HIDDEN)
_HIDDEN_LINES: Final = LinearRegex(
    rb"(?:[^\r\n]*(?:" + ANY_HIDDEN + rb")[^\r\n]*[\r\n]*)+", captures=False
)

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
_OPEN: Final = LinearRegex(
    rf"(?:\x1b(?:\[[0-?]*[ -/]*|[\]PX^_]{_OPEN_PAYLOAD}\x1b?|[ -/]*)"
    rf"|\x{{9b}}[0-?]*[ -/]*"
    rf"|[\x{{9d}}\x{{90}}\x{{98}}\x{{9e}}\x{{9f}}]{_OPEN_PAYLOAD}\x1b?)\z".encode(),
    captures=False,
    characters=True,
)
"""A sequence that has not ended yet."""
_END: Final = rb"(?:\x07|\x1b\\|\xc2\x9c)"
_CARRYING: Final = LinearRegex(
    rb"(?:\x1b[\]PX^_]|\xc2[\x90\x98\x9d-\x9f])"
    rb"(?:[^\x00-\x1f\x7f\xc2]|\xc2[\xa0-\xbf])*" + _END,
    captures=False,
)
_BEGIN: Final = 2
"""Length of such a sequence's start in bytes, be it an escape or one character."""
_LAST: Final = re.compile(_END + rb"\Z")


def may_have_hidden(data: bytes) -> bool:
    """Check whether a text may have hidden characters."""
    return _PERHAPS.matches(data)


def remove_hidden(data: bytes) -> NormalizedText:
    """Remove hidden characters."""
    return NormalizedText(
        data, _replace_hidden(data, ""), lambda text: _hidden_replacements(text, b"")
    )


def separate_at_hidden(data: bytes) -> NormalizedText:
    """Lines with hidden characters, each replaced by a blank, so that it separates words."""
    return normalize_lines(
        data,
        _HIDDEN_LINES,
        lambda line: _replace_hidden(line, " "),
        lambda line: _hidden_replacements(line, b" "),
    )


def sequence_payloads(data: bytes) -> NormalizedText | None:
    """Payloads of the sequences in a text, each in a line of its own; None: there are none."""
    if _CARRYING.search(data) is None:
        return None
    return normalize_lines(
        data, _CARRYING, lambda one: _LAST.sub(b"\n", one[_BEGIN:]), _frame_replacements
    )


def _frame_replacements(sequence: bytes) -> Iterator[Replacement]:
    yield 0, _BEGIN, b""
    yield from ((*end.span(), b"\n") for end in _LAST.finditer(sequence))


def _replace_hidden(data: bytes, replacement: str) -> bytes:
    return _encode_lossless(_HIDDEN.sub(replacement, _decode_lossless(data)))


def _hidden_replacements(data: bytes, replacement: bytes) -> Iterator[Replacement]:
    text, behind, end = _decode_lossless(data), 0, 0
    for found in _HIDDEN.finditer(text):
        start = end + len(_encode_lossless(text[behind : found.start()]))
        behind, end = found.end(), start + len(_encode_lossless(found[0]))
        yield start, end, replacement


def _decode_lossless(data: bytes) -> str:
    return data.decode(errors="surrogateescape")


def _encode_lossless(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def open_sequence_start(data: bytes) -> int:
    """Start of a sequence that has not ended; -1: none."""
    found = _OPEN.search(data)
    return found.start() if found else -1
