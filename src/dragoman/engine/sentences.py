"""Sentences as data: templates that are filled with the fields of an event or a reply.

A part of a template whose field is empty is left out.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from dragoman.core.timestamps import format_duration, format_hours, to_rfc3339

# --- values on one line -----------------------------------------------------------------------

_MAX_LINE = 240


def truncate(text: str, max_length: int = _MAX_LINE) -> str:
    """Truncate a text to one line; --json has the whole of it."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def format_pairs(values: Mapping[str, Any]) -> str:
    """Format names and values on one line."""
    formatted = (f"{name}: {format_value(value)}" for name, value in values.items())
    return truncate(", ".join(formatted))


def format_value(value: Any) -> str:
    """Format a value of a reply on one line."""
    if isinstance(value, float):
        return f"{round(value, 3)}".removesuffix(".0")
    if isinstance(value, str | int):
        return f"{value}"
    if isinstance(value, list | tuple):
        items = cast(Sequence[Any], value)
        if not any(isinstance(item, dict | list | tuple) for item in items):
            return ", ".join(map(format_value, items))
    return "" if value is None else json.dumps(value, ensure_ascii=False)


# --- templates --------------------------------------------------------------------------------

_FIELD = re.compile(r"\{([?!]?)([\w.]+)(?:=([^}]*))?(?::(\w+))?\}")

_FORMATS: dict[str, Callable[[Any], str]] = {
    "time": to_rfc3339,
    "duration": format_duration,
    "hours": format_hours,
    "percent": lambda share: f"{share:.0%}",
    "count": lambda listed: str(len(listed)),
    "list": lambda listed: "; ".join(map(str, listed)),
    "chain": lambda listed: " → ".join(map(str, listed)),
    "keys": ", ".join,
    "counts": lambda counts: ", ".join(f"{count} {name}" for name, count in counts.items()),
    "words": lambda listed: " ".join(map(str, listed)),
    "pairs": format_pairs,
}


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Fill a template, whose parts stand between bars; a part with an empty field is left out.

    `{name:format}` is a field, also `{outer.inner}`. `{?name}` and `{!name}` are conditions of a
    part: the field is not empty, or is; `{?name=a,b}`: it has one of these values.
    """
    return "".join(_fill_part(part, values) for part in template.split("|"))


def _fill_part(part: str, values: Mapping[str, Any]) -> str:
    for field in _FIELD.finditer(part):
        value, choices = _look_up(values, field[2]), field[3]
        holds = value not in (None, "", [], (), {})
        if field[1]:
            holds = bool(value) if choices is None else str(value) in choices.split(",")
        if holds is (field[1] == "!"):
            return ""
    return _FIELD.sub(lambda field: "" if field[1] else _format_field(field, values), part)


def _look_up(values: Any, path: str) -> Any:
    for name in path.split("."):
        values = cast(Mapping[str, Any], values).get(name) if isinstance(values, Mapping) else None
    return values


def _format_field(field: re.Match[str], values: Mapping[str, Any]) -> str:
    value, style = _look_up(values, field[2]), field[4]
    if style is None:
        return format_value(value)
    return _FORMATS[style](value) if style in _FORMATS else str(value)[: int(style)]
