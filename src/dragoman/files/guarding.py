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
    """True when an error concerns the disk or the store, and not only one stream."""
    if isinstance(error, OSError):
        return error.errno in _OF_THE_DISK
    return isinstance(error, StoreUnavailable)


class Guard:
    """Runs work per stream, and remembers streams whose files could not be written, to retry
    them."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self.behind: dict[str, str] = {}
        """Stream -> problem."""

    def run(self, work: Callable[[], R], stream: str, what: str) -> R | None:
        """Run the work and return its result; None, with a warning, when it failed for this stream
        only."""
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
                "or fix its permissions, then `dragoman tick` brings the files up to date",
            )
            return None

    def fell_behind(self, stream: str, words: str) -> None:
        """Remember that the files of a stream could not be written; the next scan retries."""
        self.behind[stream] = words
        self._warn(words)

    def trouble(self) -> str:
        """Short summary of the failures; empty when there are none."""
        words, *more = self.behind.values() or ("",)
        return words if not more else f"{words} (and the files of {len(more)} more)"
