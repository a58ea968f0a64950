"""The points at which a process can die: every step that it takes out of itself has a name.

Where the product meets the system (files, SQLite's own file layer, the engine's failpoints), each
operation is announced before it is done, so the product pays nothing for being killed here. A name
is `stage: operation`, and the stage is what the hub is busy with.
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
"""What follows these is not always announced (a rename by the kernel's own call), so the moment
after them has a name too."""


class Kill(Struct, frozen=True):
    """When a process is to die: whatever of these comes first."""

    at: int = 0
    """At this point, counted from its beginning; 0: at none."""
    name: str = ""
    """At a point of this name."""
    passes: int = 1
    """At so many passes of that name."""
    beyond: Sequence[str] | None = None
    """At the first point whose name is not among these."""


class KillPoints:
    """Announces where the process is, and kills it there."""

    def __init__(self, kill: Kill, on_kill: Callable[[str], None]) -> None:
        """`told` hears the name before the process dies."""
        self.stage = "open"
        self._kill = kill
        self._on_kill = on_kill
        self._count = self._passes = 0
        self._disk: Disk | None = None
        self._torn = set[int]()

    def __call__(self, operation: str) -> None:
        """The process is here."""
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
        """Announce all that this process does to files, until its end."""
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
        """A system may take fewer bytes than it was given: a line can be torn."""

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
