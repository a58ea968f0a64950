"""Verified copies of artifacts that no handoff needs any more: removed once they are old.

A copy is made before the handoff that needs it is on record. So only one is removed that was not
taken for a long time; who takes it again makes it as good as new, and both hold the same lock for
the moment in which they look.
"""

from collections.abc import Callable, Container
from contextlib import closing
from typing import Final

from dragoman.files.disk import FileInfo
from dragoman.files.handoffs.artifacts import ArtifactDisk
from dragoman.files.layout import ARTIFACTS_LOCK, artifact_path, copies_folder_path

_DAY_NS: Final = 86_400 * 1_000_000_000
_MAX_AGE_NS: Final = 7 * _DAY_NS
_NS_PER_MILLISECOND: Final = 1_000_000


class ArtifactCleanup:
    """Removes unused copies, at most once a day."""

    def __init__(
        self,
        open_disk: Callable[[], ArtifactDisk],
        find_needed: Callable[[], Container[str]],
        now: Callable[[], int],
    ) -> None:
        """`now` is the clock of the file system, not the hub's."""
        self._open_disk = open_disk
        self._find_needed = find_needed
        self._now = now

    def remove_old(self) -> int:
        """Remove copies that are old and not needed; returns their number."""
        now = self._now() * _NS_PER_MILLISECOND
        with closing(self._open_disk()) as disk:
            last = disk.stat(ARTIFACTS_LOCK)
            if last is not None and now - _DAY_NS < last.mtime_ns <= now:
                return 0
            # List the copies before asking which are needed: one that is taken in between was
            # renewed.
            old = [
                copy.name
                for folder in disk.list(copies_folder_path())
                for copy in disk.list(copies_folder_path(folder.name))
                if _is_old(copy, now)
            ]
            if not old:
                return 0
            needed = self._find_needed()
            removed = sum(_remove_if_old(disk, name, now) for name in old if name not in needed)
            with disk.lock_nested(ARTIFACTS_LOCK):
                disk.touch(ARTIFACTS_LOCK)
            disk.sync()
            return removed


def _is_old(copy: FileInfo, now: int) -> bool:
    return copy.kind == "file" and copy.mtime_ns < now - _MAX_AGE_NS


def _remove_if_old(disk: ArtifactDisk, name: str, now: int) -> bool:
    path = artifact_path(name)
    with disk.lock_nested(ARTIFACTS_LOCK):
        copy = disk.stat(path)
        if copy is None or not _is_old(copy, now):
            return False
        disk.remove(path)
        return True
