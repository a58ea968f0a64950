"""Work log of a task file: one line per progress report, note or blocker (S-AOF-6)."""

import re
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.files.errors import line_error
from dragoman.files.markdown import escape_line, split_unescaped, unescape_line

HEADING: Final = "## Work Log"

_ENTRY_LINE: Final = re.compile(r"- (\S+)(?: (.*))?")
_SEPARATOR: Final = "; "
_LABELS: Final = frozenset({"By", "Progress", "Notes", "Blockers"})
_HIDDEN_LINE: Final = re.compile(
    r"\*([1-9][0-9]{0,15}) earlier entries: `dragoman task log [^`]*`\*\s*"
)
_NOT_EDITABLE: Final = (
    "this stands in the work log, which is written by the hub and cannot be edited: `dragoman task "
    "log ID TEXT` adds a line to it, and words about the task go above its heading"
)
_MAX_ENTRIES: Final = 200
_MAX_BYTES: Final = 256 << 10
"""Limit of the visible log, so that a task file stays readable."""


class LogEntry(Struct, frozen=True):
    """One line of the log."""

    at: int
    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    by: str = ""
    """Author of the entry, if not the task's agent."""


def format_entry(entry: LogEntry) -> str:
    """Format an entry: `- <timestamp> Progress: ... | Notes: ... | Blockers: ...`.

    Empty parts are left out. An entry of anybody but the task's agent begins with `By: ...`.
    """
    parts = list[str]()
    if entry.by:
        parts.append(f"By: {escape_line(entry.by)}")
    if entry.progress:
        parts.append(f"Progress: {escape_line(entry.progress)}")
    if entry.notes:
        parts.append(f"Notes: {escape_line(entry.notes)}")
    if entry.blockers:
        blockers = _SEPARATOR.join(escape_line(blocker, ";") for blocker in entry.blockers)
        parts.append(f"Blockers: {blockers}")
    return " ".join(("-", to_rfc3339(entry.at), *filter(None, [" | ".join(parts)])))


def visible_tail(log: Sequence[LogEntry]) -> tuple[LogEntry, ...]:
    """The end of a log that a file shows; always includes the last entry."""
    first, bytes_left = len(log), _MAX_BYTES
    while first > max(0, len(log) - _MAX_ENTRIES):
        bytes_left -= len(format_entry(log[first - 1]).encode())
        if bytes_left < 0 and first < len(log):
            break
        first -= 1
    return tuple(log[first:])


def format_hidden_count(count: int, task_id: str) -> str:
    """Line that says how many entries are hidden, and which command shows them."""
    return f"*{count} earlier entries: `dragoman task log {task_id}`*"


def parse_hidden_count(line: str) -> int:
    """Number of hidden entries that a line states; 0 when it is another line."""
    found = _HIDDEN_LINE.fullmatch(line)
    return int(found[1]) if found else 0


def parse_entry(line: str, number: int) -> LogEntry:
    """Parse a line; `number` is for the error message."""
    found = _ENTRY_LINE.fullmatch(line)
    if found is None:
        raise line_error(number, _NOT_EDITABLE)
    try:
        at = parse_rfc3339(found[1])
    except ValueError:
        raise line_error(number, _NOT_EDITABLE) from None
    values: dict[str, str] = {}
    parts = split_unescaped(found[2], "|") if found[2] is not None else []
    for index, part in enumerate(parts):
        text = part[1:] if index else part
        text = text[:-1] if index < len(parts) - 1 else text
        label, colon, value = text.partition(": ")
        if not colon or label not in _LABELS or label in values:
            raise line_error(number, _NOT_EDITABLE)
        values[label] = value
    return LogEntry(
        at,
        unescape_line(values.get("Progress", "")),
        unescape_line(values.get("Notes", "")),
        _parse_blockers(values.get("Blockers")),
        unescape_line(values.get("By", "")),
    )


def _parse_blockers(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    first, *others = split_unescaped(text, ";")
    return tuple(map(unescape_line, (first, *(other[1:] for other in others))))
