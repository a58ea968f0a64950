"""Files of lines that follow the ledger: every line of an entry once, whatever happens.

How far a file has come is read from the file itself: its lines are numbered, and the numbers rise
with the ledger.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from dragoman.core.errors import LedgerError
from dragoman.files.disk import Disk, Tail
from dragoman.files.guarding import Warn
from dragoman.files.layout import staged
from dragoman.files.putting import make_way
from dragoman.ledger.entry import Entry

_MOST_BYTES: Final = 1 << 40

Written = tuple[str, list[bytes]]
"""The path of a file, and the lines that an entry adds to it."""


class LineLog:
    """Appends the lines of entries to the files where they belong."""

    def __init__(
        self,
        disk: Disk,
        render: Callable[[Entry], Written],
        number: Callable[[bytes], int],
        found: Callable[[], Iterable[str]],
        warn: Warn,
    ) -> None:
        """`number` is of a line of ours, -1 of any other; `found` are the files that there are."""
        self._disk = disk
        self._render = render
        self._number = number
        self._found = found
        self._warn = warn

    def add(self, entries: Iterable[Entry]) -> None:
        """Add what is missing of these entries, which follow on one another."""
        for path, lines in self.by_path(entries).items():
            tail = self._disk.tail(path)
            last = self._last(path, tail, self._number(lines[-1]))
            fresh = [line for line in lines if self._number(line) > last]
            if fresh:
                self._append(path, tail.end, b"".join(line + b"\n" for line in fresh))

    def rewrite(self, pages: Iterable[list[Entry]]) -> None:
        """All files anew from all entries; each replaces the old one when it is complete."""
        ends: dict[str, int] = {}
        for page in pages:
            for path, lines in self.by_path(page).items():
                data = b"".join(line + b"\n" for line in lines)
                keep = ends.get(path, 0)
                self._append(staged(path), keep, data)
                ends[path] = keep + len(data)
        for path in ends:
            self._disk.replace(staged(path), path)
        for path in [*self._found()]:
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
        """The files that there are."""
        yield from self._found()

    def _append(self, path: str, keep: int, data: bytes) -> None:
        try:
            self._disk.append(path, keep, data)
        except (FileNotFoundError, NotADirectoryError):
            make_way(self._disk, path.rpartition("/")[0])
            self._disk.append(path, keep, data)

    def _is_of_a_ledger(self, path: str) -> bool:
        """Whether a file was written as one of these, be it for another ledger."""
        return self._number(self._disk.tail(path).line) >= 0

    def _last(self, path: str, tail: Tail, most: int) -> int:
        """The last of our numbers in a file: a line that somebody has added there has none, nor
        can a number be ours that is beyond the `most` that was ever to be written."""
        last = self._number(tail.line)
        if not tail.end or 0 <= last <= most:
            return last
        lines = (self._disk.read(path, _MOST_BYTES) or b"").splitlines()
        return max((n for n in map(self._number, lines) if n <= most), default=-1)
