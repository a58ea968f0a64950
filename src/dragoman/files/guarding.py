"""What cannot be written of one thing does not hold up the files of all others."""

import errno
from collections.abc import Callable
from typing import Final, TypeVar

from dragoman.core.errors import LedgerError, StoreUnavailable

Warn = Callable[[str], None]

_OF_THE_DISK: Final = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
)

R = TypeVar("R")


def concerns_all(error: Exception) -> bool:
    """Whether a fault is of the disk or of the store, and not of the one thing that met it."""
    if isinstance(error, OSError):
        return error.errno in _OF_THE_DISK
    return isinstance(error, StoreUnavailable)


class Guard:
    """Works on one stream after the other; those whose files could not be written are kept, so
    that they are tried again."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self.behind: dict[str, str] = {}
        """Stream -> why its files lag."""

    def run(self, work: Callable[[], R], stream: str, what: str) -> R | None:
        """What the work comes to; None, and a warning, when only the files of this one suffer."""
        try:
            return work()
        except LedgerError as error:
            words = f"{error.detail}; run `dragoman verify`"
            self.fell_behind(stream, f"the files of {stream} could not be written: {words}")
            return None
        except OSError as error:
            if concerns_all(error):
                raise
            self.fell_behind(
                stream,
                f"the files of {what} ({stream}) could not be written: "
                f"{error.filename or 'its path'}: {error.strerror}; move away what is in the way, "
                "or mend its rights, then `dragoman tick` brings the files level",
            )
            return None

    def fell_behind(self, stream: str, words: str) -> None:
        """The files of a stream could not be written; the next look around tries again."""
        self.behind[stream] = words
        self._warn(words)

    def trouble(self) -> str:
        """What is wrong, in short; empty: nothing is."""
        words, *more = self.behind.values() or ("",)
        return words if not more else f"{words} (and the files of {len(more)} more)"
