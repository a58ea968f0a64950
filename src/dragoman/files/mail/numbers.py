"""The number of a letter in its thread, however long the thread is.

Beside the letters lies a list of their positions in the ledger, each on a line of the same length:
the n-th line is the n-th letter's. So a letter is found by halving, and the next one is added at
the end. The ledger decides: a list that does not go on as the ledger does is written anew.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.engine.ports import ListQuery, Store
from dragoman.files.disk import Disk
from dragoman.files.layout import numbers_path, thread_folder_path
from dragoman.files.putting import force_folder, write_if_changed

_PAGE: Final = 1_000
_DIGITS: Final = 16
_LINE_BYTES: Final = _DIGITS + 1
_LIST_PREFIX: Final = "thread:"


def read_threads(store: Store) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Every thread with position and stream of each of its letters, in order."""
    thread, letters = "", list[tuple[int, str]]()
    for name, position, stream in _read_places(store, (_LIST_PREFIX, 0)):
        if name != thread and letters:
            yield thread.removeprefix(_LIST_PREFIX), letters
            letters = []
        thread = name
        letters.append((position, stream))
    if letters:
        yield thread.removeprefix(_LIST_PREFIX), letters


def format_numbers(positions: Iterable[int]) -> bytes:
    """Format the list of these positions."""
    return b"".join(_format_line(position) for position in positions)


class LetterNumbers:
    """Finds and stores the numbers of letters."""

    def __init__(self, store: Store, disk: Disk) -> None:
        self._store = store
        self._disk = disk

    def number_of(self, thread: str, position: int) -> int:
        """Number of the letter at a position, counted from 1."""
        path = numbers_path(thread)
        found = self._disk.stat(path)
        count = 0 if found is None else found.size // _LINE_BYTES
        at = self._bisect(path, count, position)
        if at < count and self._position_at(path, at) == position:
            return at + 1
        if at == count and self._follows_last(thread, self._position_at(path, count - 1), position):
            force_folder(self._disk, thread_folder_path(thread))
            self._disk.append(path, count * _LINE_BYTES, _format_line(position))
            return count + 1
        return self._rewrite(thread, position)

    def _bisect(self, path: str, count: int, position: int) -> int:
        """Number of lines of earlier letters."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self._position_at(path, middle) < position:
                low = middle + 1
            else:
                high = middle
        return low

    def _position_at(self, path: str, index: int) -> int:
        """Position on a line; 0 before the first one, and for a line that is not valid."""
        line = self._disk.read_at(path, index * _LINE_BYTES, _LINE_BYTES) if index >= 0 else b""
        digits = line[:_DIGITS]
        return int(digits) if digits.isdigit() and line[_DIGITS:] == b"\n" else 0

    def _follows_last(self, thread: str, last: int, position: int) -> bool:
        """True when the letter at this position follows the last known one."""
        before = self._store.list_page(ListQuery(_LIST_PREFIX + thread, before=position, limit=1))
        return (before[0].position if before else 0) == last

    def _rewrite(self, thread: str, position: int) -> int:
        name = _LIST_PREFIX + thread
        positions = [at for found, at, _ in _read_places(self._store, (name, 0)) if found == name]
        write_if_changed(self._disk, numbers_path(thread), format_numbers(positions))
        return positions.index(position) + 1


def _read_places(store: Store, after: tuple[str, int]) -> Iterator[tuple[str, int, str]]:
    """Read the lists of threads, from a place on."""
    while page := store.list_items(after, _PAGE):
        for place in page:
            if not place[0].startswith(_LIST_PREFIX):
                return
            yield place
        after = page[-1][:2]


def _format_line(position: int) -> bytes:
    return b"%016d\n" % position
