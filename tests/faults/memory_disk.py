"""SQLite on files in memory: it recovers them as it would on a disk, and much sooner."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, cast

import apsw

from tests.faults.simulated_disk import Files

_NAME = "memory-disk"


class MemoryDisk(apsw.VFS):
    """One folder; a connection has it for itself, because memory has no locks to share it by."""

    def __init__(self) -> None:
        self.files: dict[str, _File] = {}
        super().__init__(_NAME, apsw.vfs_names()[0])

    def pages(self, database: str, files: Files) -> bytes:
        """All pages of a database among these files, once SQLite has recovered it."""
        self.files = {name: _File(content) for name, content in files.items()}
        connection = cast(Any, apsw.Connection(database, vfs=_NAME))
        try:
            connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.pragma("locking_mode", "exclusive")
            return connection.serialize("main")
        finally:
            connection.close(True)

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802  apsw's name
        """A file that is there, or a new one."""
        path = "" if name is None else name if isinstance(name, str) else name.filename()
        return self.files.setdefault(PurePath(path).name, _File(b""))

    def xFullPathname(self, name: str) -> str:  # noqa: N802  apsw's name
        """Names are short here."""
        return name

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802  apsw's name
        """Whether there is such a file."""
        return PurePath(pathname).name in self.files

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802  apsw's
        """Forget a file."""
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
        """Memory is as safe as it gets."""

    def xLock(self, level: int) -> None:  # noqa: N802  apsw's name
        """Nobody else is here."""

    def xUnlock(self, level: int) -> None:  # noqa: N802  apsw's name
        """Nobody else is here."""

    def xCheckReservedLock(self) -> bool:  # noqa: N802  apsw's name
        return False

    def xFileControl(self, *_: int) -> bool:  # noqa: N802  apsw's name
        return False

    def xClose(self) -> None:  # noqa: N802  apsw's name
        """The content stays."""

    def xSectorSize(self) -> int:  # noqa: N802  apsw's name
        return 512

    def xDeviceCharacteristics(self) -> int:  # noqa: N802  apsw's name
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE


@contextmanager
def memory_disk() -> Generator[MemoryDisk]:
    """A disk that is gone afterwards."""
    disk = MemoryDisk()
    try:
        yield disk
    finally:
        disk.unregister()
