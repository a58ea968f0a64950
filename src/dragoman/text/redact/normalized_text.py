r"""Normalized text: without hidden characters and escapes, with positions in the original.

Escapes of JSON, programs, URLs and HTML (`\u0026`, `\"`, `%26`, `%2526`, `&amp;`, `&#38;`) are
decoded however often they were applied: `\\\"` is `"`, and so is `&amp;quot;`. A value that is
decoded in the same way is found however many of its characters were escaped, and by whom. Terminal
sequences and invisible characters are removed; a sequence beside a secret separates it from other
words, and its payload (a title, a link, the clipboard) is read by itself. Lines that a shell joins
by a backslash are joined.
"""

import html
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, lru_cache
from typing import Final

from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.linear_regex import AnyRegex, LinearRegex
from dragoman.text.safe_text import HARMFUL_CLASS

# --- positions --------------------------------------------------------------------------------

Replacement = tuple[int, int, bytes]
"""Start and end in a text, and the replacement."""

_FindReplacements = Callable[[bytes], Iterable[Replacement]]

_PASSED: Final = b";\n"
"""Replacement of skipped lines."""


class NormalizedText:
    """A normalized text, and the original positions of its bytes.

    Most texts have no findings, so the positions are computed when the first is needed.
    """

    def __init__(
        self, text: bytes, normalized: bytes, find_replacements: _FindReplacements
    ) -> None:
        """`find_replacements` finds the replaced pieces of the text, in order."""
        self.data = normalized
        self._text = text
        self._find_replacements = find_replacements

    def original_start(self, at: int) -> int:
        """Original position of a byte."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at) - 1
        return places[piece] + (0 if wholes[piece] else at - starts[piece])

    def original_end(self, at: int) -> int:
        """Original end of a span that ends here."""
        starts, places, wholes = self._map
        piece = bisect_right(starts, at - 1) - 1
        return places[piece] + (wholes[piece] or at - starts[piece])

    @cached_property
    def _map(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Normalized and original start of each piece, and its original length if it was replaced
        as a whole (0: it was not).
        """
        pieces = [(0, 0, 0)]
        end = size = 0
        for start, behind, instead in self._find_replacements(self._text):
            size += start - end
            if instead:
                pieces.append((size, start, behind - start))
                size += len(instead)
            end = behind
            pieces.append((size, end, 0))
        starts, places, wholes = zip(*pieces, strict=True)
        return starts, places, wholes


def remove_matches(data: bytes, regex: LinearRegex) -> NormalizedText:
    """Remove the matches of an expression."""
    spans = [found.span() for found in regex.finditer(data)]
    borders = [0, *(border for span in spans for border in span), len(data)]
    kept = (data[a:b] for a, b in zip(borders[::2], borders[1::2], strict=True))
    return NormalizedText(data, b"".join(kept), lambda _: ((*span, b"") for span in spans))


def normalize_lines(
    data: bytes,
    lines: LinearRegex,
    normalize: Callable[[bytes], bytes],
    find_replacements: _FindReplacements,
) -> NormalizedText:
    """Normalize the matching lines only, so that most of a text is searched but once."""
    spans = [found.span() for found in lines.finditer(data)]
    parts, at = list[bytes](), 0
    for start, end in spans:
        parts += (_PASSED if at < start else b"", normalize(data[start:end]))
        at = end
    parts.append(_PASSED if at < len(data) else b"")
    return NormalizedText(
        data, b"".join(parts), lambda text: _line_replacements(text, spans, find_replacements)
    )


def _line_replacements(
    data: bytes, spans: Iterable[tuple[int, int]], find_replacements: _FindReplacements
) -> Iterator[Replacement]:
    at = 0
    for start, end in spans:
        if at < start:
            yield at, start, _PASSED
        for first, last, instead in find_replacements(data[start:end]):
            yield start + first, start + last, instead
        at = end
    if at < len(data):
        yield at, len(data), _PASSED


# --- escapes ----------------------------------------------------------------------------------

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

_ESCAPE: Final = lazy_regex(
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


# --- hidden characters and terminal sequences -------------------------------------------------

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

_HIDDEN: Final = lazy_regex(
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

_LAST: Final = lazy_regex(_END + rb"\Z")


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


# --- continued lines --------------------------------------------------------------------------

_ENDS: Final = (b"\\\n", b"\\\r")

_CONTINUED_LINES: Final = LinearRegex(
    rb"(?:(?:[^\r\n]*\\(?:\r\n?|\n))+[^\r\n]*[\r\n]*)+",
    captures=False,
)

_BREAK: Final = lazy_regex(rb"([ \t\\]?)\\(?:\r\n?|\n)([ \t]*+)")

_CUT: Final = lazy_regex(rb"[^\s\\]\\(?:\r\n?|\n)\Z")

_BLANK: Final = lazy_regex(rb"\s")


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
