"""The way to a folder beneath a root: each step on its own, none of them over a link.

Folders near the root stay open for a while, because most ways go through them.
"""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dragoman.system.openat import open_folder

_UNSAFE_PARTS: Final = frozenset({"", ".", ".."})
_CACHED_DEPTH: Final = 2
"""Folders at most this deep below the root stay open for a while: they are never moved."""
_MAX_CACHED: Final = 32
"""Limit of cached folders; the least recently used is closed first."""


class FolderWalker:
    """Opens folders beneath a root that exists, one path component at a time."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._cached: dict[tuple[str, ...], int] = {}

    def stat(self, parents: tuple[str, ...], name: str) -> os.stat_result:
        """Stat a name in a folder, without following a link."""
        if len(parents) <= _CACHED_DEPTH:
            return os.stat(name, dir_fd=self._open_cached(parents), follow_symlinks=False)
        with self.folder(parents) as folder:
            return os.stat(name, dir_fd=folder, follow_symlinks=False)

    @contextmanager
    def parent(self, path: str) -> Generator[tuple[int, str]]:
        """Open the parent folder of a path; yields it and the last part of the path."""
        parts = split_path(path)
        with self.folder(parts[:-1]) as folder:
            yield folder, parts[-1]

    @contextmanager
    def folder(self, parts: tuple[str, ...]) -> Generator[int]:
        """Open a folder."""
        cached_depth = min(len(parts), _CACHED_DEPTH)
        start = self._open_cached(parts[:cached_depth])
        current = start
        try:
            for depth, part in enumerate(parts[cached_depth:], cached_depth):
                inner = open_folder(part, current, parts[: depth + 1])
                if current != start:
                    os.close(current)
                current = inner
            yield current
        finally:
            if current != start:
                os.close(current)

    def _open_cached(self, parts: tuple[str, ...]) -> int:
        """Open a folder near the root, and cache it until `close` or until many others were
        used."""
        descriptor = self._cached.pop(parts, None)
        if descriptor is None:
            if parts:
                descriptor = open_folder(parts[-1], self._open_cached(parts[:-1]), parts)
            else:
                descriptor = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            if len(self._cached) >= _MAX_CACHED:
                os.close(self._cached.pop(next(iter(self._cached))))
        self._cached[parts] = descriptor
        return descriptor

    def close(self) -> None:
        """Close cached folders."""
        while self._cached:
            os.close(self._cached.popitem()[1])


def split_path(path: str) -> tuple[str, ...]:
    """Split a path into parts; ValueError when one of them could lead out of the root."""
    if not path:
        return ()
    parts = tuple(path.split("/"))
    if not _UNSAFE_PARTS.isdisjoint(parts) or "\0" in path:
        raise ValueError(f"{path!a} is not a path beneath the root.")
    return parts
