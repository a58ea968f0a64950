"""Names in an open folder: each step is one call of the system, and none follows a link."""

import errno
import os
import stat
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from dragoman.system.files import write_all
from dragoman.system.renames import exchange, rename_to_free

Kind = Literal["file", "folder", "link", "other"]

FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Seen(Struct, frozen=True):
    """Metadata of a name, without following a link."""

    name: str
    kind: Kind
    size: int
    mtime_ns: int
    links: int
    inode: int
    """Identifies the file, whatever its name."""


class Tail(Struct, frozen=True):
    """End of the last whole line of a file, and that line."""

    end: int = 0
    line: bytes = b""


class Appender:
    """File opened for appending."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor: int | None = descriptor

    def write(self, data: bytes) -> None:
        """Append data; not durable by itself."""
        if self._descriptor is None:
            raise ValueError("The file is closed.")
        write_all(self._descriptor, data)

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def open_folder(part: str, folder: int, parts: tuple[str, ...]) -> int:
    """Open a folder by name; `parts` is its whole path, for the error."""
    try:
        return os.open(part, FOLDER, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise NotADirectoryError(
                errno.ENOTDIR, "it is a link or a file where a folder must be", "/".join(parts)
            ) from None
        raise


def create(name: str, folder: int, mode: int = 0o644) -> int:
    """Create a file, replacing one of that name."""
    try:
        return os.open(name, _NEW, mode, dir_fd=folder)
    except FileExistsError:
        os.unlink(name, dir_fd=folder)
        return os.open(name, _NEW, mode, dir_fd=folder)


def move_to_free(old: str, new: str, source: int, target: int) -> None:
    """Rename unless the new name is taken; processes that have the file open keep writing to it."""
    if rename_to_free(old, new, source, target):
        return
    if look_at(new, target) is not None:
        raise FileExistsError(errno.EEXIST, "the name is taken", new)
    os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)


def trade(old: str, new: str, source: int, target: int, seen: object) -> bool:
    """Replace a file, if it still is as expected."""
    there = look_at(new, target)
    if there is None or seen_as(new, there) != seen:
        return False
    if not exchange(old, new, source, target):
        os.replace(old, new, src_dir_fd=source, dst_dir_fd=target)
        return True
    # The displaced file is checked once more under its new name, where nobody writes: no edit is
    # lost.
    gone = look_at(old, source)
    if gone is not None and seen_as(new, gone) != seen:
        exchange(old, new, source, target)
        return False
    os.unlink(old, dir_fd=source)
    return True


def discard(name: str, aside: str, folder: int, seen: object) -> bool:
    """Remove a file, if it still is as expected."""
    move_to_free(name, aside, folder, folder)
    # Checked under a temporary name: whatever is saved from here on is another file.
    gone = look_at(aside, folder)
    if gone is None or seen_as(name, gone) != seen:
        move_to_free(aside, name, folder, folder)
        return False
    os.unlink(aside, dir_fd=folder)
    return True


def look_at(name: str, folder: int) -> os.stat_result | None:
    """Stat a name without following a link; None when there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def present(entries: Iterator[os.DirEntry[str]]) -> Iterator[Seen]:
    """Metadata of folder entries, except those that vanish meanwhile."""
    for entry in entries:
        try:
            yield seen_as(entry.name, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue


_KINDS: Final[dict[int, Kind]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
}


def seen_as(name: str, found: os.stat_result) -> Seen:
    """Convert a stat result."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return Seen(name, kind, found.st_size, found.st_mtime_ns, found.st_nlink, found.st_ino)


def read_from(descriptor: int, most: int) -> bytes:
    """Read the next bytes, at most `max_bytes`."""
    blocks, left = list[bytes](), most
    while left and (block := os.read(descriptor, min(left, 1 << 20))):
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)
