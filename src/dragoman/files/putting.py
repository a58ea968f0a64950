"""Putting a file where it belongs: whole or not at all, and only if it is not there already."""

from dragoman.files.disk import Disk, Look
from dragoman.files.layout import discarded, has_stamp, numbered, staged, stamp


def put(disk: Disk, path: str, data: bytes) -> None:
    """The file has this content; a reader or a crash sees the old or the new, no mix."""
    if stage_if_new(disk, path, data):
        disk.replace(staged(path), path)


def stage_if_new(disk: Disk, path: str, data: bytes) -> bool:
    """Whether the file has another content so far; then this one waits beside it."""
    if disk.read(path, len(data)) == data:
        disk.keep(path)
        return False
    stage(disk, path, data)
    return True


def stage(disk: Disk, path: str, data: bytes, mtime_ns: int | None = None) -> None:
    """The next content waits beside the file; the folder is made if need be."""
    try:
        disk.write(staged(path), data, mtime_ns)
    except (FileNotFoundError, NotADirectoryError):
        make_way(disk, path.rpartition("/")[0])
        disk.write(staged(path), data, mtime_ns)


def stage_among_others(disk: Disk, path: str, data: bytes, moment: int) -> bool:
    """The same in a task's own folder, where agents and people write too: what stands there and was
    not written here, or was changed since, is kept under another name."""
    if disk.read(path, len(data)) == data:
        disk.keep(path)
        return False
    # The stamp holds wherever the folder stands.
    found, own = disk.look(path), path.split("/", 2)[-1]
    if found is not None and not has_stamp(own, found.size, found.mtime_ns):
        set_aside(disk, path, f"{path}-found")
    stage(disk, path, data, stamp(own, len(data), moment))
    return True


def have_folder(disk: Disk, folder: str) -> None:
    """The folder exists, whatever stood in its place."""
    try:
        disk.make_folder(folder)
    except NotADirectoryError:
        make_way(disk, folder)


def make_way(disk: Disk, folder: str) -> None:
    """The folder exists; a file or link in its way is kept under another name, never followed."""
    parts = folder.split("/")
    for end in range(1, len(parts) + 1):
        path = "/".join(parts[:end])
        found = disk.look(path)
        if found is not None and found.kind != "folder":
            set_aside(disk, path, f"{path}-found")
    disk.make_folder(folder)


def set_aside(disk: Disk, path: str, aside: str) -> str:
    """Move something to a name, or to its first alternative that is free; that name."""
    number = 1
    while not disk.move(path, numbered(aside, number)):
        number += 1
    return numbered(aside, number)


def discard(disk: Disk, path: str, seen: Look) -> bool:
    """Remove a file that still is what was seen; False, and nothing is lost, when it is not."""
    return disk.discard(path, free_name(disk, discarded(path), ""), seen)


def free_name(disk: Disk, path: str, note: str) -> str:
    """The path or its first alternative that nothing has yet, nor its note, for which there is room
    beside it."""
    number, spare = 1, len(staged(note))
    while disk.look(kept := numbered(path, number, spare)) or disk.look(kept + note):
        number += 1
    return kept
