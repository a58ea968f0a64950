"""The marks of Markdown that shape a body: headings and code fences, a line at a time."""

from typing import Final

from dragoman.text.ascii_case import lower

INDENT: Final = " \t"
_DEEPEST: Final = 6
_MOST_INDENT: Final = 3
"""A heading that stands further in is code."""
_SHORTEST_FENCE: Final = 3
_AROUND: Final = " \t*_:"
"""What may stand around a heading's words: bold, or a colon."""


def heading_of(line: str) -> tuple[int, str] | None:
    """The level and the words, in lower case, of a line that is a heading."""
    start = line.lstrip(" ")
    words = start.lstrip("#")
    level = len(start) - len(words)
    if not 1 <= level <= _DEEPEST or len(line) - len(start) > _MOST_INDENT:
        return None
    if words and words[0] not in INDENT:
        return None
    return level, lower(words.rstrip("# \t\r").strip(_AROUND))


def opened_fence(line: str) -> str:
    """The fence that a line opens, so long as it is; empty when it opens none."""
    start = line.lstrip(INDENT)
    sign = start[:1]
    if sign not in ("`", "~"):
        return ""
    rest = start.lstrip(sign)
    length = len(start) - len(rest)
    if length < _SHORTEST_FENCE or (sign == "`" and sign in rest):
        return ""  # too short, or code within the line
    return sign * length


def closes(line: str, fence: str) -> bool:
    """Whether a line ends the fence: the same sign, at least as often, and nothing else."""
    start = line.strip()
    return start.startswith(fence) and not start.strip(fence[0])
