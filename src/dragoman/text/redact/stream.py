"""A text that comes in pieces, without the secrets that a border between pieces may cut.

What is given out ends at white space behind which no secret goes on; the rest waits. The pieces
together are what the whole text would have become, however it is cut.
"""

from collections import defaultdict
from typing import Final

from dragoman.text.redact.blocks import KEY_STARTS, is_open_key
from dragoman.text.redact.continued import continued_word_start, join_continued_lines
from dragoman.text.redact.escaped import unescape, unescape_with_positions
from dragoman.text.redact.finder import SMALL_TEXT, Finder, open_base64_start
from dragoman.text.redact.hidden import may_have_hidden, open_sequence_start, remove_hidden
from dragoman.text.redact.pending import MAX_OPEN_NAME, open_name_start

MAX_CARRY_OVER: Final = 65_536
"""Largest carry-over of a text without a pause, in characters."""
_LEAST_HELD: Final = 4_096
"""Smallest carry-over of such a text, or the length of the longest known value."""
_LOOK_BACK: Final = 1_024
"""Largest distance between a border and a name whose secret is behind it."""

_MOST_STEPS: Final = 8
"""Number of open names in a row that are followed back; behind more, all waits."""


class Stream:
    """Redacts one text piece by piece."""

    def __init__(self, finder: Finder, carry_over: str = "") -> None:
        """`carry_over` is that of another stream of the same text."""
        self.found: dict[tuple[str, str], int] = defaultdict(int)
        """Kind and digest of masked secrets -> their number."""
        self._finder = finder
        self._carry_over = carry_over
        known = finder.known
        self._max_broken = known.longest_broken
        self._forced_carry_over = min(max(_LEAST_HELD, known.longest), MAX_CARRY_OVER)

    @property
    def carry_over(self) -> str:
        """Text that came in and was not returned yet, including its secrets."""
        return self._carry_over

    def feed(self, piece: str) -> str:
        """Add a piece; the redacted text that is complete."""
        held = self._carry_over = self._carry_over + piece
        border = self._border_before_phrase(_after_last_space(held, len(held) - self._max_broken))
        if 0 < border < SMALL_TEXT and not self._finder.may_start(held[:border]):
            self._carry_over = held[border:]
            return held[:border]
        for _ in range(_MOST_STEPS):
            begin = self._open_start(border)
            if begin == border:
                break
            border = self._border_before_phrase(_after_last_space(held, begin))
        else:
            border = 0
        if len(held) - border > MAX_CARRY_OVER:
            border = self._forced_border()
        return self._release(border)

    def close(self) -> str:
        """End the text; the redacted rest."""
        return self._release(len(self._carry_over))

    def _release(self, border: int) -> str:
        ready, self._carry_over = self._carry_over[:border], self._carry_over[border:]
        pieces, end = list[str](), 0
        for one in self._finder.find(ready):
            pieces += (ready[end : one.start], one.placeholder)
            end = one.end
            self.found[one.kind, one.digest] += 1
        return "".join((*pieces, ready[end:]))

    def _open_start(self, border: int) -> int:
        """Start of something that may go on behind the border; else the border."""
        before = self._carry_over[max(0, border - _LOOK_BACK) : border]
        data = before.encode(errors="surrogatepass")
        begins = [open_sequence_start(data)]
        if not self._finder.known_only:
            begins += (_open_name(data), open_base64_start(data), continued_word_start(data))
        lost = border - len(before)
        first = (lost + _character_index(data, begin) for begin in begins if begin >= 0)
        return min(*first, border, self._open_key_start(border), self._open_value_start(border))

    def _border_before_phrase(self, border: int) -> int:
        """Border before a known value with white space that it would cut."""
        while self._max_broken and border and (first := self._cut_phrase_start(border)) >= 0:
            border = _after_last_space(self._carry_over, first)  # which may cut another one
        return border

    def _cut_phrase_start(self, border: int) -> int:
        """Start of the known value that the border cuts; -1: none."""
        lost = max(0, border - self._max_broken)
        window = self._carry_over[lost : border + self._max_broken].encode(errors="surrogatepass")
        for start, end, _ in self._finder.known.find(window):
            first, last = (
                lost + _character_index(window, start),
                lost + _character_index(window, end),
            )
            if first < border < last:
                return first
        return -1

    def _open_key_start(self, border: int) -> int:
        begin = max(self._carry_over.rfind(begin, 0, border) for begin in KEY_STARTS)
        if begin < 0:
            return border
        is_going_on = is_open_key(self._carry_over[begin:border].encode(errors="surrogatepass"))
        return begin if is_going_on else border

    def _open_value_start(self, border: int) -> int:
        known = self._finder.known
        lost = max(0, border - known.broken.window)
        window = self._carry_over[lost : border + known.broken.window].encode(
            errors="surrogatepass"
        )
        before = self._carry_over[lost:border].encode(errors="surrogatepass")
        begin = known.open_start(window, len(before))
        return border if begin < 0 else lost + _character_index(before, begin)

    def _forced_border(self) -> int:
        """Border in a text without a pause: outside of secrets, and not between a name and its
        value.
        """
        size = len(self._carry_over)
        border, before = size - self._forced_carry_over, 0
        for one in self._finder.find(self._carry_over):
            if one.start - MAX_OPEN_NAME < border < one.end:
                if one.end == size and (free := max(before, one.start - MAX_OPEN_NAME)):
                    return free  # it may go on, and its name stays with it
                border = one.end
            before = one.end
        return border


def _after_last_space(text: str, end: int) -> int:
    """Last position up to `end` behind white space; 0: there is none."""
    find, end = text.rfind, max(0, end)
    return max(find(" ", 0, end), find("\n", 0, end), find("\t", 0, end), find("\r", 0, end)) + 1


def _open_name(data: bytes) -> int:
    """Start of a name whose secret may follow, in the text as it is, without hidden characters,
    with continued lines joined, or unescaped; -1: none.
    """
    begin = open_name_start(data)
    if begin >= 0:
        return begin
    if (
        may_have_hidden(data)
        and (begin := open_name_start((seen := remove_hidden(data)).data)) >= 0
    ):
        return seen.original_start(begin)
    if (lines := join_continued_lines(data)) is not None and (
        begin := open_name_start(lines.data)
    ) >= 0:
        return lines.original_start(begin)
    text = unescape(data)
    begin = -1 if text is data else open_name_start(text)
    return begin if begin < 0 else unescape_with_positions(data).original_start(begin)


def _character_index(data: bytes, at: int) -> int:
    """Position of a byte in the text."""
    return at if data.isascii() else len(data[:at].decode(errors="surrogatepass"))
