"""Finds the credentials that the table of rules describes."""

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
_LONGEST_BORDER: Final = 6

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
_BY_START: Final = tuple((r, Linear(r.pattern, captures=False)) for r in RULES if r.starts)
_BY_LOOKS: Final = tuple((r, Linear(r.pattern, captures=False)) for r in RULES if not r.starts)


def prefixed(data: bytes) -> Iterator[tuple[int, int, str]]:
    """Where credentials are that can be told by their looks, and of what kind."""
    at = 0
    while (found := _DETECT.search(data, at)) is not None:
        # What stands before it was found with it: asking for the place alone would be far slower.
        told = _told(
            data, range(found.start(), min(found.end(), found.start() + _LONGEST_BORDER + 1))
        )
        if told is None:
            at = max(found.end() - 1, found.start() + 1)
        else:
            yield told
            at = told[1]


def _told(data: bytes, places: Sequence[int]) -> tuple[int, int, str] | None:
    for start in places:
        for rule, pattern in _BY_START:
            if data.startswith(rule.starts, start) and (found := pattern.match(data, start)):
                shown = max(len(s) for s in rule.starts if data.startswith(s, start))
                return start + shown * rule.shows, found.end(), rule.kind
    for start in places:
        for rule, pattern in _BY_LOOKS:
            if (found := pattern.match(data, start)) is not None:
                return start, found.end(), rule.kind
    return None
