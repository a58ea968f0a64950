"""Verified copies of artifacts that no handoff needs any more: removed once they are old.

A copy is made before the handoff that needs it is on record. So only one is removed that was not
taken for a long time; who takes it again makes it as good as new, and both hold the same lock for
the moment in which they look.
"""

from collections.abc import Callable, Container
from contextlib import closing
from typing import Final

from dragoman.files.disk import Look
from dragoman.files.handoffs.artifacts import ArtifactDisk
from dragoman.files.layout import COPIES, artifact_path, copies_folder

_DAY_NS: Final = 86_400 * 1_000_000_000
_OLD_NS: Final = 7 * _DAY_NS
_MILLION: Final = 1_000_000


class Copies:
    """Removes unused copies, at most once a day."""

    def __init__(
        self,
        open_disk: Callable[[], ArtifactDisk],
        needed: Callable[[], Container[str]],
        now: Callable[[], int],
    ) -> None:
        """`now` is the clock of the file system, not the hub's."""
        self._open_disk = open_disk
        self._needed = needed
        self._now = now

    def sweep(self) -> int:
        """Remove copies that are old and not needed; returns their number."""
        now = self._now() * _MILLION
        with closing(self._open_disk()) as disk:
            last = disk.look(COPIES)
            if last is not None and now - _DAY_NS < last.mtime_ns <= now:
                return 0
            # List the copies before asking which are needed: one that is taken in between was
            # renewed.
            old = [
                copy.name
                for folder in disk.list(copies_folder())
                for copy in disk.list(copies_folder(folder.name))
                if _is_old(copy, now)
            ]
            if not old:
                return 0
            needed = self._needed()
            removed = sum(_is_removed(disk, name, now) for name in old if name not in needed)
            with disk.hold(COPIES):
                disk.touch(COPIES)
            disk.settle()
            return removed


def _is_old(copy: Look, now: int) -> bool:
    return copy.kind == "file" and copy.mtime_ns < now - _OLD_NS


def _is_removed(disk: ArtifactDisk, name: str, now: int) -> bool:
    path = artifact_path(name)
    with disk.hold(COPIES):
        copy = disk.look(path)
        if copy is None or not _is_old(copy, now):
            return False
        disk.remove(path)
        return True
