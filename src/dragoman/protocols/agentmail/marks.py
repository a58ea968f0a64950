"""The marks of Markdown that shape a body: headings and code fences, a line at a time."""

from typing import Final

from dragoman.text.ascii_case import lower

INDENT: Final = " \t"
_DEEPEST: Final = 6
_MOST_INDENT: Final = 3
"""A heading that is indented further is code."""
_SHORTEST_FENCE: Final = 3
_AROUND: Final = " \t*_:"
"""Decoration around a heading's title: bold signs, or a colon."""


def heading_of(line: str) -> tuple[int, str] | None:
    """Return level and title, in lower case, of a heading, or None."""
    start = line.lstrip(" ")
    words = start.lstrip("#")
    level = len(start) - len(words)
    if not 1 <= level <= _DEEPEST or len(line) - len(start) > _MOST_INDENT:
        return None
    if words and words[0] not in INDENT:
        return None
    return level, lower(words.rstrip("# \t\r").strip(_AROUND))


def opened_fence(line: str) -> str:
    """Return the fence that a line opens, with all its signs, or an empty text."""
    start = line.lstrip(INDENT)
    sign = start[:1]
    if sign not in ("`", "~"):
        return ""
    rest = start.lstrip(sign)
    length = len(start) - len(rest)
    if length < _SHORTEST_FENCE or (sign == "`" and sign in rest):
        return ""  # too short, or inline code
    return sign * length


def closes(line: str, fence: str) -> bool:
    """Tell whether a line closes the fence: the same sign, at least as often, and nothing else."""
    start = line.strip()
    return start.startswith(fence) and not start.strip(fence[0])
