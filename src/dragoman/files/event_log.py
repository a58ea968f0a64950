"""The event lines of each day, `events/YYYY-MM-DD.jsonl`."""

import re
from collections.abc import Callable
from typing import Final

from dragoman.core.errors import LedgerError
from dragoman.core.moments import to_rfc3339
from dragoman.files.disk import Disk
from dragoman.files.guarding import Warn
from dragoman.files.layout import EVENTS, event_log_path
from dragoman.files.line_log import LineLog, LogFiles, RenderedLines, number_decoder
from dragoman.ledger.entry import Entry, read_line

RenderLines = Callable[[Entry, Callable[[str], str]], list[bytes]]
"""Renders an entry as lines, each with an `eventId` that rises; gets a function that finds AOF
ids."""


_event_id_of: Final = number_decoder("eventId")
_DAY_FILE: Final = event_log_path(r"\d{4}-\d\d-\d\d")


def open_event_log(
    disk: Disk,
    render: RenderLines,
    aof_id_of: Callable[[str], str],
    last_projected: Callable[[], Entry | None],
    warn: Warn,
) -> LineLog:
    """Open the log of all events; `last_projected` returns the newest entry that the files show."""

    def render_entry(entry: Entry) -> RenderedLines:
        lines = render(entry, aof_id_of)
        return event_log_path(to_rfc3339(read_line(entry.line).at)[:10]), lines

    def list_existing() -> list[str]:
        names = (look.name for look in disk.list(EVENTS))
        return [f"{EVENTS}/{name}" for name in names if name.endswith(".jsonl")]

    def newest_paths() -> list[str]:
        """File of the newest line."""
        try:
            written = [render_entry(entry)] if (entry := last_projected()) else []
        except LedgerError:
            return []
        return [path for path, lines in written if lines]

    def first_position(path: str) -> int | None:
        # Clocks go back: only the whole ledger can say which entries belong to a day whose file is
        # gone, or replaced by something else.
        if disk.stat(path) is None:
            return 1 if path in newest_paths() else None
        return 1 if re.fullmatch(_DAY_FILE, path) else None

    def list_growing() -> list[str]:
        # Only the last day grows: damage to the others is reported by `verify`.
        return sorted({*list_existing()[-1:], *newest_paths()})

    return LineLog(
        disk,
        render_entry,
        _event_id_of,
        LogFiles(list_existing, list_growing, first_position),
        warn,
    )
