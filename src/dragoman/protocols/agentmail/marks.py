"""The marks of Markdown that shape a body: headings and code fences, a line at a time."""

from typing import Final

from dragoman.text.ascii_case import ascii_lower

INDENT: Final = " \t"
_MAX_HEADING_LEVEL: Final = 6
_MAX_HEADING_INDENT: Final = 3
"""A heading that is indented further is code."""
_MIN_FENCE_CHARS: Final = 3
_HEADING_DECORATION: Final = " \t*_:"
"""Decoration around a heading's title: bold signs, or a colon."""


def parse_heading(line: str) -> tuple[int, str] | None:
    """Return level and title, in lower case, of a heading, or None."""
    unindented = line.lstrip(" ")
    title = unindented.lstrip("#")
    level = len(unindented) - len(title)
    if not 1 <= level <= _MAX_HEADING_LEVEL or len(line) - len(unindented) > _MAX_HEADING_INDENT:
        return None
    if title and title[0] not in INDENT:
        return None
    return level, ascii_lower(title.rstrip("# \t\r").strip(_HEADING_DECORATION))


def parse_opening_fence(line: str) -> str:
    """Return the fence that a line opens, with all its signs, or an empty text."""
    unindented = line.lstrip(INDENT)
    sign = unindented[:1]
    if sign not in ("`", "~"):
        return ""
    rest = unindented.lstrip(sign)
    length = len(unindented) - len(rest)
    if length < _MIN_FENCE_CHARS or (sign == "`" and sign in rest):
        return ""  # too short, or inline code
    return sign * length


def closes_fence(line: str, fence: str) -> bool:
    """Tell whether a line closes the fence: the same sign, at least as often, and nothing else."""
    stripped = line.strip()
    return stripped.startswith(fence) and not stripped.strip(fence[0])
