"""Disk with limited space for the database and its WAL: what does not fit is refused."""

import apsw

from tests.faults.recorder import Operation, Recorder
from tests.faults.simulated_disk import Files


class Quota:
    """Counts the bytes of every file; full when there would be more than the limit."""

    def __init__(self, disk: Recorder, files: Files, free_bytes: int) -> None:
        """`files`: files at the start; `free_bytes`: space beside them."""
        self._initial_sizes = {name: len(content) for name, content in files.items()}
        self.limit = free_bytes + sum(self._initial_sizes.values())
        self.used = 0
        self._names: dict[str, int] = {}
        self._sizes: dict[int, int] = {}
        self._change = {
            "create": self._make,
            "open": self._make,
            "delete": self._delete,
            "write": self._write,
            "truncate": self._truncate,
        }
        disk.before = self

    def __call__(self, operation: Operation) -> None:
        """Allow an operation, or raise."""
        verb, *arguments = operation
        if verb in self._change:
            self._change[verb](*arguments)

    def _make(self, number: int, name: str) -> None:
        self._names[name] = number
        self._grow(number, self._initial_sizes.pop(name, 0))

    def _delete(self, name: str) -> None:
        self._grow(self._names.pop(name), 0)

    def _write(self, number: int, offset: int, data: bytes) -> None:
        self._grow(number, max(self._sizes[number], offset + len(data)))

    def _truncate(self, number: int, size: int) -> None:
        self._grow(number, size)

    def _grow(self, number: int, size: int) -> None:
        grown = size - self._sizes.get(number, 0)
        if grown > 0 and self.used + grown > self.limit:
            raise apsw.FullError
        self._sizes[number] = size
        self.used += grown
