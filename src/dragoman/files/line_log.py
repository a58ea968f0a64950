"""Append-only line files that follow the ledger (JSONL): every line of an entry exactly once.

How far a file has come is read from the file itself: its lines are numbered, and the numbers
rise with the ledger. Its modification stamp shows whether it is as it was left; if not, lines
may be missing, so it is backfilled from the ledger before anything is appended. So is one that
is gone, or in whose place something else stands, where the ledger can say that it was there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.timestamps import parse_rfc3339
from dragoman.files.atomic_write import force_folder, move_aside
from dragoman.files.errors import Warn, is_systemic
from dragoman.files.layout import has_mtime_stamp, mtime_stamp, staged_path
from dragoman.ledger.entry import Entry
from dragoman.system.safe_fs import SafeDisk, Tail

LINES_PER_ENTRY: Final = 10
"""Lines of an entry are numbered from ten times its position on, so that numbers always rise."""
_MAX_BYTES: Final = 1 << 40
_MAX_NUMBER: Final = 1 << 63

RenderedLines = tuple[str, list[bytes]]
"""Path of a file, and the lines that an entry adds to it."""

EntryPages = Callable[[int], Iterable[list[Entry]]]
"""Reads the entries after a position, as far as the files should show them."""


def number_decoder(key: str) -> Callable[[bytes], int]:
    """Make a function that reads a line's number under this key; -1 when it has none."""
    shape = msgspec.defstruct("Numbered", [("number", int, msgspec.field(name=key))])
    decoder = msgspec.json.Decoder[Any](shape)

    def number_of(line: bytes) -> int:
        try:
            return decoder.decode(line).number
        except msgspec.MsgspecError:
            return -1

    return number_of


class _Dated(Struct):
    timestamp: str


_dated_decoder: Final = msgspec.json.Decoder(_Dated)


class LogFiles(Struct, frozen=True):
    """Finds the files of a log."""

    list_existing: Callable[[], Sequence[str]]
    list_growing: Callable[[], Sequence[str]]
    """Files that still grow; also missing ones that are known to have existed."""
    first_position: Callable[[str], int | None] = lambda _: None
    """Position no later than the first entry of a file; None when it is not known to have one, so
    that a missing file is new."""


class LineLog:
    """Appends the lines of entries to the files where they belong."""

    def __init__(
        self,
        disk: SafeDisk,
        render: Callable[[Entry], RenderedLines],
        number: Callable[[bytes], int],
        files: LogFiles,
        warn: Warn,
    ) -> None:
        """`number` returns the number of a line, -1 for a line that was not written here."""
        self._disk = disk
        self._render = render
        self._number = number
        self._files = files
        self._warn = warn

    def append_entries(self, entries: Iterable[Entry], earlier: EntryPages) -> None:
        """Append missing lines of these entries, which follow one another and `earlier`."""
        for path, lines in self.render_by_path(entries).items():
            if not self._is_unmodified(path):
                self._backfill([path], earlier)
            self._append_new(path, lines)

    def backfill(self, pages: EntryPages) -> None:
        """Restore missing lines of the files that grow."""
        self._backfill(self.changed(), pages)

    def changed(self) -> Sequence[str]:
        """Growing files that are not as they were left."""
        return [path for path in self._files.list_growing() if not self._is_unmodified(path)]

    def rewrite(self, pages: Iterable[list[Entry]]) -> None:
        """Rewrite all files from all entries; each replaces the old one when it is complete."""
        ends: dict[str, int] = {}
        for page in pages:
            for path, lines in self.render_by_path(page).items():
                data = b"".join(line + b"\n" for line in lines)
                offset = ends.get(path, 0)
                ends[path] = offset + len(data)
                mtime_ns = mtime_stamp(path, ends[path], _line_time(lines[-1]))
                self._append(staged_path(path), offset, data, mtime_ns)
        for path in ends:
            self._clear_path(path)
            self._disk.replace(staged_path(path), path)

    def render_by_path(self, entries: Iterable[Entry]) -> Mapping[str, list[bytes]]:
        """File -> the lines of these entries."""
        paths: dict[str, list[bytes]] = {}
        for entry in entries:
            try:
                path, lines = self._render(entry)
            except LedgerError as error:
                self._warn(
                    f"entry {entry.position} has no line in the files, because it cannot be read: "
                    f"{error.detail}; run `dragoman verify`"
                )
                continue
            if lines:
                paths.setdefault(path, []).extend(lines)
        return paths

    def existing(self) -> Iterator[str]:
        """Existing files."""
        yield from self._files.list_existing()

    def _is_unmodified(self, path: str) -> bool:
        info = self._disk.stat(path)
        if info is None or info.kind != "file":
            return self._files.first_position(path) is None
        return has_mtime_stamp(path, info.size, info.mtime_ns)

    def _backfill(self, paths: Sequence[str], pages: EntryPages) -> None:
        """Append the lines that these files lack after their last one, however many those are."""
        if not paths:
            return
        for page in pages(min(map(self._completed_position, paths))):
            for path, lines in self.render_by_path(page).items():
                if path in paths:
                    self._append_new(path, lines)
        for path in paths:
            self._restamp(path)

    def _completed_position(self, path: str) -> int:
        """Position up to which a file is known to be complete."""
        tail = self._disk.tail(path)
        if not tail.end:
            return (self._files.first_position(path) or 1) - 1
        return max(self._last_number(path, tail) // LINES_PER_ENTRY - 1, 0)

    def _append_new(self, path: str, lines: list[bytes]) -> None:
        tail = self._disk.tail(path)
        last = self._last_number(path, tail, self._number(lines[-1]))
        fresh = [line for line in lines if self._number(line) > last]
        if fresh:
            data = b"".join(line + b"\n" for line in fresh)
            mtime_ns = mtime_stamp(path, tail.end + len(data), _line_time(fresh[-1]))
            self._append(path, tail.end, data, mtime_ns)

    def _restamp(self, path: str) -> None:
        """Stamp a complete file, so that it is not checked again before it changes."""
        info = self._disk.stat(path)
        if info is not None:
            mtime_ns = mtime_stamp(path, info.size, _line_time(self._disk.tail(path).line))
            self._append(path, info.size, b"", mtime_ns)

    def _append(self, path: str, offset: int, data: bytes, mtime_ns: int) -> None:
        try:
            self._disk.append(path, offset, data, mtime_ns)
        except OSError as error:
            if is_systemic(error):
                raise
            self._clear_path(path)
            self._disk.append(path, offset, data, mtime_ns)

    def _clear_path(self, path: str) -> None:
        """Move aside anything but a file at this path, and anything but a folder at its parent."""
        force_folder(self._disk, path.rpartition("/")[0])
        found = self._disk.stat(path)
        if found is not None and found.kind != "file":
            moved_to = move_aside(self._disk, path, f"{path}-found")
            self._warn(
                f"{path} was no file: it is kept as {moved_to}, and a file is made in its place"
            )

    def _last_number(self, path: str, tail: Tail, limit: int = _MAX_NUMBER) -> int:
        """Last number in a file. A line that somebody has added has none, and a number beyond
        `limit`, which was never written, does not count."""
        last = self._number(tail.line)
        if not tail.end or 0 <= last <= limit:
            return last
        lines = (self._disk.read(path, _MAX_BYTES) or b"").splitlines()
        return max((n for n in map(self._number, lines) if n <= limit), default=-1)


def _line_time(line: bytes) -> int:
    """Time of a line, for its stamp; 0 when it has none."""
    try:
        return parse_rfc3339(_dated_decoder.decode(line).timestamp)
    except (msgspec.MsgspecError, ValueError):
        return 0
