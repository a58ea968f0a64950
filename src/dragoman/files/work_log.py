"""The work log of a task file: one line for each word from whoever works on the task (S-AOF-6)."""

import re
from typing import Final

from msgspec import Struct

from dragoman.core.moments import parse_rfc3339, to_rfc3339
from dragoman.files.escapes import from_one_line, on_one_line, split_unescaped
from dragoman.files.problems import at_line

HEADING: Final = "## Work Log"

_ENTRY: Final = re.compile(r"- (\S+)(?: (.*))?")
_BETWEEN: Final = "; "


class LogEntry(Struct, frozen=True):
    """One line of the log."""

    at: int
    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()


def write_entry(entry: LogEntry) -> str:
    """`- <timestamp> Progress: ... | Notes: ... | Blockers: ...`, without what is not there."""
    parts = list[str]()
    if entry.progress:
        parts.append(f"Progress: {on_one_line(entry.progress)}")
    if entry.notes:
        parts.append(f"Notes: {on_one_line(entry.notes)}")
    if entry.blockers:
        blockers = _BETWEEN.join(on_one_line(blocker, ";") for blocker in entry.blockers)
        parts.append(f"Blockers: {blockers}")
    return " ".join(("-", to_rfc3339(entry.at), *filter(None, [" | ".join(parts)])))


def read_entry(line: str, number: int) -> LogEntry:
    """The entry of a line; `number` is the line's, for the one who has to mend it."""
    found = _ENTRY.fullmatch(line)
    if found is None:
        raise at_line(number, "a line of the work log is `- <timestamp> Notes: ...`")
    try:
        at = parse_rfc3339(found[1])
    except ValueError as error:
        raise at_line(number, str(error)) from None
    said: dict[str, str] = {}
    parts = split_unescaped(found[2], "|") if found[2] is not None else []
    for index, part in enumerate(parts):
        text = part[1:] if index else part
        text = text[:-1] if index < len(parts) - 1 else text
        label, colon, value = text.partition(": ")
        if not colon or label not in ("Progress", "Notes", "Blockers") or label in said:
            raise at_line(number, "a line of the work log says Progress:, Notes: and Blockers:")
        said[label] = value
    return LogEntry(
        at,
        from_one_line(said.get("Progress", "")),
        from_one_line(said.get("Notes", "")),
        _blockers(said.get("Blockers")),
    )


def _blockers(text: str | None) -> tuple[str, ...]:
    if text is None:
        return ()
    first, *others = split_unescaped(text, ";")
    return tuple(map(from_one_line, (first, *(other[1:] for other in others))))
