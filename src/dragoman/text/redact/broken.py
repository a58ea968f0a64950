"""Known values that are broken over lines: found in the text with its breaks taken out.

So are its backslashes, which stand before a sign for many reasons. What stands before the first
break is not masked if it is shorter than a head: every line that ends so would have to wait.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dragoman.text.linear import AnyRegex, LinearRegex, escape_regex
from dragoman.text.redact.reading import NormalizedText, remove_matches

_SHORTEST: Final = 12
"""Pieces of a shorter value may stand below each other by chance."""
_HEAD: Final = 4
"""Characters of a value that stand together at its start, or else behind the break in its head."""
_BREAKS: Final = (
    rb"[ \t]{0,16}\\?(?:\r\n?|\n|\\{1,3}[nr])(?:[ \t]|\\{1,3}t){0,16}",
    rb"[ \t]{0,16}\\?(?:\r\n?|\n)[ \t]{0,16}",
)
"""Line breaks with blanks on both sides, also as JSON writes them, or not: an `n` behind a
backslash may be a break or part of a value, so that a text is read in both ways."""
_WAYS: Final = tuple(
    (LinearRegex(form, captures=False), LinearRegex(form + rb"|\\+", captures=False))
    for form in _BREAKS
)
"""Pattern of a break, and pattern of what is removed."""
_BLANK: Final = b" \t\r\n"
_BEFORE: Final = (*(bytes((byte,)) for byte in _BLANK), b"\\n", b"\\r", b"\\t")
"""Bytes before the start of a line or a word."""
_OF_BREAKS: Final = _BLANK + b"\\nrt"
_LEAST_WINDOW: Final = 1_024


class BrokenValues:
    """Finds values across line breaks that are not theirs.

    Backslashes are removed, too: they stand before characters for many reasons. Before the first
    break, less than a head is not masked: every line that ends like that would have to wait.
    """

    def __init__(self, values: Iterable[bytes]) -> None:
        whole: dict[bytes, bytes] = {}
        for value in values:
            if len(value) < _SHORTEST or any(byte in _BLANK for byte in value):
                continue
            for _, foreign in _WAYS:
                read = remove_matches(value, foreign).data
                if len(read) >= _SHORTEST:
                    whole.setdefault(read, value)
        self._whole = whole
        self._value = dict(whole)
        """Value without breaks, whole or without the start of its head -> original value."""
        self._by_head = defaultdict[bytes, list[bytes]](list)
        for skipped in range(_HEAD):
            for read, value in whole.items():
                self._value.setdefault(read[skipped:], value)
                self._by_head[read[skipped : skipped + _HEAD]].append(read[skipped:])
        bare = {read[_HEAD - 1 :].translate(None, _OF_BREAKS) for read in whole}
        self._any = AnyRegex(b"|".join(map(escape_regex, sorted(bare))))
        pattern = b"|".join(map(_pattern_without_head, whole))
        self._search = LinearRegex(pattern, longest=True, captures=False)
        self._heads = LinearRegex(b"|".join(map(escape_regex, self._by_head)), captures=False)
        self._longest = max(map(len, whole), default=0)
        self.window = max(_LEAST_WINDOW, 2 * self._longest)
        """Distance from the end of a text that is searched for a value that may go on."""

    def may_match(self, data: bytes) -> bool:
        """Check whether a search is worthwhile; a no is quick."""
        return bool(self._whole) and self._any.matches(data.translate(None, _OF_BREAKS))

    def find(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Find the values; one may be found twice."""
        if self.may_match(data):
            for end_of_line, foreign in _break_styles(data):
                yield from self._find(data, remove_matches(data, foreign), end_of_line)

    def _find(
        self, data: bytes, reading: NormalizedText, end_of_line: LinearRegex
    ) -> Iterator[tuple[int, int, bytes]]:
        for found in self._search.finditer(reading.data):
            first, end = found.span()
            read = reading.data[first:end]
            is_whole = read in self._whole
            for at in range(first, first + _HEAD):
                start, head_end = reading.original_start(at), reading.original_start(at + _HEAD - 1)
                is_beginning = (is_whole and at == first) or _is_word_start(data, start)
                if is_beginning and end_of_line.search(data, start, head_end) is None:
                    yield start, reading.original_end(end), self._value[read]
                    break

    def open_start(self, data: bytes, border: int) -> int:
        """Start of a value that goes on behind a border, or may do so when more text comes; -1:
        none.
        """
        if not self._whole or self._heads.search(data[:border].replace(b"\\", b"")) is None:
            return -1
        places = (
            self._open_start(data, border, remove_matches(data, one))
            for _, one in _break_styles(data)
        )
        return min((place for place in places if place >= 0), default=-1)

    def _open_start(self, data: bytes, border: int, reading: NormalizedText) -> int:
        read, at = reading.data.rstrip(_BLANK), 0
        while (found := self._heads.search(read, at)) is not None:
            at = found.start() + 1
            start = reading.original_start(found.start())
            if start >= border:
                break
            begun = read[found.start() : found.start() + self._longest]
            for value in self._by_head[begun[:_HEAD]]:
                if value not in self._whole and not _is_word_start(data, start):
                    continue
                last = found.start() + len(value) - 1
                is_whole = begun.startswith(value)
                if (
                    (reading.original_start(last) >= border)
                    if is_whole
                    else value.startswith(begun)
                ):
                    return start
        return -1


def _break_styles(data: bytes) -> Sequence[tuple[LinearRegex, LinearRegex]]:
    """Break styles of a text: without a backslash there is but one."""
    return _WAYS if b"\\" in data else _WAYS[:1]


def _is_word_start(data: bytes, at: int) -> bool:
    """Check whether a line or a word begins here."""
    while data[at - 1 : at] == b"\\":
        at -= 1
    return at == 0 or data[max(0, at - 2) : at].endswith(_BEFORE)


def _pattern_without_head(read: bytes) -> bytes:
    """Expression for a value, with or without its first characters."""
    before = b""
    for byte in read[: _HEAD - 1]:
        before = rb"(?:" + before + escape_regex(bytes((byte,))) + rb")?"
    return before + escape_regex(read[_HEAD - 1 :])
