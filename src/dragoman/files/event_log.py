"""The event lines of each day, `events/YYYY-MM-DD.jsonl`."""

import re
from collections.abc import Callable
from typing import Final

from dragoman.core.errors import LedgerError
from dragoman.core.moments import to_rfc3339
from dragoman.files.disk import Disk
from dragoman.files.guarding import Warn
from dragoman.files.layout import EVENTS, events_path
from dragoman.files.line_log import Files, LineLog, Written, number_under
from dragoman.ledger.entry import Entry, read_line

RenderLines = Callable[[Entry, Callable[[str], str]], list[bytes]]
"""Renders an entry as lines, each with an `eventId` that rises; gets a function that finds AOF
ids."""


_id: Final = number_under("eventId")
_OF_A_DAY: Final = events_path(r"\d{4}-\d\d-\d\d")


def event_log(
    disk: Disk,
    render: RenderLines,
    aof_id_of: Callable[[str], str],
    shown: Callable[[], Entry | None],
    warn: Warn,
) -> LineLog:
    """Open the log of all events; `last_projected` returns the newest entry that the files show."""

    def rendered(entry: Entry) -> Written:
        lines = render(entry, aof_id_of)
        return events_path(to_rfc3339(read_line(entry.line).at)[:10]), lines

    def found() -> list[str]:
        names = (look.name for look in disk.list(EVENTS))
        return [f"{EVENTS}/{name}" for name in names if name.endswith(".jsonl")]

    def last() -> list[str]:
        """File of the newest line."""
        try:
            written = [rendered(entry)] if (entry := shown()) else []
        except LedgerError:
            return []
        return [path for path, lines in written if lines]

    def begins(path: str) -> int | None:
        # Clocks go back: only the whole ledger can say which entries belong to a day whose file is
        # gone, or replaced by something else.
        if disk.look(path) is None:
            return 1 if path in last() else None
        return 1 if re.fullmatch(_OF_A_DAY, path) else None

    def growing() -> list[str]:
        # Only the last day grows: damage to the others is reported by `verify`.
        return sorted({*found()[-1:], *last()})

    return LineLog(disk, rendered, _id, Files(found, growing, begins), warn)
