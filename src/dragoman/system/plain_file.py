"""Opening files of the data directory: a pipe or a device in the place of one holds nobody up."""

import errno
import os
import stat
from pathlib import Path


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
