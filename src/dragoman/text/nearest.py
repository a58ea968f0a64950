"""The name that was probably meant, said the same way wherever a name is not known."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LONGEST: Final = 100
"""Of a longer name the beginning is compared: nobody's patience is spent on it."""


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that comes nearest to one that is not; empty when none comes near."""
    return next(iter(get_close_matches(name[:_LONGEST], list(known), n=1)), "")


def meant(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` after a name that is not known; empty when none that is comes near."""
    near = nearest(name, known)
    return f"; did you mean {near}?" if near else ""


def nearest_or_all(name: str, known: Iterable[str]) -> str:
    """The same; when none comes near, `; known: …` and all of them."""
    names = list(known)
    return meant(name, names) or (f"; known: {', '.join(names)}" if names else "")
