"""What cannot be written of one thing does not hold up the files of all others."""

import errno
from collections.abc import Callable
from typing import Final, TypeVar

from dragoman.core.errors import LedgerError

Warn = Callable[[str], None]

_IN_THE_WAY: Final = (errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EEXIST, errno.ENOTEMPTY)

R = TypeVar("R")


def guarded(work: Callable[[], R], warn: Warn, stream: str, what: str) -> R | None:
    """What the work comes to; None, and a warning, when only the files of this one suffer."""
    try:
        return work()
    except LedgerError as error:
        warn(f"the files of {stream} could not be written: {error.detail}; run `dragoman verify`")
        return None
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        warn(
            f"the files of {what} could not be written: {error.filename or 'its path'}: "
            f"{error.strerror}; move away what is in the way and run `dragoman tick`"
        )
        return None
