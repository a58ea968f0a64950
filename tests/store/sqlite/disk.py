"""Disk that fails on command: a VFS beneath an unchanged SQLite."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, cast

import apsw

Happening = tuple[str, str]
"""Operation (read, write, sync, reserve) and file (main, wal)."""

_KINDS = {apsw.SQLITE_OPEN_MAIN_DB: "main", apsw.SQLITE_OPEN_WAL: "wal"}


def _no_failure(_: Happening) -> None:
    """Let every operation succeed."""


class Disk(apsw.VFS):
    """VFS of every connection opened while it is registered."""

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        self.happened: list[Happening] = []
        self.before: Callable[[Happening], None] = _no_failure
        """Called before each operation; it may raise."""
        super().__init__("failing-disk", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  apsw's name
        """Open the database and its WAL on this disk; other files use SQLite's own."""
        kind = next((kind for flag, kind in _KINDS.items() if flags[0] & flag), "")
        return _File(self, kind, name, flags) if kind else super().xOpen(name, flags)

    def report(self, happening: Happening) -> None:
        """Fail, or record the operation."""
        self.before(happening)
        self.happened.append(happening)

    def recover(self) -> None:
        """Stop failing."""
        self.before = _no_failure

    def fail_at(self, count: int, operation: str, error: type[apsw.Error]) -> None:
        """Fail every operation of this kind from the count-th on."""
        seen = 0

        def fail(happening: Happening) -> None:
            nonlocal seen
            seen += happening[0] == operation
            if happening[0] == operation and seen >= count:
                raise error

        self.before = fail


class _File(apsw.VFSFile):
    def __init__(self, disk: Disk, kind: str, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._kind = kind
        super().__init__(disk.base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  apsw's name
        self._disk.report(("read", self._kind))
        return super().xRead(amount, offset)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  apsw's name
        self._disk.report(("write", self._kind))
        cast(Any, super()).xWrite(data, offset)

    def xLock(self, level: int) -> None:  # noqa: N802  apsw's name
        if level == apsw.SQLITE_LOCK_RESERVED:
            self._disk.report(("reserve", self._kind))
        super().xLock(level)

    def xSync(self, flags: int) -> None:  # noqa: N802  apsw's name
        self._disk.report(("sync", self._kind))
        super().xSync(flags)


@contextmanager
def failing_disk() -> Generator[Disk]:
    """Disk of all connections that are opened and closed within."""
    disk = Disk()
    try:
        yield disk
    finally:
        disk.unregister()
