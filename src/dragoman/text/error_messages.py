"""Error messages for people: faults of the system, and values that have the wrong shape.

The only place that knows how msgspec words its errors. What such an error does not say (the allowed
values, the known fields) is looked up in the shape, once something is wrong.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from msgspec import Meta, Struct, UnsetType
from msgspec.structs import fields

# --- faults of the system ---------------------------------------------------------------------


def describe_exception(error: Exception) -> str:
    """Describe an exception without its error number, with its file or address if it has one."""
    if not isinstance(error, OSError) or not error.strerror:
        return f"{error}"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


# --- mistyped names ---------------------------------------------------------------------------

_MAX_COMPARED: Final = 100
"""Longest part of a name that is compared: the comparison takes quadratic time."""


def nearest_name(name: str, known: Iterable[str], least_similarity: float = 0.6) -> str:
    """The known name nearest to an unknown one; empty when none comes near."""
    from difflib import get_close_matches  # noqa: PLC0415  seldom needed

    found = get_close_matches(name[:_MAX_COMPARED], list(known), n=1, cutoff=least_similarity)
    return next(iter(found), "")


def suggest(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for an unknown name; empty when no known one comes near."""
    near = nearest_name(name, known)
    return f"; did you mean {near}?" if near else ""


def suggest_given_name(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for a name that people give to tasks and agents, which is often short or
    numbered; empty when none of the known ones was meant."""
    others = list(known)
    slips = [one for one in others if is_one_edit(name, one)]
    near = slips or [one for one in others if _mask_numbers(one) != _mask_numbers(name)]
    found = nearest_name(name, near, _GIVEN_NAME_SIMILARITY)
    return f"; did you mean {found}?" if found else ""


_GIVEN_NAME_SIMILARITY: Final = 0.75
"""Least similarity of two names: below it `coder` would be near to `owner`."""


def is_one_edit(name: str, other: str) -> bool:
    """True if one character was left out, added, replaced, or swapped with the next one."""
    if abs(len(name) - len(other)) > 1:
        return False
    pairs = enumerate(zip(name, other, strict=False))
    start = next((at for at, (one, two) in pairs if one != two), min(len(name), len(other)))
    left, right = name[start:], other[start:]
    return (
        left[1:] == right[1:]
        or left[1:] == right
        or left == right[1:]
        or (left[1:2] + left[:1] + left[2:] == right)
    )


def _mask_numbers(name: str) -> str:
    """Name without its numbers: names that differ in those alone were hardly mistyped."""
    return re.sub("[0-9]+", "0", name)


def suggest_or_list(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` for an unknown name; when none comes near, `; known: …` and all of
    them."""
    names = list(known)
    return suggest(name, names) or (f"; known: {', '.join(names)}" if names else "")


# --- allowed values of a shape ----------------------------------------------------------------

_NULL_TYPES: Final = (None, NoneType, UnsetType)

_CACHE_SIZE: Final = 512


class AllowedValues(Struct, frozen=True):
    """Allowed values at a path of a shape; empty where the shape leaves it open."""

    types: tuple[Any, ...] = ()
    """Allowed types, except null."""
    requirement: str = ""
    """Requirement in words, from the shape itself: `Meta(extra={"reason": …})`."""

    @property
    def is_choice(self) -> bool:
        """True if only `choices` are allowed."""
        return bool(self.types) and all(map(_literal_values, self.types))

    @property
    def choices(self) -> tuple[str, ...]:
        """Literal values by name, if there are any; without an empty one."""
        values = (f"{one}" for kind in self.types for one in _literal_values(kind))
        return tuple(dict.fromkeys(filter(None, values)))

    @property
    def names(self) -> tuple[str, ...]:
        """Fields of the object; none if it may be one of several, or is open."""
        return tuple(_field_types(self.types[0])) if len(self.types) == 1 else ()


def find_allowed(shape: Any, steps: list[str]) -> AllowedValues:
    """Find what is allowed at a path.

    A step is a field's name, `[3]` of a list, `[...]` of a table, or `[key]`: a name in that.
    """
    found = list(_union_members(shape))
    for step in steps:
        found = [
            one
            for kind, _ in found
            for inner in _child_types(kind, step)
            for one in _union_members(inner)
        ]
    words = {words for _, words in found}
    return AllowedValues(tuple(kind for kind, _ in found), words.pop() if len(words) == 1 else "")


def _union_members(shape: Any, requirement: str = "") -> Iterator[tuple[Any, str]]:
    """Types that a shape allows, each with its requirement in words."""
    origin, inner = get_origin(shape), get_args(shape)
    if origin is Annotated:
        extra = [one.extra for one in inner[1:] if isinstance(one, Meta) and one.extra]
        yield from _union_members(inner[0], next((one["reason"] for one in extra), requirement))
    elif origin in (Union, UnionType):
        for one in inner:
            yield from _union_members(one, requirement)
    elif shape not in _NULL_TYPES:
        yield shape, requirement


def _child_types(kind: Any, step: str) -> Iterator[Any]:
    """Types one step further down."""
    if not step.startswith("["):
        yield from filter(None, [_field_types(kind).get(step)])
        return
    inner = get_args(kind)
    if step == "[...]":
        yield from inner[1:]
    elif Ellipsis in inner or get_origin(kind) is not tuple:
        yield from inner[:1]
    else:
        index = int(step[1:-1])
        yield from inner[index : index + 1]


@lru_cache(_CACHE_SIZE)
def _field_types(kind: Any) -> Mapping[str, Any]:
    """Fields of an object and their types; its tag is a field with one value."""
    struct = get_origin(kind) or kind
    if not (isinstance(struct, type) and issubclass(struct, Struct)):
        return {}
    config = struct.__struct_config__
    tag = {config.tag_field: Literal[config.tag]} if config.tag_field else {}
    return {field.encode_name: field.type for field in fields(kind)} | tag


def _literal_values(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) is Literal else ()


# --- shape errors -----------------------------------------------------------------------------

MISSING: Final = "it is missing"

NO_OBJECT: Final = "it must be an object"

# Patterns are compiled when something is wrong: every command would wait for it.
_MESSAGE_FORM: Final = r"(?P<reason>.*?)(?: - at (?P<key>`key` in )?`\$\.?(?P<path>[^`]*)`)?"

_PATH_STEP: Final = r"\[(?:\d+|\.{3})\]|[^.\[]+"

_SHOWN: Final = 60
"""Longest part of a foreign value that is shown."""

_TYPE_WORDS: Final = {
    "bool": "true or false",
    "str": "a text",
    "int": "a whole number",
    "float": "a number",
    "object": "an object",
    "array": "a list",
    "null": "null",
}

_GIVEN_TYPE_WORDS: Final = _TYPE_WORDS | {"float": "a number with a point"}

_JSON_TYPE_NAMES: Final = {"NoneType": "null", "list": "array", "dict": "object"}
"""Name of a Python type -> name of the JSON type, where they differ."""

_COMPARISONS: Final = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}

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
    at = _match(_MESSAGE_FORM, str(error))
    assert at is not None, "the pattern takes any text"
    message, path = at["reason"], at["path"] or ""
    if is_text:
        message = message.removesuffix(", got `str`")
    steps = re.findall(_PATH_STEP, path) + ["[key]"] * bool(at["key"])
    reason, name = _explain(message, find_allowed(shape, steps))
    return ShapeFault(f"a name in it: {reason}" if at["key"] else reason, join_path(path, name))


def describe_type(value: object) -> str:
    name = type(value).__name__
    return _GIVEN_TYPE_WORDS.get(_JSON_TYPE_NAMES.get(name, name), f"a {name}")


def join_path(path: str, child: str) -> str:
    """Join two paths; either may be empty."""
    dot = "." if path and child and not child.startswith("[") else ""
    return f"{path}{dot}{child}"


def unknown_field_message(name: str, known: Iterable[str]) -> str:
    """Message for an unknown field, with the nearest known one, or all of them."""
    return f"there is no such field{suggest_or_list(name, known)}"


def choice_message(value: str, choices: Iterable[str]) -> str:
    shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}…"
    known = list(choices)
    if len(known) == 1:
        return f"it must be {known[0]}, not {shown}"
    return f"{shown} is not one of{': ' if known else ' its values'}{', '.join(known)}"


def _explain(message: str, allowed: AllowedValues) -> tuple[str, str]:
    """Explain a message of msgspec; also the name of the field, if it is missing or unknown."""
    for pattern, format_problem in _FIELD_PATTERNS:
        found = _match(pattern, message)
        if found is not None:
            name = found[1] if found[1].isprintable() else ascii(found[1])
            return format_problem(found[1], allowed), name[:_SHOWN]
    value = _match(_CHOICE_PATTERN, message)
    if value is not None:
        return choice_message(value[1], allowed.choices), ""
    if allowed.requirement:
        return f"it must be {allowed.requirement}", ""
    for pattern, format_requirement in _VALUE_PATTERNS:
        found = _match(pattern, message)
        if found is not None:
            return f"it must be {format_requirement(found, allowed)}", ""
    return message, ""


def _format_missing(_: str, __: AllowedValues) -> str:
    return MISSING


def _format_unknown(name: str, place: AllowedValues) -> str:
    return unknown_field_message(name, place.names)


_FIELD_PATTERNS: Final[tuple[tuple[str, Callable[[str, AllowedValues], str]], ...]] = (
    (r"Object missing required field `(.*)`", _format_missing),
    (r"Object contains unknown field `(.*)`", _format_unknown),
)

_CHOICE_PATTERN: Final = r"Invalid (?:enum )?value (.*)"


def _format_type(found: re.Match[str], place: AllowedValues) -> str:
    if place.is_choice:
        return f"{'one of: ' * (len(place.choices) > 1)}{', '.join(place.choices)}"
    given = f", not {_GIVEN_TYPE_WORDS.get(found[2], found[2])}" if found[2] else ""
    return f"{_type_words(found[1])}{given}"


def _format_range(found: re.Match[str], _: AllowedValues) -> str:
    return f"{_type_words(found[1])}, {_COMPARISONS[found[2]]} {found[3]}"


def _format_length(found: re.Match[str], _: AllowedValues) -> str:
    return f"{_type_words(found[1])} of {_COMPARISONS[found[2]]} {_count_words(found[1], found[3])}"


def _format_exact_length(found: re.Match[str], _: AllowedValues) -> str:
    return f"{_type_words(found[1])} of {_count_words(found[1], found[2])}, not {found[3]}"


def _format_regex(found: re.Match[str], _: AllowedValues) -> str:
    return f"{_type_words(found[1])} of the form {found[2]}"


_VALUE_PATTERNS: Final[tuple[tuple[str, Callable[[re.Match[str], AllowedValues], str]], ...]] = (
    (r"Expected `([^`]*)`(?:, got `([^`]*)`)?", _format_type),
    (r"Expected `([^`]*)` ([<>]=?) (.*)", _format_range),
    (r"Expected `([^`]*)` of length ([<>]=?) (\d+)", _format_length),
    (r"Expected `([^`]*)` of length (\d+), got (\d+)", _format_exact_length),
    (r"Expected `([^`]*)` matching regex (.*)", _format_regex),
)


def _type_words(names: str) -> str:
    """Describe the types of a message: `int | null` -> a whole number or null."""
    return " or ".join(_TYPE_WORDS.get(one, one) for one in names.split(" | "))


def _count_words(kind: str, count: str) -> str:
    one, many = _PARTS.get(kind, ("part", "parts"))
    return f"{count} {one if count == '1' else many}"


def _match(pattern: str, text: str) -> re.Match[str] | None:
    return re.fullmatch(pattern, text, re.DOTALL)
