"""Redacts a text that comes in pieces, with carry-over of what a border between them may cut.

Output ends at white space. What follows a word that names a secret waits until so much more has
come that its value would be there: the pieces together are what the whole text would have become,
however it is cut, and no form of a secret needs a second description here.
"""

from collections import defaultdict
from typing import Final

from dragoman.text.linear_regex import LinearRegex
from dragoman.text.redact.finder import Finder, open_base64_start
from dragoman.text.redact.named_values import ANY_SECRET_WORD
from dragoman.text.redact.normalized_text import (
    continued_word_start,
    join_continued_lines,
    may_have_hidden,
    open_sequence_start,
    remove_hidden,
    unescape,
    unescape_with_positions,
)
from dragoman.text.redact.positional_secrets import ANY_COMMAND, ANY_LOGIN
from dragoman.text.redact.private_keys import KEY_STARTS, is_open_key

MAX_CARRY_OVER: Final = 65_536
"""Largest carry-over of a text without a pause, in characters."""

_LEAST_HELD: Final = 4_096
"""Smallest carry-over of such a text, or the length of the longest known value."""

_REACH: Final = 1_024
"""Largest distance between a word that names a secret and the end of its value."""

_REACHED_LINES: Final = 4
"""Lines in which the value stands, the first of them that of the word."""

_MOST_STEPS: Final = 4
"""Number of lines that a border is taken back; behind more, all waits."""

_BEFORE_WORD: Final = 128
"""Largest distance between the beginning of a form, in the line, and its word."""

_WORD: Final = LinearRegex(rb"|".join((ANY_SECRET_WORD, ANY_LOGIN, ANY_COMMAND)), captures=False)


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
        self._reach = max(_REACH, self._max_broken)
        self._forced_carry_over = min(max(_LEAST_HELD, known.longest), MAX_CARRY_OVER)

    @property
    def carry_over(self) -> str:
        """Text that came in and was not returned yet, including its secrets."""
        return self._carry_over

    def feed(self, piece: str) -> str:
        """Add a piece; the redacted text that is complete."""
        held = self._carry_over = self._carry_over + piece
        border = _after_last_space(held, len(held))
        border = _after_last_space(held, self._open_start()) if border else 0
        for _ in range(_MOST_STEPS):
            begin = self._cut_start(border) if border else 0
            if begin == border:
                break
            border = _after_last_space(held, begin)
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
        masked = self._finder.mask(ready)
        for one in masked.found:
            self.found[one.kind, one.digest] += 1
        return masked.text

    def _open_start(self) -> int:
        """Start of what may be a secret when more text comes; else the end."""
        held, known = self._carry_over, self._finder.known
        lost = max(0, len(held) - max(_REACH, known.broken.window))
        data = held[lost:].encode(errors="surrogatepass")
        begins = [open_sequence_start(data), known.open_start(data)]
        if not self._finder.known_only:
            begins += (_open_word(data), open_base64_start(data))
        first = (lost + _character_index(data, begin) for begin in begins if begin >= 0)
        return min(*first, len(held) - self._max_broken, self._open_key_start())

    def _open_key_start(self) -> int:
        held = self._carry_over
        begin = max(map(held.rfind, KEY_STARTS))
        is_open = begin >= 0 and is_open_key(held[begin:].encode(errors="surrogatepass"))
        return begin if is_open else len(held)

    def _cut_start(self, border: int) -> int:
        """Start of what a border would cut: a secret, or its name from it; else the border."""
        lost = max(0, border - self._reach)
        window = self._carry_over[lost : border + self._reach]
        before, behind = window[: border - lost], window[border - lost :]
        data = before.encode(errors="surrogatepass")
        if (begin := continued_word_start(data)) >= 0:
            return lost + _character_index(data, begin)
        if not self._finder.may_contain(window.encode(errors="surrogatepass")):
            return border
        find, cut = self._finder.find, len(before)
        whole = [(one.start, one.end) for one in find(window)]
        parts = [(one.start, one.end) for one in find(before)]
        parts += ((cut + one.start, cut + one.end) for one in find(behind))
        if whole == parts:
            return border
        line = max(before.rstrip().rfind("\n"), 0)
        return lost + min(line, *(start for start, end in whole if start < cut < end), cut)

    def _forced_border(self) -> int:
        """Border in a text without a pause: outside of secrets, and not between a name and its
        value.
        """
        size = len(self._carry_over)
        border, before = size - self._forced_carry_over, 0
        for one in self._finder.find(self._carry_over):
            if one.start - _REACH < border < one.end:
                if one.end == size and (free := max(before, one.start - _REACH)):
                    return free  # it may go on, and its name stays with it
                border = one.end
            before = one.end
        return border


def _after_last_space(text: str, end: int) -> int:
    """Last position up to `end` behind white space; 0: there is none."""
    find, end = text.rfind, max(0, end)
    return max(find(" ", 0, end), find("\n", 0, end), find("\t", 0, end), find("\r", 0, end)) + 1


def _open_word(data: bytes) -> int:
    """Start of the line with a word that names a secret whose value may not have come yet, in the
    text as it is, without hidden characters, with continued lines joined, or unescaped; -1: none.
    """
    if (begin := _word_start(data)) >= 0:
        return begin
    readings = [join_continued_lines(data)]
    if may_have_hidden(data):
        readings.append(remove_hidden(data))
    if unescape(data) is not data:
        readings.append(unescape_with_positions(data))
    for reading in filter(None, readings):
        if (begin := _word_start(reading.data)) >= 0:
            return reading.original_start(begin)
    return -1


def _word_start(data: bytes) -> int:
    first = len(data)
    for _ in range(_REACHED_LINES):
        first = max(data.rfind(b"\n", 0, first), 0)
    word = _WORD.search(data, first)
    if word is None:
        return -1
    return max(data.rfind(b"\n", 0, word.start()) + 1, word.start() - _BEFORE_WORD)


def _character_index(data: bytes, at: int) -> int:
    """Position of a byte in the text."""
    return at if data.isascii() else len(data[:at].decode(errors="surrogatepass"))
