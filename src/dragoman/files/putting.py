"""Putting a file where it belongs: whole or not at all, and only if it is not there already."""

from dragoman.files.disk import Disk, Look
from dragoman.files.layout import discarded, has_stamp, numbered, staged, stamp


def put(disk: Disk, path: str, data: bytes) -> None:
    """Write a file atomically, unless it has this content already."""
    if stage_if_new(disk, path, data):
        disk.replace(staged(path), path)


def stage_if_new(disk: Disk, path: str, data: bytes) -> bool:
    """Stage a content beside the file if it differs; True if it does."""
    if disk.read(path, len(data)) == data:
        disk.keep(path)
        return False
    stage(disk, path, data)
    return True


def stage(disk: Disk, path: str, data: bytes, mtime_ns: int | None = None) -> None:
    """Stage the next content beside the file, creating the folder if needed."""
    try:
        disk.write(staged(path), data, mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        make_way(disk, path.rpartition("/")[0])
        disk.write(staged(path), data, mtime_ns)


def stage_among_others(disk: Disk, path: str, data: bytes, moment: int) -> bool:
    """Stage a file in a task's own folder, where agents and people write too: a file that was not
    written here, or was changed since, is kept under another name."""
    if disk.read(path, len(data)) == data:
        disk.keep(path)
        return False
    # The stamp is valid wherever the folder is moved.
    found, own = disk.look(path), path.split("/", 2)[-1]
    if found is not None and not has_stamp(own, found.size, found.mtime_ns):
        set_aside(disk, path, f"{path}-found")
    stage(disk, path, data, stamp(own, len(data), moment))
    return True


def have_folder(disk: Disk, folder: str) -> None:
    """Create the folder if it is missing, whatever is in its place."""
    try:
        disk.make_folder(folder)
    except NotADirectoryError:
        make_way(disk, folder)


def make_way(disk: Disk, folder: str) -> None:
    """Create the folder; a file or link in its place is kept under another name, never followed."""
    parts = folder.split("/")
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        found = disk.look(path)
        if found is not None and found.kind != "folder":
            set_aside(disk, path, f"{path}-found")
    disk.make_folder(folder)


def set_aside(disk: Disk, path: str, aside: str) -> str:
    """Move a file to a name, or to its first free alternative; returns that name."""
    number = 1
    while not disk.move(path, numbered(aside, number)):
        number += 1
    return numbered(aside, number)


def discard(disk: Disk, path: str, seen: Look) -> bool:
    """Remove a file that still is as `expected`; False, with nothing lost, when it is not."""
    return disk.discard(path, free_name(disk, discarded(path), ""), seen)


def free_name(disk: Disk, path: str, note: str) -> str:
    """The path or its first alternative that is free, together with the name of its note."""
    number, spare = 1, len(staged(note))
    while disk.look(kept := numbered(path, number, spare)) or disk.look(kept + note):
        number += 1
    return kept
