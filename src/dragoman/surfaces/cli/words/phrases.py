"""Pieces of sentences that several tables of words use."""

import json
from collections.abc import Mapping
from typing import Any

_MAX_LINE = 240

UNSIGNED_WARNING = (
    "no signed checkpoint covers them: a complete rewrite would not be noticed. "
    "If checkpoints.jsonl was there before, bring it back; else `dragoman tick` signs from now on"
)
"""Warning about entries without a checkpoint."""


def in_parentheses(reason: str) -> str:
    """A reason in parentheses, if there is one."""
    return f" ({reason})" if reason else ""


def truncate(text: str, max_length: int = _MAX_LINE) -> str:
    """Truncate a text to one line; --json has the whole of it."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def format_pairs(values: Mapping[str, Any]) -> str:
    """Format names and values on one line."""
    formatted = (f"{name}: {_format_value(value)}" for name, value in values.items())
    return truncate(", ".join(formatted))


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def pluralize(number: int, singular: str, plural: str = "") -> str:
    """Format a count: 1 success, 2 successes."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
