r"""Free text under a heading: nothing in it can end its section or open another.

A line that would act (a heading of a section's level or above, a fence that never closes) is
written with a backslash before it, as Markdown has it: `\## Question` is shown as `## Question`.
So is a line that already looks so written, which is why taking one backslash away gives every text
back. Closed fences stay as they are, and nothing within them is touched.
"""

from collections.abc import Callable, Sequence
from typing import Final

from dragoman.protocols.agentmail.marks import (
    INDENT,
    closes_fence,
    parse_heading,
    parse_opening_fence,
)

SECTION_LEVEL: Final = 2
_MARKUP_SIGNS: Final = frozenset("#`~")


def escape_text(text: str) -> str:
    r"""Escape free text so that nothing in it can end its section or open another.

    A line that would act (a heading of a section's level or above, a fence that never closes) gets
    a backslash before it, as in Markdown: `\## Question` is shown as `## Question`. So does a line
    that already looks escaped, so that removing one backslash restores every text. Closed fences
    stay as they are, and nothing within them is touched.
    """
    return _rewrite_lines(text, _escape_line)


def unescape_text(text: str) -> str:
    """Undo `escape_text`."""
    return _rewrite_lines(text, _unescape_line)


def _rewrite_lines(text: str, rewrite: Callable[[str], str]) -> str:
    """Rewrite every line of a text that is not code."""
    lines = text.split("\n")
    in_code = _mark_code_lines(lines)
    return "\n".join(
        line if is_code else rewrite(line) for line, is_code in zip(lines, in_code, strict=True)
    )


def _mark_code_lines(lines: Sequence[str]) -> list[bool]:
    """Mark the lines that belong to a code fence that closes."""
    is_code = [False] * len(lines)
    fence, start = "", 0
    for index, line in enumerate(lines):
        if fence:
            if closes_fence(line, fence):
                is_code[start : index + 1] = [True] * (index + 1 - start)
                fence = ""
        elif fence := parse_opening_fence(line):
            start = index
    return is_code


def _escape_line(line: str) -> str:
    content = line.lstrip(INDENT)
    if not (_is_markup(line) or _is_escaped(content)):
        return line
    return line[: len(line) - len(content)] + "\\" + content


def _unescape_line(line: str) -> str:
    content = line.lstrip(INDENT)
    return line[: len(line) - len(content)] + content[1:] if _is_escaped(content) else line


def _is_markup(line: str) -> bool:
    heading = parse_heading(line)
    if heading is not None:
        return heading[0] <= SECTION_LEVEL
    return bool(parse_opening_fence(line))


def _is_escaped(content: str) -> bool:
    return content[:1] == "\\" and content.lstrip("\\")[:1] in _MARKUP_SIGNS
