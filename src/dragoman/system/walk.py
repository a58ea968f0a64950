"""The way to a folder beneath a root: each step on its own, none of them over a link.

Folders near the root stay open for a while, because most ways go through them.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dragoman.system.openat import open_folder

_NOT_PLAIN: Final = frozenset({"", ".", ".."})
_KEPT_OPEN: Final = 2
"""Folders at most this deep below the root stay open for a while: they are never moved."""
_MOST_OPEN: Final = 32
"""Limit of cached folders; the least recently used is closed first."""


class Walk:
    """Opens folders beneath a root that exists, one path component at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._open: dict[tuple[str, ...], int] = {}

    def stat(self, above: tuple[str, ...], name: str) -> os.stat_result:
        """Stat a name in a folder, without following a link."""
        if len(above) <= _KEPT_OPEN:
            return os.stat(name, dir_fd=self._stay(above), follow_symlinks=False)
        with self.folder(above) as folder:
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    @contextmanager
    def parent(self, path: str) -> Generator[tuple[int, str]]:
        """Open the parent folder of a path; yields it and the last part of the path."""
        parts = parts_of(path)
        with self.folder(parts[:-1]) as folder:
            yield folder, parts[-1]

    @contextmanager
    def folder(self, parts: tuple[str, ...]) -> Generator[int]:
        """Open a folder."""
        kept = min(len(parts), _KEPT_OPEN)
        start = self._stay(parts[:kept])
        walked = start
        try:
            for at, part in enumerate(parts[kept:], kept):
                inner = open_folder(part, walked, parts[: at + 1])
                if walked != start:
                    os.close(walked)
                walked = inner
            yield walked
        finally:
            if walked != start:
                os.close(walked)

    def _stay(self, parts: tuple[str, ...]) -> int:
        """Open a folder near the root, and cache it until `close` or until many others were
        used."""
        known = self._open.pop(parts, None)
        if known is None:
            if parts:
                known = open_folder(parts[-1], self._stay(parts[:-1]), parts)
            else:
                known = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if len(self._open) >= _MOST_OPEN:
                os.close(self._open.pop(next(iter(self._open))))
        self._open[parts] = known
        return known

    def close(self) -> None:
        """Close cached folders."""
        while self._open:
            os.close(self._open.popitem()[1])


def parts_of(path: str) -> tuple[str, ...]:
    """Split a path into parts; ValueError when one of them could lead out of the root."""
    if not path:
        return ()
    parts = tuple(path.split("/"))
    if not _NOT_PLAIN.isdisjoint(parts) or "\0" in path:
        raise ValueError(f"{path!a} is not a path beneath the root.")
    return parts
