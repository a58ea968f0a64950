r"""Free text under a heading: nothing in it can end its section or open another.

A line that would act (a heading of a section's level or above, a fence that never closes) is
written with a backslash before it, as Markdown has it: `\## Question` is shown as `## Question`.
So is a line that already looks so written, which is why taking one backslash away gives every text
back. Closed fences stay as they are, and nothing within them is touched.
"""

from collections.abc import Callable, Sequence
from typing import Final

from dragoman.protocols.agentmail.marks import INDENT, closes, heading_of, opened_fence

SECTION_LEVEL: Final = 2
_ACTING: Final = frozenset("#`~")


def escaped(text: str) -> str:
    r"""Escape free text so that nothing in it can end its section or open another.

    A line that would act (a heading of a section's level or above, a fence that never closes) gets
    a backslash before it, as in Markdown: `\## Question` is shown as `## Question`. So does a line
    that already looks escaped, so that removing one backslash restores every text. Closed fences
    stay as they are, and nothing within them is touched.
    """
    return _rewritten(text, _with_backslash)


def unescaped(text: str) -> str:
    """Undo `escape_text`."""
    return _rewritten(text, _without_backslash)


def _rewritten(text: str, change: Callable[[str], str]) -> str:
    """Rewrite every line of a text that is not code."""
    lines = text.split("\n")
    in_code = _code(lines)
    return "\n".join(
        line if is_code else change(line) for line, is_code in zip(lines, in_code, strict=True)
    )


def _code(lines: Sequence[str]) -> list[bool]:
    """Mark the lines that belong to a code fence that closes."""
    marked = [False] * len(lines)
    fence, start = "", 0
    for index, line in enumerate(lines):
        if fence:
            if closes(line, fence):
                marked[start : index + 1] = [True] * (index + 1 - start)
                fence = ""
        elif fence := opened_fence(line):
            start = index
    return marked


def _with_backslash(line: str) -> str:
    words = line.lstrip(INDENT)
    if not (_would_act(line) or _is_escaped(words)):
        return line
    return line[: len(line) - len(words)] + "\\" + words


def _without_backslash(line: str) -> str:
    words = line.lstrip(INDENT)
    return line[: len(line) - len(words)] + words[1:] if _is_escaped(words) else line


def _would_act(line: str) -> bool:
    heading = heading_of(line)
    if heading is not None:
        return heading[0] <= SECTION_LEVEL
    return bool(opened_fence(line))


def _is_escaped(words: str) -> bool:
    return words[:1] == "\\" and words.lstrip("\\")[:1] in _ACTING
