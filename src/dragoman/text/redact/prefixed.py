"""Finds the credentials that the table of rules describes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dragoman.text.linear import Linear
from dragoman.text.redact.rules import RULES, Rule


def _any(rules: Iterable[Rule]) -> bytes:
    return b"|".join(rule.lead for rule in rules)


_BORDER: Final = (
    rb"(?:\A|[^A-Za-z0-9]|\\[nrtbfav0]|%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}"
    rb"|\\[0-7]{3})"
)
"""What may stand before a credential: nothing of a word, unless it is the end of an escape."""
ANY_RULE: Final = (
    _BORDER
    + rb"(?:"
    + _any(rule for rule in RULES if not rule.shows)
    + rb")|"
    + _any(rule for rule in RULES if rule.shows)
)
"""What every credential of a rule needs somewhere in the text.

Not the rules themselves: all together they have so many states that every new text is slow.
"""
_DETECT: Final = Linear(ANY_RULE, captures=False)
_BY_LOOKS: Final = tuple((r, Linear(r.pattern, captures=False)) for r in RULES if not r.starts)
_BY_START: Final = defaultdict[int, list[tuple[Rule, Linear]]](list)
for _rule in filter(lambda rule: rule.starts, RULES):
    for _first in sorted({start[0] for start in _rule.starts}):
        _BY_START[_first].append((_rule, Linear(_rule.pattern, captures=False)))


def prefixed(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Where credentials are that can be told by their looks, and of what kind."""
    at = 0
    while (found := _DETECT.search(data, at)) is not None:
        start, end = found.span()
        told = _told(data, _places(data, start))
        if told is None:
            at = max(end - 1, start + 1)
        else:
            yield told
            at = told[1]


def _places(data: bytes, start: int) -> Sequence[int]:
    """Where a credential may begin that was found together with what stands before it."""
    if data[start] in _ESCAPING:
        return range(start, min(start + _LONGEST_ESCAPE + 1, len(data)))
    return (
        (start,) if data[start : start + 1].isalnum() else range(start, min(start + 2, len(data)))
    )


_ESCAPING: Final = b"\\%"
_LONGEST_ESCAPE: Final = 6


def _told(data: bytes, places: Sequence[int]) -> tuple[int, int, str] | None:
    for start in places:
        for rule, pattern in _BY_START.get(data[start], ()):
            if data.startswith(rule.starts, start) and (found := pattern.match(data, start)):
                shown = max(len(s) for s in rule.starts if data.startswith(s, start))
                return start + shown * rule.shows, found.end(), rule.kind
    for start in places:
        for rule, pattern in _BY_LOOKS:
            if (found := pattern.match(data, start)) is not None:
                return start, found.end(), rule.kind
    return None
