"""Recorder of SQLite's disk operations: a VFS beneath the real store."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import apsw

Operation = tuple[Any, ...]
"""Verb of `SimulatedDisk`, and its arguments."""

_FOLDER_SYNCED = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
"""Files whose opener also syncs their folder, after the first sync of the file."""
_RECORDED = apsw.SQLITE_OPEN_MAIN_DB | _FOLDER_SYNCED

Before = Callable[[Operation], None]


def _never_fail(_: Operation) -> None:
    """Allow everything."""


class Recorder(apsw.VFS):
    """VFS of every connection opened while it is registered. It syncs nothing for real."""

    def __init__(self) -> None:
        self.base = apsw.vfs_names()[0]
        self.operations: list[Operation] = []
        self.before: Before = _never_fail
        """Called before each operation; it may raise."""
        self._count = 0
        self._numbers: dict[str, int] = {}
        super().__init__("recorder", self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:  # noqa: N802  apsw's name
        """Open a file; the database, its WAL and its journal are recorded, other files are not."""
        if not flags[0] & _RECORDED:
            return super().xOpen(name, flags)
        path = name if isinstance(name, str) else name.filename()
        found = Path(path)
        # A store creates its file, empty and owner-only, right before SQLite opens it.
        existed = found.exists() and (path in self._numbers or found.stat().st_size > 0)
        # Only after it is open: SQLite also asks for files that do not exist.
        file = _File(self, name, flags)
        file.number = self._number(path, existed=existed)
        file.is_folder_sync_due = bool(flags[0] & _FOLDER_SYNCED)
        return file

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802  apsw's name
        self.record("delete", Path(filename).name)
        super().xDelete(filename, False)
        if syncdir:
            self.record("sync_folder")
        self._numbers.pop(filename, None)

    def record(self, *operation: Any) -> None:
        """Record an operation, unless it fails."""
        self.before(operation)
        self.operations.append(operation)

    @contextmanager
    def without_faults(self) -> Generator[None]:
        """Let nothing fail for a while."""
        before, self.before = self.before, _never_fail
        yield
        self.before = before

    def _number(self, path: str, *, existed: bool) -> int:
        """Number of the file that has this name now."""
        if path not in self._numbers or not existed:
            self._count += 1
            self._numbers[path] = self._count
            self.record("open" if existed else "create", self._count, Path(path).name)
        return self._numbers[path]


class _File(apsw.VFSFile):
    number = 0
    is_folder_sync_due = False

    def __init__(self, recorded_disk: Recorder, name: Any, flags: list[int]) -> None:
        self._recorder = recorded_disk
        super().__init__(recorded_disk.base, name, flags)

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  apsw's name
        self._recorder.record("write", self.number, offset, bytes(data))
        cast(Any, super()).xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  apsw's name
        self._recorder.record("truncate", self.number, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802  apsw's name
        self._recorder.record("sync", self.number)
        if self.is_folder_sync_due:
            self.is_folder_sync_due = False
            self._recorder.record("sync_folder")


@contextmanager
def recorded_disk() -> Generator[Recorder]:
    """Register a recorder for all connections that are opened and closed within."""
    recorder = Recorder()
    try:
        yield recorder
    finally:
        recorder.unregister()
