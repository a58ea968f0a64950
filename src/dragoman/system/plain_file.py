"""Opening files of the data directory: a pipe or a device in the place of one holds nobody up."""

import errno
import os
import stat
from pathlib import Path


def open_plain(path: Path, flags: int, mode: int = 0o644) -> int:
    """A regular file, open; OSError when it is none, or cannot be opened."""
    descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC, mode)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_plain(path: Path) -> bytes:
    """What a regular file holds."""
    with os.fdopen(open_plain(path, os.O_RDONLY), "rb") as file:
        return file.read()
