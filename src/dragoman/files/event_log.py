"""The event lines of each day, `events/YYYY-MM-DD.jsonl`."""

import re
from collections.abc import Callable
from typing import Final

from dragoman.core.moments import to_rfc3339
from dragoman.files.disk import Disk
from dragoman.files.guarding import Warn
from dragoman.files.layout import EVENTS, events_path
from dragoman.files.line_log import Files, LineLog, Written, number_under
from dragoman.ledger.entry import Entry, read_line

RenderLines = Callable[[Entry, Callable[[str], str]], list[bytes]]
"""The lines of an entry, each with an `eventId` that rises; it is told how AOF ids are found."""


_id: Final = number_under("eventId")
_OF_A_DAY: Final = events_path(r"\d{4}-\d\d-\d\d")


def event_log(
    disk: Disk, render: RenderLines, aof_id_of: Callable[[str], str], warn: Warn
) -> LineLog:
    """The log of all events."""

    def rendered(entry: Entry) -> Written:
        lines = render(entry, aof_id_of)
        return events_path(to_rfc3339(read_line(entry.line).at)[:10]), lines

    def found() -> list[str]:
        names = (look.name for look in disk.list(EVENTS))
        return [f"{EVENTS}/{name}" for name in names if name.endswith(".jsonl")]

    def begins(path: str) -> int | None:
        # Clocks go back: which entries are of the day in whose place something else stands, only
        # the whole ledger says. Where nothing stands, the day is new.
        is_taken = disk.look(path) is not None and re.fullmatch(_OF_A_DAY, path)
        return 1 if is_taken else None

    # Only the last day goes on: of the others, `verify` tells what was done to them.
    return LineLog(disk, rendered, _id, Files(found, lambda: found()[-1:], begins), warn)
