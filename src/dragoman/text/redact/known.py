"""Known secrets: values that the hub knows, found in any spelling and across line breaks."""

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from dragoman.text.linear_regex import AnyRegex, LinearRegex, escape_regex
from dragoman.text.redact.normalized_text import (
    NormalizedText,
    remove_matches,
    unescape,
    unescape_with_positions,
)

# --- across line breaks -----------------------------------------------------------------------

_SHORTEST: Final = 12
"""Pieces of a shorter value may stand below each other by chance."""

_HEAD: Final = 4
"""Characters of a value that make a text wait for the rest of it."""

_BREAKS: Final = (
    rb"[ \t]{0,16}\\?(?:\r\n?|\n|\\{1,3}[nr])(?:[ \t]|\\{1,3}t){0,16}",
    rb"[ \t]{0,16}\\?(?:\r\n?|\n)[ \t]{0,16}",
)
"""Line breaks with blanks on both sides, also as JSON writes them, or not: an `n` behind a
backslash may be a break or part of a value, so that a text is read in both ways."""

_FOREIGN: Final = tuple(LinearRegex(form + rb"|\\+", captures=False) for form in _BREAKS)
"""Breaks, and backslashes, which stand before characters for many reasons."""

_BLANK: Final = b" \t\r\n"

_OF_BREAKS: Final = _BLANK + b"\\nrt"

_LEAST_WINDOW: Final = 1_024


class BrokenValues:
    """Finds values across line breaks that are not theirs, and with backslashes in them."""

    def __init__(self, values: Iterable[bytes]) -> None:
        whole: dict[bytes, bytes] = {}
        for value in values:
            if len(value) < _SHORTEST or any(byte in _BLANK for byte in value):
                continue
            for foreign in _FOREIGN:
                read = remove_matches(value, foreign).data
                if len(read) >= _SHORTEST:
                    whole.setdefault(read, value)
        self._whole = whole
        """Value without breaks -> original value."""
        bare = {read.translate(None, _OF_BREAKS) for read in whole}
        self._any = AnyRegex(b"|".join(map(escape_regex, sorted(bare))))
        self._search = LinearRegex(
            b"|".join(map(escape_regex, whole)), longest=True, captures=False
        )
        heads = {read[:_HEAD] for read in whole}
        self._heads = LinearRegex(b"|".join(map(escape_regex, heads)), captures=False)
        self.window = max(_LEAST_WINDOW, 2 * max(map(len, whole), default=0))
        """Distance from the end of a text that is searched for a value that may go on."""

    def may_match(self, data: bytes) -> bool:
        """Check whether a search is worthwhile; a no is quick."""
        is_broken = self._whole and (b"\n" in data or b"\r" in data or b"\\" in data)
        return bool(is_broken) and self._any.matches(data.translate(None, _OF_BREAKS))

    def find(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Find the values; one may be found twice."""
        if not self.may_match(data):
            return
        for foreign in _break_styles(data):
            reading = remove_matches(data, foreign)
            for found in self._search.finditer(reading.data):
                first, end = found.span()
                start = reading.original_start(first)
                yield start, reading.original_end(end), self._whole[reading.data[first:end]]

    def open_start(self, data: bytes) -> int:
        """Start of a value that may go on when more text comes; -1: none."""
        if not self._whole:
            return -1
        readings = (remove_matches(data, foreign) for foreign in _break_styles(data))
        return min((at for at in map(self._open_start, readings) if at >= 0), default=-1)

    def _open_start(self, reading: NormalizedText) -> int:
        read, at = reading.data.rstrip(_BLANK), 0
        while (head := self._heads.search(read, at)) is not None:
            at = head.start() + 1
            begun = read[head.start() :]
            if any(len(begun) < len(one) and one.startswith(begun) for one in self._whole):
                return reading.original_start(head.start())
        return -1


def _break_styles(data: bytes) -> Sequence[LinearRegex]:
    """Patterns to remove from a text, to read it: without a backslash there is but one."""
    return _FOREIGN if b"\\" in data else _FOREIGN[:1]


# --- in any spelling --------------------------------------------------------------------------

MIN_SECRET_LENGTH: Final = 6
"""A shorter value would be found in ordinary words."""

_SHORTEST_PART: Final = 12
"""Shortest line of a value that is searched for by itself."""

_PLAIN: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ")
"""Characters that are never escaped."""

_LONGEST_SIGN: Final = 10
"""Longest escape of one character: `&amp;quot;`."""

_NESTED: Final = 3
"""Depth of different encodings that are decoded, like JSON in a URL."""

_QUOTED: Final = (
    (b'"', b'""'),
    (b"'", b"''"),
    (b"'", b"'\\''"),
    (b"'", b"'\"'\"'"),
)
"""Escapes of a quote in CSV, in SQL and YAML, and in shells."""

_BASE64: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_=")

_SPILL: Final = 3
"""Adjacent characters of a value in Base64 that are partly made of it."""


class Secret(Struct, frozen=True):
    """A secret value."""

    kind: str
    """Kind, in small letters, digits and underscores, shown in the placeholder."""
    value: str

    def __repr__(self) -> str:
        return f"Secret({self.kind!r}, …)"


class KnownValues:
    """Finds values in any of their spellings: plain, in JSON, URLs, HTML, Base64, hexadecimal.

    A value of several lines is also found by any of its longer lines, and a long enough one across
    line breaks.
    """

    def __init__(self, secrets: Sequence[Secret]) -> None:
        self._spellings: dict[bytes, tuple[Secret, bool]] = {}
        for secret in secrets:
            if len(secret.value) < MIN_SECRET_LENGTH:
                continue
            for form, is_base64 in _spellings(secret.value.encode(errors="surrogatepass")):
                self._spellings.setdefault(form, (secret, is_base64))
        self.longest_broken = max(
            (_max_escaped_length(form) for form in self._spellings if form.split()[1:]), default=0
        )
        """Length of the longest spelling that has white space in it."""
        self.longest = _LONGEST_SIGN * max(map(len, self._spellings), default=0)
        pattern = b"|".join(map(escape_regex, self._spellings))
        self._search = (
            LinearRegex(pattern, longest=True, captures=False) if self._spellings else None
        )
        self._any = AnyRegex(pattern) if self._spellings else None
        self.broken = BrokenValues(self._spellings)

    def find(self, data: bytes, nested: int = _NESTED) -> Iterator[tuple[int, int, Secret]]:
        """Find the values; one may be found twice."""
        if self._search is None:
            return
        whole = (found.span() for found in self._search.finditer(data))
        pieces = ((start, end, data[start:end]) for start, end in whole)
        for start, end, form in chain(pieces, self.broken.find(data)):
            secret, is_base64 = self._spellings[form]
            yield *(_extend_base64(data, start, end) if is_base64 else (start, end)), secret
        if nested and self._matches_unescaped(data, nested):
            reading = unescape_with_positions(data)
            for start, end, secret in self.find(reading.data, nested - 1):
                yield reading.original_start(start), reading.original_end(end), secret

    def matches(self, data: bytes, nested: int = _NESTED) -> bool:
        """Check whether there is one at all."""
        if self._any is None:
            return False
        is_there = self._any.matches(data) or self.broken.may_match(data)
        return is_there or (nested > 0 and self._matches_unescaped(data, nested))

    def _matches_unescaped(self, data: bytes, nested: int) -> bool:
        text = unescape(data)
        return text != data and self.matches(text, nested - 1)

    def open_start(self, data: bytes) -> int:
        """Start of a value with line breaks that may go on when more text comes; -1: none."""
        begin = self.broken.open_start(data)
        if begin < 0 and unescape(data) != data:
            reading = unescape_with_positions(data)
            begin = self.broken.open_start(reading.data)
            begin = reading.original_start(begin) if begin >= 0 else begin
        return begin


def _spellings(value: bytes) -> Iterator[tuple[bytes, bool]]:
    """Spellings of a value, and whether each is Base64, which depends on its neighbours.

    Escapes need no spelling: the text is unescaped. A value that looks escaped is unescaped, too.
    """
    for plain in _unescaped_forms(value):
        yield plain, False
        yield plain.replace(b" ", b"+"), False  # in a form of a URL
        yield from ((plain.replace(*quote), False) for quote in _QUOTED)
    yield value.hex().encode(), False
    yield value.hex().upper().encode(), False
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            form = _base64_core(encode(bytes(before) + value), before, len(value))
            if len(form) >= MIN_SECRET_LENGTH:
                yield form, True
    lines = [line.strip() for line in value.split(b"\n")]
    for line in lines if len(lines) > 1 else ():
        if len(line) >= _SHORTEST_PART and not line.startswith(b"-----"):
            yield line, False


def _unescaped_forms(value: bytes) -> Iterator[bytes]:
    yield value
    for _ in range(_NESTED):
        value = unescape(value)
        if len(value) >= MIN_SECRET_LENGTH:
            yield value


def _max_escaped_length(form: bytes) -> int:
    """Longest possible length of a spelling when it is escaped."""
    signs = len(form) - sum(map(_PLAIN.__contains__, form))
    return len(form) + (_LONGEST_SIGN - 1) * signs


def _base64_core(encoded: bytes, offset: int, size: int) -> bytes:
    """Characters of a Base64 text that depend on the value alone, not on its neighbours."""
    first = -(-offset * 8 // 6)
    last = (offset + size) * 8 // 6
    return encoded[first:last]


def _extend_base64(data: bytes, start: int, end: int) -> tuple[int, int]:
    least, most = max(0, start - _SPILL), min(len(data), end + _SPILL)
    while start > least and data[start - 1] in _BASE64:
        start -= 1
    while end < most and data[end] in _BASE64:
        end += 1
    return start, end
