"""Redacts a text that comes in pieces, with carry-over of what a border between them may cut.

Output ends at white space behind which no secret goes on; the rest is carried over. The pieces
together are what the whole text would have become, however it is cut.
"""

from collections import defaultdict
from typing import Final

from dragoman.text.linear_regex import AnyRegex, LinearRegex
from dragoman.text.redact.finder import Finder, open_base64_start
from dragoman.text.redact.logins import (
    ANY_COMMAND,
    ANY_LOGIN,
    open_command_start,
    open_cookies_start,
)
from dragoman.text.redact.named_values import (
    BAR,
    BETWEEN,
    COLUMN_GAP,
    FIELD,
    FIELD_NAME,
    NEXT_ARGUMENT,
    OPTION,
    OTHER_FIELDS,
    QUOTES,
    SCHEMES,
    SECRET_WORDS,
    SET_COMMANDS,
    SPLIT_NAME_START,
    VARIANT_FIELD,
)
from dragoman.text.redact.normalized_text import (
    continued_word_start,
    join_continued_lines,
    may_have_hidden,
    open_sequence_start,
    remove_hidden,
    unescape,
    unescape_with_positions,
)
from dragoman.text.redact.private_keys import KEY_STARTS, is_open_key

# --- open names: a secret may follow ----------------------------------------------------------

_WORD: Final = SECRET_WORDS + rb"[A-Za-z0-9_.-]{0,40}"

_ABOUT: Final = (
    rb"[ \t]{1,2}(?:\[[^\[\]\r\n]{0,40}\]?|\([^()\r\n]{0,24}\)?|(?:for|of)(?:[ \t][^\s:=]{0,40})?)"
)
"""Addition behind a name, before its value."""

_BEGUN: Final = (
    rb"""(?:"(?:[^"\\\n]|\\[^\n]|"")*|'(?:[^'\\\n]|\\[^\n]|''|'\\''|'"'"')*"""
    rb"""|\\{1,3}(?:"(?:[^"\n]|\\{3}")*|'[^'\n]*)?)?"""
)
"""A quoted value with quotes of its own, as `named_values` parses it. Unbounded: the searched part
is bounded, and counting takes a state for each number."""

_LINE_END: Final = rb"[ \t]{0,8}(?:\r|\r?\n|\\{1,3}n?)[ \t>]{0,16}"

_FILE: Final = rb"(?:machine|login|account)"

_NAMED: Final = LinearRegex(
    rb"(?i)(?:"
    + rb"|".join(
        (
            rb"(?:" + SPLIT_NAME_START + rb")?" + _WORD + QUOTES
            + rb"(?:[ \t]*:[ \t]{0,2}[A-Za-z]{0,12})?[ \t]*(?::=?|=>|={1,3}|>)?[ \t]*"
            + rb"(?:[*_]{1,3}[ \t]{1,8})?(?:" + _BEGUN + rb"|" + SCHEMES + rb"[ \t]{0,4})?",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=][ \t]{0,8}(?:[*_]{1,3}|[|>][+-]?)?(?:" + _LINE_END
            + rb"(?:```[a-z]{0,12})?){1,3}(?:[*-][ \t]{1,4})?(?:[^\s]{0,256}[ \t]{0,8}|"
            + _BEGUN + rb")",
            _WORD + rb"[ \t]{0,8}[:>]?[ \t]{0,8}(?:</?[A-Za-z][^<>\r\n]{0,80}>\s{0,24}){0,4}"
            + rb"(?::[ \t]{0,8})?(?:</?[A-Za-z][^<>\r\n]{0,80}>\s{0,24}){0,2}"
            + rb"(?:</?[A-Za-z]?[^<>\r\n]{0,80}|" + _BEGUN + rb")",
            rb"<[A-Za-z0-9:._-]{0,24}" + _WORD + rb"[ \t][^<>\r\n]{0,80}>?",
            rb"<[A-Za-z0-9:._-]{0,24}" + _WORD + rb">\s{0,44}[^\s<]{0,256}\s{0,40}<?",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=]?[ \t]{0,4}\{?" + _LINE_END + VARIANT_FIELD
            + rb"[ \t]{0,8}[:=][ \t]{0,8}(?:[^\s]{0,256}[ \t]{0,8}|" + _BEGUN + rb")",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=]?[ \t]{0,4}\{" + _LINE_END + rb"[a-z]{0,8}[ \t]{0,8}",
            _WORD + rb"[ \t]{1,4}(?:is|was)(?:[ \t]{1,4}(?:now)?)?:?[ \t]{0,4}[*_`]{0,3}"
            + rb"(?:" + _BEGUN + rb")?",
            _WORD + _ABOUT + QUOTES + rb"[ \t]*(?:(?:[:=]|(?:is|was):?)[ \t]*)?(?:" + _BEGUN
            + rb")?",
            _WORD + QUOTES + rb"""[ \t]*[:=][ \t]*(?:"[^"\r\n]*"|null)[ \t]+(?:->?[ \t]*(?:"""
            + _BEGUN + rb")?)?",
            SET_COMMANDS + rb"(?:-|[^\s=]*(?:[ \t]{1,8}(?:" + _BEGUN + rb")?)?)?",
            _WORD + COLUMN_GAP + rb"[^\s]{0,256}[ \t]{0,8}",
            SPLIT_NAME_START,
            rb"(?:bearer|basic)[ \t]{0,4}",
            OPTION + NEXT_ARGUMENT + rb"(?:" + _BEGUN + rb")?",
            _WORD + QUOTES + rb"[ \t]{0,8}[:=][ \t]{0,8}(?:\{[^{}]*|\[[^\[\]]*)",
            _WORD + NEXT_ARGUMENT + rb"(?:" + _BEGUN + rb")?",
            rb"password\(" + _BEGUN,
            _FILE + rb"(?:[ \t]{1,8}(?:[^\s]+(?:\s{1,16}(?:p[a-z]{0,7}[ \t]{0,8})?)?)?)?",
            rb"identified(?:[ \t]{1,4}(?:by[ \t]{0,4}(?:" + _BEGUN + rb")?)?)?",
            FIELD + rb"(?:" + FIELD_NAME + _WORD + rb"""\\{0,3}["']?""" + BETWEEN + rb"*"
            + OTHER_FIELDS + rb"""{0,2}(?:\\{0,3}["']?[A-Za-z_]*\\{0,3}["']?[ \t]{0,8}"""
            + rb"(?:[:=][ \t]{0,8}(?:" + _BEGUN + rb"|[A-Za-z0-9.]*))?)?)?",
            BAR + rb"[^\n|]{0,80}(?:\|[^\n|]{0,200})?",
        )
    )
    + rb")\z",
    captures=False,
)  # fmt: skip

_BY_PLACE: Final = AnyRegex(ANY_LOGIN + rb"|" + ANY_COMMAND)
"""Cookies and commands need a match of this."""

MAX_OPEN_NAME: Final = 640


def open_name_start(data: bytes) -> int:
    """Start of a name whose secret may follow when more text comes; -1: none."""
    named = _NAMED.search(data, max(0, len(data) - MAX_OPEN_NAME))
    starts = [named.start()] if named else []
    if _BY_PLACE.matches(data):
        starts += (open_cookies_start(data), open_command_start(data))
    return min((begin for begin in starts if begin >= 0), default=-1)


# --- stream -----------------------------------------------------------------------------------

MAX_CARRY_OVER: Final = 65_536
"""Largest carry-over of a text without a pause, in characters."""

_SMALL_TEXT: Final = 1_024
"""A larger one is searched at once: there mostly is something in it."""

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
        if 0 < border < _SMALL_TEXT and not self._finder.may_start(held[:border]):
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
        masked = self._finder.mask(ready)
        for one in masked.found:
            self.found[one.kind, one.digest] += 1
        return masked.text

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
