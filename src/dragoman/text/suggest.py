"""Suggestions for a mistyped name ("did you mean …?"), worded the same everywhere."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_MAX_COMPARED: Final = 100
"""Longest part of a name that is compared: the comparison takes quadratic time."""


def nearest_name(name: str, known: Iterable[str]) -> str:
    """The known name nearest to an unknown one; empty when none comes near."""
    return next(iter(get_close_matches(name[:_MAX_COMPARED], list(known), n=1)), "")


def suggest(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for an unknown name; empty when no known one comes near."""
    near = nearest_name(name, known)
    return f"; did you mean {near}?" if near else ""


def suggest_or_list(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for an unknown name; when none comes near, `; known: …` and all of
    them."""
    names = list(known)
    return suggest(name, names) or (f"; known: {', '.join(names)}" if names else "")
