"""The number of a letter in its thread, however long the thread is.

Beside the letters lies a list of their positions in the ledger, each on a line of the same length:
the n-th line is the n-th letter's. So a letter is found by halving, and the next one is added at
the end. The ledger decides: a list that does not go on as the ledger does is written anew.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.engine.ports import ListQuery, Store
from dragoman.files.disk import Disk
from dragoman.files.layout import numbers_path, thread_folder
from dragoman.files.putting import make_way, put

_PAGE: Final = 1_000
_DIGITS: Final = 16
_LINE: Final = _DIGITS + 1
_THREAD: Final = "thread:"


def threads(store: Store) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Every thread with position and stream of each of its letters, in order."""
    thread, letters = "", list[tuple[int, str]]()
    for name, position, stream in _places(store, (_THREAD, 0)):
        if name != thread and letters:
            yield thread.removeprefix(_THREAD), letters
            letters = []
        thread = name
        letters.append((position, stream))
    if letters:
        yield thread.removeprefix(_THREAD), letters


def write_numbers(positions: Iterable[int]) -> bytes:
    """Format the list of these positions."""
    return b"".join(_line(position) for position in positions)


class Numbers:
    """Finds and stores the numbers of letters."""

    def __init__(self, store: Store, disk: Disk) -> None:
        self._store = store
        self._disk = disk

    def of(self, thread: str, position: int) -> int:
        """Number of the letter at a position, counted from 1."""
        path = numbers_path(thread)
        found = self._disk.look(path)
        count = 0 if found is None else found.size // _LINE
        at = self._place(path, count, position)
        if at < count and self._at(path, at) == position:
            return at + 1
        if at == count and self._goes_on(thread, self._at(path, count - 1), position):
            make_way(self._disk, thread_folder(thread))
            self._disk.append(path, count * _LINE, _line(position))
            return count + 1
        return self._anew(thread, position)

    def _place(self, path: str, count: int, position: int) -> int:
        """Number of lines of earlier letters."""
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            if self._at(path, middle) < position:
                low = middle + 1
            else:
                high = middle
        return low

    def _at(self, path: str, index: int) -> int:
        """Position on a line; 0 before the first one, and for a line that is not valid."""
        line = self._disk.piece(path, index * _LINE, _LINE) if index >= 0 else b""
        digits = line[:_DIGITS]
        return int(digits) if digits.isdigit() and line[_DIGITS:] == b"\n" else 0

    def _goes_on(self, thread: str, last: int, position: int) -> bool:
        """True when the letter at this position follows the last known one."""
        before = self._store.listed(ListQuery(_THREAD + thread, before=position, limit=1))
        return (before[0].position if before else 0) == last

    def _anew(self, thread: str, position: int) -> int:
        name = _THREAD + thread
        positions = [at for found, at, _ in _places(self._store, (name, 0)) if found == name]
        put(self._disk, numbers_path(thread), write_numbers(positions))
        return positions.index(position) + 1


def _places(store: Store, after: tuple[str, int]) -> Iterator[tuple[str, int, str]]:
    """Read the lists of threads, from a place on."""
    while page := store.places(after, _PAGE):
        for place in page:
            if not place[0].startswith(_THREAD):
                return
            yield place
        after = page[-1][:2]


def _line(position: int) -> bytes:
    return b"%016d\n" % position
