"""Kill points: every operation of a process on the system is announced under a name.

Operations on files, of SQLite's file layer (a VFS) and the engine's failpoints are announced before
they are done, so the product itself has no code for it. A name is `stage: operation`; the stage is
what the hub is doing.
"""

import os
import signal
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final

from msgspec import Struct

from tests.store.sqlite.disk import Disk, Happening

_CHANGING: Final = (
    *("fsync", "replace", "rename", "link", "unlink", "mkdir", "rmdir", "ftruncate", "utime"),
)
_ANNOUNCED_AFTER: Final = frozenset({"fsync"})
"""Operations that are also announced afterwards, because what follows is not always announced (a
rename by the kernel's own call)."""


class Kill(Struct, frozen=True):
    """Point at which a process is killed: the first of these to be reached."""

    at: int = 0
    """Number of the point, counted from the start; 0: none."""
    name: str = ""
    """Name of the point."""
    passes: int = 1
    """Number of passes of that name."""
    beyond: Sequence[str] | None = None
    """First point whose name is not among these."""


class KillPoints:
    """Announces the operations of this process, and kills it at the chosen point."""

    def __init__(self, kill: Kill, on_kill: Callable[[str], None]) -> None:
        """`on_kill` gets the name before the process dies."""
        self.stage = "open"
        self._kill = kill
        self._on_kill = on_kill
        self._count = self._passes = 0
        self._disk: Disk | None = None
        self._torn = set[int]()

    def __call__(self, operation: str) -> None:
        """Announce an operation."""
        name, kill = f"{self.stage}: {operation}", self._kill
        self._count += 1
        self._passes += name == kill.name
        is_beyond = kill.beyond is not None and name not in kill.beyond
        if (
            is_beyond
            or self._count == kill.at
            or (name == kill.name and self._passes == kill.passes)
        ):
            self._on_kill(name)
            os.kill(os.getpid(), signal.SIGKILL)

    def install(self) -> None:
        """Announce all file operations of this process, until its end."""
        for name in _CHANGING:
            setattr(os, name, self._announce(name, getattr(os, name)))
        os.write = self._split_write(os.write)
        os.open = self._announce_creation(os.open)
        self._disk = Disk()
        self._disk.before = self._sqlite

    def _announce(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def announced(*arguments: Any, **more: Any) -> Any:
            self(name)
            done = call(*arguments, **more)
            if name in _ANNOUNCED_AFTER:
                self(f"{name} done")
            return done

        return announced

    def _split_write(self, call: Callable[..., int]) -> Callable[..., int]:
        """Write in two halves: a system may take fewer bytes than it was given, and a line can be
        torn."""

        def write(descriptor: int, data: Any) -> int:
            if descriptor in self._torn:
                self._torn.remove(descriptor)
                return call(descriptor, data)
            self("write")
            written = call(descriptor, data[: (len(data) + 1) // 2])
            self("write torn")
            if written < len(data):
                self._torn.add(descriptor)
            return written

        return write

    def _announce_creation(self, call: Callable[..., int]) -> Callable[..., int]:
        def open_announced(path: Any, flags: int, *arguments: Any, **more: Any) -> int:
            if flags & os.O_CREAT:
                self("create")
            return call(path, flags, *arguments, **more)

        return open_announced

    def _sqlite(self, event: Happening) -> None:
        operation, file = event
        if operation in ("write", "sync"):
            self(f"sqlite {operation} {file}")
