"""A text that comes in pieces, without the secrets that a border between pieces may cut.

What is given out ends at white space behind which no secret goes on; the rest waits. The pieces
together are what the whole text would have become, however it is cut.
"""

from collections import defaultdict
from typing import Final

from dragoman.text.redact.blocks import BEGINS, is_open
from dragoman.text.redact.continued import continued_lines, cut_word
from dragoman.text.redact.escaped import meant, read_as_meant
from dragoman.text.redact.finder import SMALL, Finder, open_lines
from dragoman.text.redact.hidden import may_hide, open_sequence, read
from dragoman.text.redact.pending import LONGEST_PENDING, pending

MOST_HELD: Final = 65_536
"""Largest carry-over of a text without a pause, in characters."""
_LEAST_HELD: Final = 4_096
"""Smallest carry-over of such a text, or the length of the longest known value."""
_LOOK_BACK: Final = 1_024
"""Largest distance between a border and a name whose secret is behind it."""

_MOST_STEPS: Final = 8
"""Number of open names in a row that are followed back; behind more, all waits."""


class Stream:
    """Redacts one text piece by piece."""

    def __init__(self, finder: Finder, held: str = "") -> None:
        """`carry_over` is that of another stream of the same text."""
        self.found: dict[tuple[str, str], int] = defaultdict(int)
        """Kind and digest of masked secrets -> their number."""
        self._finder = finder
        self._held = held
        known = finder.known
        self._broken = known.longest_broken
        self._keep = min(max(_LEAST_HELD, known.longest), MOST_HELD)

    @property
    def held(self) -> str:
        """Text that came in and was not returned yet, including its secrets."""
        return self._held

    def feed(self, piece: str) -> str:
        """Add a piece; the redacted text that is complete."""
        held = self._held = self._held + piece
        border = self._phrase(_after_space(held, len(held) - self._broken))
        if 0 < border < SMALL and not self._finder.may_begin(held[:border]):
            self._held = held[border:]
            return held[:border]
        for _ in range(_MOST_STEPS):
            begin = self._goes_on(border)
            if begin == border:
                break
            border = self._phrase(_after_space(held, begin))
        else:
            border = 0
        if len(held) - border > MOST_HELD:
            border = self._forced()
        return self._give(border)

    def close(self) -> str:
        """End the text; the redacted rest."""
        return self._give(len(self._held))

    def _give(self, border: int) -> str:
        ready, self._held = self._held[:border], self._held[border:]
        pieces, end = list[str](), 0
        for one in self._finder.find(ready):
            pieces += (ready[end : one.start], one.placeholder)
            end = one.end
            self.found[one.kind, one.digest] += 1
        return "".join((*pieces, ready[end:]))

    def _goes_on(self, border: int) -> int:
        """Start of something that may go on behind the border; else the border."""
        before = self._held[max(0, border - _LOOK_BACK) : border]
        data = before.encode(errors="surrogatepass")
        begins = [open_sequence(data)]
        if not self._finder.known_only:
            begins += (_pending(data), open_lines(data), cut_word(data))
        lost = border - len(before)
        first = (lost + _character(data, begin) for begin in begins if begin >= 0)
        return min(*first, border, self._block(border), self._value(border))

    def _phrase(self, border: int) -> int:
        """Border before a known value with white space that it would cut."""
        while self._broken and border and (first := self._cut_phrase(border)) >= 0:
            border = _after_space(self._held, first)  # which may cut another one
        return border

    def _cut_phrase(self, border: int) -> int:
        """Start of the known value that the border cuts; -1: none."""
        lost = max(0, border - self._broken)
        window = self._held[lost : border + self._broken].encode(errors="surrogatepass")
        for start, end, _ in self._finder.known.spans(window):
            first, last = lost + _character(window, start), lost + _character(window, end)
            if first < border < last:
                return first
        return -1

    def _block(self, border: int) -> int:
        begin = max(self._held.rfind(begin, 0, border) for begin in BEGINS)
        if begin < 0:
            return border
        is_going_on = is_open(self._held[begin:border].encode(errors="surrogatepass"))
        return begin if is_going_on else border

    def _value(self, border: int) -> int:
        known = self._finder.known
        lost = max(0, border - known.broken.window)
        window = self._held[lost : border + known.broken.window].encode(errors="surrogatepass")
        before = self._held[lost:border].encode(errors="surrogatepass")
        begin = known.open_at(window, len(before))
        return border if begin < 0 else lost + _character(before, begin)

    def _forced(self) -> int:
        """Border in a text without a pause: outside of secrets, and not between a name and its
        value.
        """
        size = len(self._held)
        border, before = size - self._keep, 0
        for one in self._finder.find(self._held):
            if one.start - LONGEST_PENDING < border < one.end:
                if one.end == size and (free := max(before, one.start - LONGEST_PENDING)):
                    return free  # it may go on, and its name stays with it
                border = one.end
            before = one.end
        return border


def _after_space(text: str, end: int) -> int:
    """Last position up to `end` behind white space; 0: there is none."""
    find, end = text.rfind, max(0, end)
    return max(find(" ", 0, end), find("\n", 0, end), find("\t", 0, end), find("\r", 0, end)) + 1


def _pending(data: bytes) -> int:
    """Start of a name whose secret may follow, in the text as it is, without hidden characters,
    with continued lines joined, or unescaped; -1: none.
    """
    begin = pending(data)
    if begin >= 0:
        return begin
    if may_hide(data) and (begin := pending((seen := read(data)).data)) >= 0:
        return seen.place(begin)
    if (lines := continued_lines(data)) is not None and (begin := pending(lines.data)) >= 0:
        return lines.place(begin)
    text = meant(data)
    begin = -1 if text is data else pending(text)
    return begin if begin < 0 else read_as_meant(data).place(begin)


def _character(data: bytes, at: int) -> int:
    """Position of a byte in the text."""
    return at if data.isascii() else len(data[:at].decode(errors="surrogatepass"))
