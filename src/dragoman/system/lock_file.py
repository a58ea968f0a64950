"""A file whose lock is waited for: made if need be, and found where nothing can be made."""

import errno
import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from dragoman.core.errors import StoreUnavailable

_LOCK_FLAGS: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CANNOT_CREATE: Final = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)


def open_lock(name: str, folder: int, *, reads_only: bool = False) -> int | None:
    """Open a lock file; None when it never existed and cannot be created.

    Writers need it all the same, unless the file system is read-only. Readers go on without a lock,
    and check afterwards that no writer has begun.
    """
    try:
        return os.open(name, _LOCK_FLAGS | os.O_RDWR | os.O_CREAT, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno not in _CANNOT_CREATE:
            raise
        refused = error
    try:
        # A file opened read-only can be locked as well.
        return os.open(name, _LOCK_FLAGS | os.O_RDONLY, dir_fd=folder)
    except FileNotFoundError:
        if reads_only or refused.errno == errno.EROFS:
            return None
        raise refused from None


@contextmanager
def hold_flock(descriptor: int | None) -> Generator[None]:
    """Hold the lock of an open file, waiting for it; None means that there is no lock."""
    if descriptor is None:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def changed_while_read(path: str) -> StoreUnavailable:
    """Error: a writer began while this was read without a lock."""
    return StoreUnavailable(
        f"a writer started (it made {path}) during a read that had no lock; what was read may be "
        "inconsistent and is not used. Try again"
    )
