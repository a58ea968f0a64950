"""A file whose lock is waited for: made if need be, and found where nothing can be made."""

import errno
import os
from typing import Final

_PLAIN: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CANNOT_MAKE: Final = (errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT)


def open_lock(name: str, folder: int) -> int | None:
    """The open file; None: nobody needs a lock, because nobody can change anything there."""
    try:
        return os.open(name, _PLAIN | os.O_RDWR | os.O_CREAT, 0o644, dir_fd=folder)
    except OSError as error:
        if error.errno not in _CANNOT_MAKE:
            raise
        refused = error
    try:
        # One that is only read can be locked as well.
        return os.open(name, _PLAIN | os.O_RDONLY, dir_fd=folder)
    except FileNotFoundError:
        if refused.errno == errno.EROFS:
            return None
        raise refused from None
