"""Atomic writes: a file appears whole or not at all, and only if its content differs."""

from dragoman.files.layout import (
    REASON_SUFFIX,
    has_mtime_stamp,
    mtime_stamp,
    numbered_path,
    rejected_path,
    staged_path,
    stamped_name,
)
from dragoman.system.safe_fs import FileStat, SafeDisk


def write_if_changed(disk: SafeDisk, path: str, data: bytes, at_ms: int | None = None) -> None:
    """Write a file atomically, unless it has this content already."""
    if stage_if_changed(disk, path, data, at_ms):
        disk.replace(staged_path(path), path)


def stage_if_changed(disk: SafeDisk, path: str, data: bytes, at_ms: int | None = None) -> bool:
    """Stage a content beside the file if it differs, with the stamp of this time if there is one;
    True if it does."""
    if disk.read(path, len(data)) == data:
        disk.sync_later(path)
        return False
    stamp = None if at_ms is None else mtime_stamp(stamped_name(path), len(data), at_ms)
    stage(disk, path, data, stamp)
    return True


def stage(disk: SafeDisk, path: str, data: bytes, mtime_ns: int | None = None) -> None:
    """Stage the next content beside the file, creating the folder if needed."""
    try:
        disk.write(staged_path(path), data, mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        force_folder(disk, path.rpartition("/")[0])
        disk.write(staged_path(path), data, mtime_ns)


def stage_in_task_folder(disk: SafeDisk, path: str, data: bytes, at_ms: int) -> bool:
    """Stage a file in a task's own folder, where agents and people write too: a file that was not
    written here, or was changed since, is kept under another name."""
    if disk.read(path, len(data)) != data:
        keep_foreign_file(disk, path)
    return stage_if_changed(disk, path, data, at_ms)


def keep_foreign_file(disk: SafeDisk, path: str) -> str:
    """Move a file that was not written here, or was changed since, to another name, and return
    that; empty when there is no such file."""
    found = disk.stat(path)
    if found is None or has_mtime_stamp(stamped_name(path), found.size, found.mtime_ns):
        return ""
    return move_aside(disk, path, f"{path}-found")


def ensure_folder(disk: SafeDisk, folder: str) -> None:
    """Create the folder if it is missing, whatever is in its place."""
    try:
        disk.make_folder(folder)
    except NotADirectoryError:
        force_folder(disk, folder)


def force_folder(disk: SafeDisk, folder: str) -> None:
    """Create the folder; a file or link in its place is kept under another name, never followed."""
    parts = folder.split("/")
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        found = disk.stat(path)
        if found is not None and found.kind != "folder":
            move_aside(disk, path, f"{path}-found")
    disk.make_folder(folder)


def move_aside(disk: SafeDisk, path: str, target: str) -> str:
    """Move a file to a name, or to its first free alternative; returns that name."""
    number = 1
    while not disk.move(path, numbered_path(target, number)):
        number += 1
    return numbered_path(target, number)


def remove_if_unchanged(disk: SafeDisk, path: str, expected: FileStat) -> bool:
    """Remove a task file that still is as `expected`; False, with nothing lost, when it is not.

    It is checked once more under another name, which it keeps after a crash right then.
    """
    aside = find_free_name(disk, rejected_path(path), REASON_SUFFIX)
    return disk.remove_if_unchanged(path, aside, expected)


def find_free_name(disk: SafeDisk, path: str, note_suffix: str) -> str:
    """The path or its first alternative that is free, together with the name of its note."""
    number, reserve = 1, len(staged_path(note_suffix))
    while disk.stat(candidate := numbered_path(path, number, reserve)) or disk.stat(
        candidate + note_suffix
    ):
        number += 1
    return candidate
