"""Known values that are broken over lines: found in the text with its breaks taken out."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.text.linear import Anywhere, Linear, literally
from dragoman.text.redact.hidden import Reading

_SHORTEST: Final = 12
"""Pieces of a shorter value may stand below each other by chance."""
_HEAD: Final = 4
"""So much of a value stands before its first break: every line that ends with less would have to
wait for the next one."""
_BREAK: Final = Linear(
    rb"[ \t]{0,16}\\?(?:\r\n?|\n|\\{1,3}[nr])(?:[ \t]|\\{1,3}t){0,16}", captures=False
)
"""The end of a line with blanks on both sides, or as JSON writes it."""
_BLANK: Final = b" \t\r\n\\"
_ESCAPED: Final = (b"\\n", b"\\r", b"\\t")
_LEAST_WINDOW: Final = 1_024


class Broken:
    """Finds values with line breaks in them that are not theirs."""

    def __init__(self, values: Iterable[bytes]) -> None:
        self._by_head = defaultdict[bytes, list[bytes]](list)
        for value in values:
            if len(value) >= _SHORTEST and not any(byte in _BLANK for byte in value):
                self._by_head[value[:_HEAD]].append(value)
        whole = [value for values in self._by_head.values() for value in values]
        pattern = b"|".join(map(literally, whole))
        self._any = Anywhere(pattern)
        self._search = Linear(pattern, longest=True, captures=False)
        self._heads = Linear(b"|".join(map(literally, self._by_head)), captures=False)
        self._longest = max(map(len, whole), default=0)
        self.window = max(_LEAST_WINDOW, 2 * self._longest)
        """So far back from the end of a text one is looked for that may go on."""

    def may_be_in(self, data: bytes) -> bool:
        """Whether it is worth to look for one; a no is quick."""
        has_escapes = b"\\" in data
        if not self._by_head or not (has_escapes or b"\n" in data or b"\r" in data):
            return False
        for escaped in _ESCAPED if has_escapes else ():
            data = data.replace(escaped, b"")
        return self._any.is_in(data.translate(None, _BLANK))

    def spans(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Where they are, and which."""
        if not self.may_be_in(data):
            return
        reading = Reading(data, _BREAK)
        for found in self._search.finditer(reading.data):
            first, last = found.start(), found.end() - 1
            start, end = reading.place(first), reading.place(last) + 1
            has_head = reading.place(first + _HEAD - 1) == start + _HEAD - 1
            if has_head and end - start > last + 1 - first:
                yield start, end, reading.data[first : last + 1]

    def open_at(self, data: bytes, border: int) -> int:
        """Where one begins that goes on behind a border, or may do so when more of the text has
        come; -1: nowhere."""
        if not self._by_head or self._heads.search(data, 0, border) is None:
            return -1
        reading = Reading(data, _BREAK)
        read, at = reading.data.rstrip(_BLANK), 0
        while (found := self._heads.search(read, at)) is not None:
            at = found.start() + 1
            start = reading.place(found.start())
            if start >= border:
                break
            begun = read[found.start() : found.start() + self._longest]
            for value in self._by_head[begun[:_HEAD]]:
                last = found.start() + len(value) - 1
                is_whole = begun.startswith(value)
                if (reading.place(last) >= border) if is_whole else value.startswith(begun):
                    return start
        return -1
