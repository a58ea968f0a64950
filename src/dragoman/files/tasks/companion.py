"""A task's own folder: it moves with the task, and what was written late is brought after it."""

from typing import Final

from dragoman.core.events import Status
from dragoman.files.disk import Disk, FileInfo
from dragoman.files.layout import STATUSES, TASK_SUBFOLDERS, task_folder_path
from dragoman.files.putting import force_folder, move_aside

_MAX_MERGE_DEPTH: Final = 32
"""Depth to which two folders are merged; below it, one of them gets another name."""


def gather_task_folder(disk: Disk, task_id: str, status: Status) -> None:
    """Move the task's folder to its status, merging all folders that it has.

    The caller holds FOLDERS_LOCK, and has read the status since.
    """
    target = task_folder_path(status, task_id)
    for other in STATUSES:
        if other != status:
            _move_folder(disk, task_folder_path(other, task_id), target)
    try:
        disk.make_folder(target)
        disk.make_folders(target, TASK_SUBFOLDERS)
    except NotADirectoryError:
        for part in TASK_SUBFOLDERS:
            force_folder(disk, f"{target}/{part}")


def _move_folder(disk: Disk, old: str, target: str) -> None:
    found = disk.stat(old)
    if found is None:
        return
    if found.kind != "folder":
        move_aside(disk, old, target)
    # Renamed as a whole, so that an agent that has a file of it open goes on writing to it.
    elif not disk.move(old, target):
        force_folder(disk, target)
        if not disk.move(old, target):
            _merge_folders(disk, old, target, _MAX_MERGE_DEPTH)


def _merge_folders(disk: Disk, old: str, new: str, depth: int) -> None:
    """Merge a folder into another; of files in both, both are kept."""
    for found in disk.list(old):
        source, target = f"{old}/{found.name}", f"{new}/{found.name}"
        if disk.move(source, target):
            continue
        if found.kind == "folder" and depth and _is_folder(disk.stat(target)):
            _merge_folders(disk, source, target, depth - 1)
        else:
            move_aside(disk, source, target)
    disk.remove_folder(old)


def _is_folder(found: FileInfo | None) -> bool:
    return found is not None and found.kind == "folder"
