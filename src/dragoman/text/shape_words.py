"""What is wrong with the shape of a value, in words for people: where, and what would be right."""

import re
from collections.abc import Callable
from typing import Final

_AT: Final = re.compile(r"(?P<reason>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)

_KINDS: Final = {
    "bool": "true or false",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_BOUNDS: Final = {
    ">=": "at least {}",
    "<=": "at most {}",
    "of length >=": "of at least {} characters or parts",
    "of length <=": "of at most {} characters or parts",
}

Words = Callable[[re.Match[str]], str]


def _kinds(names: str) -> str:
    """Kinds as they are told: `int | null` -> a whole number or null."""
    return " or ".join(_KINDS.get(one, one) for one in names.split(" | "))


def _mismatch(found: re.Match[str]) -> str:
    return f"it must be {_kinds(found[1])}, not {_kinds(found[2])}"


def _beyond(found: re.Match[str]) -> str:
    return f"it must be {_kinds(found[1])}, {_BOUNDS[found[2]].format(found[3])}"


_SAID: Final[tuple[tuple[re.Pattern[str], Words], ...]] = (
    (re.compile(r"Expected `([^`]*)`, got `([^`]*)`"), _mismatch),
    (re.compile(r"Expected `([^`]*)` ((?:of length )?[<>]=) (.*)"), _beyond),
    (re.compile(r"Invalid enum value (.*)"), lambda found: f"{found[1]} is not one of its values"),
    (
        re.compile(r"Object contains unknown field `(.*)`"),
        lambda found: f"there is no field {found[1]} here",
    ),
)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")


def shape_fault(error: str) -> tuple[str, str]:
    """What is wrong and the path of where, of an error that a shape has raised."""
    at = _AT.fullmatch(error)
    assert at is not None, "the pattern takes any text"
    reason, path = at["reason"], at["path"] or ""
    missing = _MISSING.fullmatch(reason)
    if missing is not None:
        return f"{missing[1]} is missing", f"{path}.{missing[1]}".removeprefix(".")
    for pattern, words in _SAID:
        found = pattern.fullmatch(reason)
        if found is not None:
            return words(found), path
    return reason, path
