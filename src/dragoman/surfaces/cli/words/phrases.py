"""Pieces of sentences that several tables of words use."""

import json
from collections.abc import Mapping
from typing import Any

_LONGEST = 240

UNSIGNED = (
    "no signed checkpoint covers them: a complete rewrite would not be noticed. "
    "If checkpoints.jsonl was there before, bring it back; else `dragoman tick` signs from now on"
)
"""Warning about entries without a checkpoint."""


def because(reason: str) -> str:
    """A reason in parentheses, if there is one."""
    return f" ({reason})" if reason else ""


def cut(text: str, longest: int = _LONGEST) -> str:
    """Truncate a text to one line; --json has the whole of it."""
    return text if len(text) <= longest else text[: longest - 1] + "…"


def pairs(values: Mapping[str, Any]) -> str:
    """Format names and values on one line."""
    told = (f"{name}: {_as_text(value)}" for name, value in values.items())
    return cut(", ".join(told))


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def counted(number: int, one: str, many: str = "") -> str:
    """Format a count: 1 success, 2 successes."""
    return f"{number} {one if number == 1 else many or one + 's'}"
