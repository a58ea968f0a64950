"""Files of lines that follow the ledger: every line of an entry once, whatever happens.

How far a file has come is read from the file itself: its lines are numbered, and the numbers rise
with the ledger. That it still is as it was left is seen by its stamp; one that is not may lack
lines that were written, so it is completed from the ledger before anything is added. So is one that
is gone, or in whose place something else stands, where the ledger can say that it was there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core.errors import LedgerError
from dragoman.core.moments import parse_rfc3339
from dragoman.files.disk import Disk, Tail
from dragoman.files.guarding import Warn, concerns_all
from dragoman.files.layout import has_stamp, staged, stamp
from dragoman.files.putting import make_way, set_aside
from dragoman.ledger.entry import Entry

LINES_PER_ENTRY: Final = 10
"""Lines of an entry are numbered from ten times its position on, so that numbers always rise."""
_MOST_BYTES: Final = 1 << 40
_MOST_NUMBER: Final = 1 << 63

Written = tuple[str, list[bytes]]
"""Path of a file, and the lines that an entry adds to it."""

Pages = Callable[[int], Iterable[list[Entry]]]
"""Reads the entries after a position, as far as the files should show them."""


def number_under(key: str) -> Callable[[bytes], int]:
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


_dated: Final = msgspec.json.Decoder(_Dated)


class Files(Struct, frozen=True):
    """Finds the files of a log."""

    found: Callable[[], Sequence[str]]
    growing: Callable[[], Sequence[str]]
    """Files that still grow; also missing ones that are known to have existed."""
    begins: Callable[[str], int | None] = lambda _: None
    """Position no later than the first entry of a file; None when it is not known to have one, so
    that a missing file is new."""


class LineLog:
    """Appends the lines of entries to the files where they belong."""

    def __init__(
        self,
        disk: Disk,
        render: Callable[[Entry], Written],
        number: Callable[[bytes], int],
        files: Files,
        warn: Warn,
    ) -> None:
        """`number` returns the number of a line, -1 for a line that was not written here."""
        self._disk = disk
        self._render = render
        self._number = number
        self._files = files
        self._warn = warn

    def add(self, entries: Iterable[Entry], earlier: Pages) -> None:
        """Append missing lines of these entries, which follow one another and `earlier`."""
        for path, lines in self.by_path(entries).items():
            if not self._is_as_left(path):
                self._complete([path], earlier)
            self._add(path, lines)

    def complete(self, pages: Pages) -> None:
        """Restore missing lines of the files that grow."""
        self._complete(self.changed(), pages)

    def changed(self) -> Sequence[str]:
        """Growing files that are not as they were left."""
        return [path for path in self._files.growing() if not self._is_as_left(path)]

    def rewrite(self, pages: Iterable[list[Entry]]) -> None:
        """Rewrite all files from all entries; each replaces the old one when it is complete."""
        ends: dict[str, int] = {}
        for page in pages:
            for path, lines in self.by_path(page).items():
                data = b"".join(line + b"\n" for line in lines)
                keep = ends.get(path, 0)
                ends[path] = keep + len(data)
                mark = stamp(path, ends[path], _moment(lines[-1]))
                self._append(staged(path), keep, data, mark)
        for path in ends:
            self._make_way(path)
            self._disk.replace(staged(path), path)
        for path in [*self._files.found()]:
            if path not in ends and self._is_of_a_ledger(path):
                self._disk.remove(path)

    def by_path(self, entries: Iterable[Entry]) -> Mapping[str, list[bytes]]:
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

    def found(self) -> Iterator[str]:
        """Existing files."""
        yield from self._files.found()

    def _is_as_left(self, path: str) -> bool:
        look = self._disk.look(path)
        if look is None or look.kind != "file":
            return self._files.begins(path) is None
        return has_stamp(path, look.size, look.mtime_ns)

    def _complete(self, paths: Sequence[str], pages: Pages) -> None:
        """Append the lines that these files lack after their last one, however many those are."""
        if not paths:
            return
        for page in pages(min(map(self._reached, paths))):
            for path, lines in self.by_path(page).items():
                if path in paths:
                    self._add(path, lines)
        for path in paths:
            self._mark(path)

    def _reached(self, path: str) -> int:
        """Position up to which a file is known to be complete."""
        tail = self._disk.tail(path)
        if not tail.end:
            return (self._files.begins(path) or 1) - 1
        return max(self._last(path, tail) // LINES_PER_ENTRY - 1, 0)

    def _add(self, path: str, lines: list[bytes]) -> None:
        tail = self._disk.tail(path)
        last = self._last(path, tail, self._number(lines[-1]))
        fresh = [line for line in lines if self._number(line) > last]
        if fresh:
            data = b"".join(line + b"\n" for line in fresh)
            mark = stamp(path, tail.end + len(data), _moment(fresh[-1]))
            self._append(path, tail.end, data, mark)

    def _mark(self, path: str) -> None:
        """Stamp a complete file, so that it is not checked again before it changes."""
        look = self._disk.look(path)
        if look is not None:
            mark = stamp(path, look.size, _moment(self._disk.tail(path).line))
            self._append(path, look.size, b"", mark)

    def _append(self, path: str, keep: int, data: bytes, mtime_ns: int) -> None:
        try:
            self._disk.append(path, keep, data, mtime_ns)
        except OSError as error:
            if concerns_all(error):
                raise
            self._make_way(path)
            self._disk.append(path, keep, data, mtime_ns)

    def _make_way(self, path: str) -> None:
        """Move aside anything but a file at this path, and anything but a folder at its parent."""
        make_way(self._disk, path.rpartition("/")[0])
        found = self._disk.look(path)
        if found is not None and found.kind != "file":
            aside = set_aside(self._disk, path, f"{path}-found")
            self._warn(
                f"{path} was no file: it is kept as {aside}, and a file is made in its place"
            )

    def _is_of_a_ledger(self, path: str) -> bool:
        """True for a file that was written as one of these, even for another ledger."""
        return self._number(self._disk.tail(path).line) >= 0

    def _last(self, path: str, tail: Tail, most: int = _MOST_NUMBER) -> int:
        """Last number in a file. A line that somebody has added has none, and a number beyond
        `limit`, which was never written, does not count."""
        last = self._number(tail.line)
        if not tail.end or 0 <= last <= most:
            return last
        lines = (self._disk.read(path, _MOST_BYTES) or b"").splitlines()
        return max((n for n in map(self._number, lines) if n <= most), default=-1)


def _moment(line: bytes) -> int:
    """Time of a line, for its stamp; 0 when it has none."""
    try:
        return parse_rfc3339(_dated.decode(line).timestamp)
    except (msgspec.MsgspecError, ValueError):
        return 0
