"""Rules of `rules.toml`: formats of credentials, and programs and variables with passwords."""

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from pkgutil import get_data
from typing import Any, Final

from msgspec import Struct

from dragoman.text.lazy_regex import lazy_regex
from dragoman.text.linear_regex import LinearRegex, escape_regex
from dragoman.text.redact.likelihood import is_phrase

_TABLES: Final[dict[str, Any]] = tomllib.loads(
    (get_data("dragoman.text.redact", "rules.toml") or b"").decode()
)

# --- formats ----------------------------------------------------------------------------------

_RARE: Final = 4
"""Shortest prefix that hardly ever stands in ordinary text by chance."""

_COUNT: Final = lazy_regex(rb"\{(\d{2,})(?:,\d*)?\}")

_ENDLESS: Final = lazy_regex(rb"\{\d{2,},\}\\\..*", re.DOTALL)
"""Unbounded part before a dot: searching for the dot at every position would take too long."""

_ENOUGH: Final = 10
"""Length of a row's pattern that is rare enough."""


class Rule(Struct, frozen=True):
    """Format of one kind of credential."""

    kind: str
    prefixes: tuple[bytes, ...]
    """Prefixes of such a credential; none: it is recognized by an inner part."""
    suffix_pattern: bytes
    """Regular expression behind the prefix."""
    source: str
    """Page that describes it."""
    keeps_prefix: bool = False
    """True if the prefix is a name or an address that may stay."""

    @property
    def prefix_pattern(self) -> bytes:
        """Regular expression of the prefix."""
        return b"(?:" + b"|".join(map(escape_regex, self.prefixes)) + b")"

    @property
    def pattern(self) -> bytes:
        """Regular expression of the whole."""
        return self.prefix_pattern + self.suffix_pattern

    @property
    def search_pattern(self) -> bytes:
        """Regular expression that is searched first: the prefix, or as much more as makes it
        rare."""
        if self.prefixes and all(len(start) >= _RARE for start in self.prefixes):
            return self.prefix_pattern
        pattern = _ENDLESS.sub(b"{%d}" % _ENOUGH, self.pattern)
        return _COUNT.sub(lambda found: b"{%d,}" % min(int(found[1]), _ENOUGH), pattern)


RULES: Final = tuple(
    Rule(kind, tuple(prefixes.encode().split()), behind.encode(), source, bool(stays))
    for kind, (prefixes, behind, source, *stays) in _TABLES["formats"].items()
)
"""Earlier rows go before later ones where both fit."""


# --- programs ---------------------------------------------------------------------------------

NEXT_ARGUMENT: Final = rb"""\\{0,3}["'],(?:[ \t\r\n]|\\{1,3}[nrt]){0,40}"""
"""Between two words of a list of arguments."""

_APART: Final = rb"(?:[ \t]{1,4}|" + NEXT_ARGUMENT + rb")"


class ProgramRule(Struct, frozen=True):
    """Option of a program that takes a password."""

    names: tuple[str, ...]
    option_text: str
    """Spelling in the documentation."""
    option: bytes
    """Regular expression of the option, with what stands between it and the password."""
    source: str
    has_user: bool
    """True if a user and a colon stand before the password."""
    takes_words: bool
    """True if nothing but a password stands there, so that a word is one, too."""


PROGRAMS: Final = tuple(
    ProgramRule(
        tuple(names.split()),
        text,
        option.encode().replace(b"APART", _APART),
        source,
        "behind user" in marks,
        "words too" in marks,
    )
    for names, (text, option, source, *marks) in _TABLES["programs"].items()
)


VARIABLES: Final[dict[str, str]] = _TABLES["variables"]
"""Variable that holds a password, also an ordinary word -> page that describes it."""


# --- finding ----------------------------------------------------------------------------------


def _any_of(rules: Iterable[Rule]) -> bytes:
    return b"|".join(rule.search_pattern for rule in rules)


_BORDER: Final = (
    rb"(?:\A|[^A-Za-z0-9]|\\[nrtbfav0]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}"
    rb"|\\[0-7]{3})"
)
"""Allowed before a credential: nothing of a word, unless it is the end of an escape."""

ANY_RULE: Final = (
    _BORDER
    + rb"(?:"
    + _any_of(rule for rule in RULES if not rule.keeps_prefix)
    + rb")|"
    + _any_of(rule for rule in RULES if rule.keeps_prefix)
)
"""Every credential of a rule needs a match of this.

Not the rules themselves: all together they have so many states that every new text is slow.
"""

_BEGINS: Final = LinearRegex(
    _BORDER
    + rb"(?:"
    + _any_of(rule for rule in RULES if rule.prefixes and not rule.keeps_prefix)
    + rb")|"
    + _any_of(rule for rule in RULES if rule.keeps_prefix),
    captures=False,
)

_SHOWS: Final = LinearRegex(
    _BORDER + rb"(?:" + _any_of(rule for rule in RULES if not rule.prefixes) + rb")", captures=False
)

_WINDOW: Final = 2_048
"""Distance in which a start is searched at once: a search may scan all of it in vain."""

_OVERLAP: Final = 256
"""Longest possible start."""

_AHEAD: Final = 2_048
"""Distance in which a rule must match; the whole match has no such bound."""

_BY_LOOKS: Final = tuple(
    (r, LinearRegex(r.pattern, captures=False)) for r in RULES if not r.prefixes
)

_BY_START: Final = defaultdict[int, list[tuple[Rule, LinearRegex]]](list)
for _row in filter(lambda rule: rule.prefixes, RULES):
    for _first in sorted({start[0] for start in _row.prefixes}):
        _BY_START[_first].append((_row, LinearRegex(_row.pattern, captures=False)))

_KindSpan = tuple[int, int, str]

_Matcher = Callable[[bytes, Sequence[int]], _KindSpan | None]


def find_prefixed(data: bytes) -> Iterator[_KindSpan]:
    """Find credentials by their format: start, end and kind."""
    yield from _find_each(data, _BEGINS, _match_prefixed)
    yield from _find_each(data, _SHOWS, _match_unprefixed)


def _find_each(data: bytes, detect: LinearRegex, match: _Matcher) -> Iterator[_KindSpan]:
    at = 0
    while at < len(data):
        border = at + _WINDOW
        found = detect.search(data, at, min(border, len(data)))
        if found is None:
            at = border - _OVERLAP if border < len(data) else len(data)
            continue
        start, end = found.span()
        found_span = match(data, _start_positions(data, start))
        if found_span is None:
            at = max(end - 1, start + 1)
        else:
            yield found_span
            at = found_span[1]


def _start_positions(data: bytes, start: int) -> Sequence[int]:
    """Possible starts of a credential that was found together with the character before it."""
    if data[start] in _ESCAPING:
        return range(start, min(start + _LONGEST_ESCAPE + 1, len(data)))
    return (
        (start,) if data[start : start + 1].isalnum() else range(start, min(start + 2, len(data)))
    )


_ESCAPING: Final = b"\\%"

_LONGEST_ESCAPE: Final = 6


def _match_prefixed(data: bytes, places: Sequence[int]) -> _KindSpan | None:
    for start in places:
        for rule, pattern in _BY_START.get(data[start], ()):
            if not data.startswith(rule.prefixes, start):
                continue
            shown = max(len(s) for s in rule.prefixes if data.startswith(s, start))
            if end := _match_end(pattern, data, start, shown):
                return start + shown * rule.keeps_prefix, end, rule.kind
    return None


def _match_unprefixed(data: bytes, places: Sequence[int]) -> _KindSpan | None:
    for start in places:
        for rule, pattern in _BY_LOOKS:
            if end := _match_end(pattern, data, start):
                return start, end, rule.kind
    return None


def _match_end(pattern: LinearRegex, data: bytes, start: int, kept_prefix: int = 0) -> int:
    """End of a credential that begins here, behind its fixed prefix; 0: none does, or it is a name
    that only begins like one.
    """
    border = min(start + _AHEAD, len(data))
    found = pattern.match(data, start, border)
    if found is None or is_phrase(data[start + kept_prefix : found.end()].decode(errors="replace")):
        return 0
    whole = pattern.match(data, start) if found.end() == border < len(data) else found
    return whole.end() if whole else 0
