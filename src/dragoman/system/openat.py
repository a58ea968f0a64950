"""Names in an open folder: each step is one call of the system, and none follows a link."""

import errno
import os
import stat
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from dragoman.system.files import write_all
from dragoman.system.renames import try_rename_exchange, try_rename_noreplace

FileKind = Literal["file", "folder", "link", "other"]

FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FileStat(Struct, frozen=True):
    """Metadata of a name, without following a link."""

    name: str
    kind: FileKind
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


def open_folder(name: str, folder: int, parts: tuple[str, ...]) -> int:
    """Open a folder by name; `parts` is its whole path, for the error."""
    try:
        return os.open(name, FOLDER_FLAGS, dir_fd=folder)
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):
            raise NotADirectoryError(
                errno.ENOTDIR, "it is a link or a file where a folder must be", "/".join(parts)
            ) from None
        raise


def create_file(name: str, folder: int, mode: int = 0o644) -> int:
    """Create a file, replacing one of that name."""
    try:
        return os.open(name, _CREATE_FLAGS, mode, dir_fd=folder)
    except FileExistsError:
        os.unlink(name, dir_fd=folder)
        return os.open(name, _CREATE_FLAGS, mode, dir_fd=folder)


def rename_noreplace(old: str, new: str, source: int, target: int) -> None:
    """Rename unless the new name is taken; processes that have the file open keep writing to it."""
    if try_rename_noreplace(old, new, source, target):
        return
    if stat_or_none(new, target) is not None:
        raise FileExistsError(errno.EEXIST, "the name is taken", new)
    os.rename(old, new, src_dir_fd=source, dst_dir_fd=target)


def replace_if_unchanged(old: str, new: str, source: int, target: int, expected: object) -> bool:
    """Replace a file, if it still is as expected."""
    current = stat_or_none(new, target)
    if current is None or to_file_stat(new, current) != expected:
        return False
    if not try_rename_exchange(old, new, source, target):
        os.replace(old, new, src_dir_fd=source, dst_dir_fd=target)
        return True
    # The displaced file is checked once more under its new name, where nobody writes: no edit is
    # lost.
    displaced = stat_or_none(old, source)
    if displaced is not None and to_file_stat(new, displaced) != expected:
        try_rename_exchange(old, new, source, target)
        return False
    os.unlink(old, dir_fd=source)
    return True


def remove_if_unchanged(name: str, temporary: str, folder: int, expected: object) -> bool:
    """Remove a file, if it still is as expected."""
    rename_noreplace(name, temporary, folder, folder)
    # Checked under a temporary name: whatever is saved from here on is another file.
    moved = stat_or_none(temporary, folder)
    if moved is None or to_file_stat(name, moved) != expected:
        rename_noreplace(temporary, name, folder, folder)
        return False
    os.unlink(temporary, dir_fd=folder)
    return True


def stat_or_none(name: str, folder: int) -> os.stat_result | None:
    """Stat a name without following a link; None when there is nothing."""
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None


def stat_entries(entries: Iterator[os.DirEntry[str]]) -> Iterator[FileStat]:
    """Metadata of folder entries, except those that vanish meanwhile."""
    for entry in entries:
        try:
            yield to_file_stat(entry.name, entry.stat(follow_symlinks=False))
        except FileNotFoundError:
            continue


_KINDS: Final[dict[int, FileKind]] = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "folder",
    stat.S_IFLNK: "link",
}


def to_file_stat(name: str, found: os.stat_result) -> FileStat:
    """Convert a stat result."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode), "other")
    return FileStat(name, kind, found.st_size, found.st_mtime_ns, found.st_nlink, found.st_ino)


def read_up_to(descriptor: int, max_bytes: int) -> bytes:
    """Read the next bytes, at most `max_bytes`."""
    blocks, remaining = list[bytes](), max_bytes
    while remaining and (block := os.read(descriptor, min(remaining, 1 << 20))):
        blocks.append(block)
        remaining -= len(block)
    return b"".join(blocks)
