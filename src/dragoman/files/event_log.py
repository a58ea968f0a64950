"""The event lines of each day, `events/YYYY-MM-DD.jsonl`: every line once, whatever happens."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.moments import to_rfc3339
from dragoman.files.disk import Disk, Tail
from dragoman.files.layout import EVENTS, events_path, staged
from dragoman.ledger.entry import Entry, read_line

RenderLines = Callable[[Entry, Callable[[str], str]], list[bytes]]
"""The lines of an entry, each with an `eventId` that rises; it is told how AOF ids are found."""

_MOST_BYTES: Final = 1 << 40


class _Numbered(Struct, rename="camel"):
    event_id: int


_number: Final = msgspec.json.Decoder(_Numbered)


class EventLog:
    """Appends the lines of entries; how far a file has come is read from the file itself."""

    def __init__(
        self,
        disk: Disk,
        render: RenderLines,
        aof_id_of: Callable[[str], str],
        warn: Callable[[str], None],
    ) -> None:
        self._disk = disk
        self._render = render
        self._aof_id_of = aof_id_of
        self._warn = warn

    def add(self, entries: Iterable[Entry]) -> None:
        """Add what is missing of these entries, which follow on one another."""
        for day, lines in self.by_day(entries).items():
            path = events_path(day)
            tail = self._disk.tail(path)
            last = self._last_id(path, tail, _id(lines[-1]))
            fresh = [line for line in lines if _id(line) > last]
            if fresh:
                self._disk.append(path, tail.end, b"".join(line + b"\n" for line in fresh))

    def rewrite(self, pages: Iterable[list[Entry]]) -> None:
        """All files anew from all entries; each replaces the old one when it is complete."""
        ends: dict[str, int] = {}
        for page in pages:
            for day, lines in self.by_day(page).items():
                data = b"".join(line + b"\n" for line in lines)
                keep = ends.get(day, 0)
                self._disk.append(staged(events_path(day)), keep, data)
                ends[day] = keep + len(data)
        for day in ends:
            self._disk.replace(staged(events_path(day)), events_path(day))
        for day in [*self.days()]:
            if day not in ends and self._is_of_a_ledger(events_path(day)):
                self._disk.remove(events_path(day))

    def _is_of_a_ledger(self, path: str) -> bool:
        """Whether a file was written as one of these, be it for another ledger."""
        return _id_or_none(self._disk.tail(path).line) >= 0

    def by_day(self, entries: Iterable[Entry]) -> Mapping[str, list[bytes]]:
        """Day (UTC) -> the lines of these entries."""
        days: dict[str, list[bytes]] = {}
        for entry in entries:
            try:
                lines = self._render(entry, self._aof_id_of)
                day = to_rfc3339(read_line(entry.line).at)[:10]
            except LedgerError as error:
                self._warn(
                    f"entry {entry.position} has no line in events/, because it cannot be read: "
                    f"{error.detail}; run `dragoman verify`"
                )
                continue
            if lines:
                days.setdefault(day, []).extend(lines)
        return days

    def days(self) -> Iterator[str]:
        """The days that have a file."""
        for found in self._disk.list(EVENTS):
            if found.name.endswith(".jsonl"):
                yield found.name.removesuffix(".jsonl")

    def _last_id(self, path: str, tail: Tail, most: int) -> int:
        """The last of our ids in a file: of a line that somebody has added there is none, nor can
        an id be ours that is beyond the `most` that was ever to be written."""
        last = _id_or_none(tail.line)
        if not tail.end or 0 <= last <= most:
            return last
        lines = (self._disk.read(path, _MOST_BYTES) or b"").splitlines()
        return max((found for found in map(_id_or_none, lines) if found <= most), default=-1)


def _id(line: bytes) -> int:
    return _number.decode(line).event_id


def _id_or_none(line: bytes) -> int:
    try:
        return _id(line)
    except msgspec.MsgspecError:
        return -1
