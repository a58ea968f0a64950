"""Work log of a task file: one line per progress report, note or blocker (S-AOF-6)."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from dragoman.core.timestamps import to_rfc3339
from dragoman.files.markdown import escape_line

HEADING: Final = "## Work Log"

_SEPARATOR: Final = "; "
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
