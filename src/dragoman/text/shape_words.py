"""What is wrong with the shape of a value, in words for people: where, and what would be right.

The only place that knows how msgspec words what it finds. What that does not say (which values may
stand there, which fields there are) is looked up in the shape, once something is wrong.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct

from dragoman.text.nearest import nearest_or_all
from dragoman.text.shape_place import Place, place_of

MISSING: Final = "it is missing"
NO_OBJECT: Final = "it must be an object"

# Patterns are compiled when something is wrong: every command would wait for it.
_AT: Final = r"(?P<reason>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<path>[^`]*)`)?"
_STEP: Final = r"\[(?:\d+|\.{3})\]|[^.\[]+"
_SHOWN: Final = 60
"""Longest part of a foreign value that is shown."""

_KINDS: Final = {
    "bool": "true or false",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_GIVEN: Final = _KINDS | {"float": "a number with a point"}
_IN_JSON: Final = {"NoneType": "null", "list": "array", "dict": "object"}
"""Name of a Python type -> name of the JSON type, where they differ."""
_BOUNDS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
_PARTS: Final = {
    "str": ("character", "characters"),
    "array": ("entry", "entries"),
    "object": ("field", "fields"),
}


class ShapeFault(Struct, frozen=True):
    """A shape error and its path; an empty path: the whole."""

    reason: str
    path: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason


def shape_fault(error: Exception, shape: Any, *, is_text: bool = False) -> ShapeFault:
    """Explain an error of msgspec about a value of this shape.

    `is_text`: the source has nothing but text, so that this need not be said.
    """
    at = _match(_AT, str(error))
    assert at is not None, "the pattern takes any text"
    said, path = at["reason"], at["path"] or ""
    if is_text:
        said = said.removesuffix(", got `str`")
    steps = re.findall(_STEP, path) + ["[key]"] * bool(at["key"])
    reason, name = _told(said, place_of(shape, steps))
    return ShapeFault(f"a name in it: {reason}" if at["key"] else reason, below(path, name))


def kind_of(value: object) -> str:
    """Describe the type of a value."""
    name = type(value).__name__
    return _GIVEN.get(_IN_JSON.get(name, name), f"a {name}")


def below(path: str, inner: str) -> str:
    """Join two paths; either may be empty."""
    dot = "." if path and inner and not inner.startswith("[") else ""
    return f"{path}{dot}{inner}"


def no_such_field(name: str, known: Iterable[str]) -> str:
    """Message for an unknown field, with the nearest known one, or all of them."""
    return f"there is no such field{nearest_or_all(name, known)}"


def not_one_of(value: str, choices: Iterable[str]) -> str:
    """Message for a value that is none of the choices."""
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    known = list(choices)
    if len(known) == 1:
        return f"it must be {known[0]}, not {shown}"
    return f"{shown} is not one of{': ' if known else ' its values'}{', '.join(known)}"


def _told(said: str, place: Place) -> tuple[str, str]:
    """Explain a message of msgspec; also the name of the field, if it is missing or unknown."""
    for pattern, words in _OF_OBJECTS:
        found = _match(pattern, said)
        if found is not None:
            name = found[1] if found[1].isprintable() else ascii(found[1])
            return words(found[1], place), name[:_SHOWN]
    value = _match(_NO_CHOICE, said)
    if value is not None:
        return not_one_of(value[1], place.choices), ""
    if place.words:
        return f"it must be {place.words}", ""
    for pattern, right in _OF_VALUES:
        found = _match(pattern, said)
        if found is not None:
            return f"it must be {right(found, place)}", ""
    return said, ""


def _missing(_: str, __: Place) -> str:
    return MISSING


def _unknown(name: str, place: Place) -> str:
    return no_such_field(name, place.names)


_OF_OBJECTS: Final[tuple[tuple[str, Callable[[str, Place], str]], ...]] = (
    (r"Object missing required field `(.*)`", _missing),
    (r"Object contains unknown field `(.*)`", _unknown),
)
_NO_CHOICE: Final = r"Invalid (?:enum )?value (.*)"


def _kind(found: re.Match[str], place: Place) -> str:
    if place.is_choice:
        return f"{'one of: ' * (len(place.choices) > 1)}{', '.join(place.choices)}"
    given = f", not {_GIVEN.get(found[2], found[2])}" if found[2] else ""
    return f"{_kinds(found[1])}{given}"


def _range(found: re.Match[str], _: Place) -> str:
    return f"{_kinds(found[1])}, {_BOUNDS[found[2]]} {found[3]}"


def _length(found: re.Match[str], _: Place) -> str:
    return f"{_kinds(found[1])} of {_BOUNDS[found[2]]} {_count(found[1], found[3])}"


def _exact(found: re.Match[str], _: Place) -> str:
    return f"{_kinds(found[1])} of {_count(found[1], found[2])}, not {found[3]}"


def _form(found: re.Match[str], _: Place) -> str:
    return f"{_kinds(found[1])} of the form {found[2]}"


_OF_VALUES: Final[tuple[tuple[str, Callable[[re.Match[str], Place], str]], ...]] = (
    (r"Expected `([^`]*)`(?:, got `([^`]*)`)?", _kind),
    (r"Expected `([^`]*)` ([<>]=?) (.*)", _range),
    (r"Expected `([^`]*)` of length ([<>]=?) (\d+)", _length),
    (r"Expected `([^`]*)` of length (\d+), got (\d+)", _exact),
    (r"Expected `([^`]*)` matching regex (.*)", _form),
)


def _kinds(names: str) -> str:
    """Describe the types of a message: `int | null` -> a whole number or null."""
    return " or ".join(_KINDS.get(one, one) for one in names.split(" | "))


def _count(kind: str, count: str) -> str:
    one, many = _PARTS.get(kind, ("part", "parts"))
    return f"{count} {one if count == '1' else many}"


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text, re.DOTALL)
