"""Durable files: atomic replacement, appended lines, and reads of regular files only.

A file is whole or not there, and on the disk before the call returns. A pipe or a device in
place of a file is refused instead of blocking the hub.
"""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

# --- regular files ----------------------------------------------------------------------------


class NotRegularFile(OSError):
    """There is no regular file at this path."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(errno.EINVAL, "it is not a regular file", str(path))


def file_remedy(error: OSError) -> str:
    """Advice for the person who looks after the directory."""
    if isinstance(error, NotRegularFile | IsADirectoryError):
        return "move it out of the way, and put the file back that was there, if there was one"
    return "check its permissions and the disk"


def open_regular(path: Path, flags: int, mode: int = 0o644) -> int:
    """Open a regular file; OSError when it is none, or cannot be opened."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise NotRegularFile(path)


def read_regular(path: Path) -> bytes:
    """Content of a regular file."""
    with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
        return file.read()


# --- atomic writes and lines ------------------------------------------------------------------

_NEWLINE: Final = b"\n"

_BLOCK: Final = 65_536


def write_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file by this content; a reader or a crash sees the old or the new, never a mix."""
    with _temporary_file(path, data, mode) as temporary:
        temporary.replace(path)
    sync_folder(path.parent)


def create_atomically(path: Path, data: bytes, *, mode: int = 0o644) -> bool:
    """Create a file with this content; False when somebody else was faster."""
    with _temporary_file(path, data, mode) as temporary:
        # A rename would replace what another process has just made; a link refuses.
        try:
            os.link(temporary, path, follow_symlinks=False)
        except FileExistsError:
            created = False
        else:
            created = True
    # The slower one syncs too: it goes on with a file that the faster may not have synced yet.
    sync_folder(path.parent)
    return created


def append_line(path: Path, line: bytes, *, follow_links: bool = True) -> None:
    """Append a line under a lock; a torn line that a crash has left is cut off first.

    `follow_links`: the path may be a link.
    """
    if _NEWLINE in line:
        raise ValueError("A line cannot hold a newline: write it as several lines.")
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    descriptor = open_regular(path, flags if follow_links else flags | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "r+b", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _cut_torn_line(descriptor)
        write_all(descriptor, line + _NEWLINE)
        os.fsync(descriptor)
    sync_folder(path.parent)


def read_lines(path: Path) -> list[bytes]:
    """All whole lines without their newlines; a torn last line is skipped, a missing file is
    empty."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return []
    with os.fdopen(descriptor, "rb") as file:
        # Without the lock a reader could see a torn line and then what was written over it.
        fcntl.flock(file, fcntl.LOCK_SH)
        return file.read().split(_NEWLINE)[:-1]


def read_lines_reversed(path: Path) -> Generator[bytes]:
    """All whole lines without their newlines, last first, read lazily."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    with os.fdopen(descriptor, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        end = end_of_last_line(descriptor, os.fstat(descriptor).st_size)
        while end > 0:
            start = end_of_last_line(descriptor, end - 1)
            yield os.pread(descriptor, end - 1 - start, start)
            end = start


def sync_folder(folder: Path) -> None:
    """Sync a folder, to make names in it durable: a file's own sync does not cover its name."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _temporary_file(path: Path, data: bytes, mode: int) -> Generator[Path]:
    """Synced temporary file beside `path`, removed at the end unless it was renamed."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, mode)
    try:
        try:
            write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte, however few the system takes at a time."""
    remaining = memoryview(data)
    while remaining:
        remaining = remaining[os.write(descriptor, remaining) :]


def _cut_torn_line(descriptor: int) -> None:
    size = os.fstat(descriptor).st_size
    whole_lines_end = end_of_last_line(descriptor, size)
    if whole_lines_end < size:
        os.ftruncate(descriptor, whole_lines_end)
        os.fsync(descriptor)


def end_of_last_line(descriptor: int, size: int) -> int:
    """Offset at which the last whole line before `size` ends; 0 when there is none."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        newline = os.pread(descriptor, end - start, start).rfind(_NEWLINE)
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
