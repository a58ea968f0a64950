"""A task's own folder: it moves with the task, and what was written late is brought after it."""

from typing import Final

from dragoman.core.events import Status
from dragoman.files.disk import Disk, Look
from dragoman.files.layout import PARTS, STATUSES, folder_path
from dragoman.files.putting import make_way, set_aside

_DEEPEST: Final = 32
"""Depth to which two folders are merged; below it, one of them gets another name."""


def settle_folder(disk: Disk, task_id: str, status: Status) -> None:
    """Move the task's folder to its status, merging all folders that it has.

    The caller holds FOLDERS_LOCK, and has read the status since.
    """
    home = folder_path(status, task_id)
    for other in STATUSES:
        if other != status:
            _bring_home(disk, folder_path(other, task_id), home)
    try:
        disk.make_folder(home)
        disk.make_folders(home, PARTS)
    except NotADirectoryError:
        for part in PARTS:
            make_way(disk, f"{home}/{part}")


def _bring_home(disk: Disk, old: str, home: str) -> None:
    found = disk.look(old)
    if found is None:
        return
    if found.kind != "folder":
        set_aside(disk, old, home)
    # Renamed as a whole, so that an agent that has a file of it open goes on writing to it.
    elif not disk.move(old, home):
        make_way(disk, home)
        if not disk.move(old, home):
            _merge(disk, old, home, _DEEPEST)


def _merge(disk: Disk, old: str, new: str, depth: int) -> None:
    """Merge a folder into another; of files in both, both are kept."""
    for found in disk.list(old):
        source, target = f"{old}/{found.name}", f"{new}/{found.name}"
        if disk.move(source, target):
            continue
        if found.kind == "folder" and depth and _is_folder(disk.look(target)):
            _merge(disk, source, target, depth - 1)
        else:
            set_aside(disk, source, target)
    disk.remove_folder(old)


def _is_folder(found: Look | None) -> bool:
    return found is not None and found.kind == "folder"
