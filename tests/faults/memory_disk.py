"""SQLite on files in memory: recovers them as it would on a disk, but faster."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, cast

import apsw

from tests.faults.simulated_disk import Files

_NAME = "memory-disk"


class MemoryDisk(apsw.VFS):
    """Folder in memory, for one connection at a time: there are no locks."""

    def __init__(self) -> None:
        self.files: dict[str, _File] = {}
        super().__init__(_NAME, apsw.vfs_names()[0])

    def pages(self, database: str, files: Files) -> bytes:
        """All pages of a database among these files, after SQLite has recovered it."""
        self.files = {name: _File(content) for name, content in files.items()}
        connection = cast(Any, apsw.Connection(database, vfs=_NAME))
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.pragma("locking_mode", "exclusive")
            return connection.serialize("main")
        finally:
            connection.close(True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802  apsw's name
        """Open a file, or make a new one."""
        path = "" if name is None else name if isinstance(name, str) else name.filename()
        return self.files.setdefault(PurePath(path).name, _File(b""))

    def xFullPathname(self, name: str) -> str:  # noqa: N802  apsw's name
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802  apsw's name
        return PurePath(pathname).name in self.files

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802  apsw's
        del self.files[PurePath(filename).name]


class _File:
    def __init__(self, content: bytes) -> None:
        self._content = content

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802  apsw's name
        return self._content[offset : offset + amount]

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802  apsw's name
        before = self._content[:offset].ljust(offset, b"\0")
        self._content = before + bytes(data) + self._content[offset + len(data) :]

    def xTruncate(self, newsize: int) -> None:  # noqa: N802  apsw's name
        self._content = self._content[:newsize]

    def xFileSize(self) -> int:  # noqa: N802  apsw's name
        return len(self._content)

    def xSync(self, flags: int) -> None:  # noqa: N802  apsw's name
        """Nothing to sync."""

    def xLock(self, level: int) -> None:  # noqa: N802  apsw's name
        """No other connection."""

    def xUnlock(self, level: int) -> None:  # noqa: N802  apsw's name
        """No other connection."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802  apsw's name
        return False

    def xFileControl(self, *_: int) -> bool:  # noqa: N802  apsw's name
        return False

    def xClose(self) -> None:  # noqa: N802  apsw's name
        """Keep the content."""

    def xSectorSize(self) -> int:  # noqa: N802  apsw's name
        return 512

    def xDeviceCharacteristics(self) -> int:  # noqa: N802  apsw's name
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


@contextmanager
def memory_disk() -> Generator[MemoryDisk]:
    """Register a disk and unregister it afterwards."""
    disk = MemoryDisk()
    try:
        yield disk
    finally:
        disk.unregister()
