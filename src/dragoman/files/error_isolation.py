"""Error isolation: a file that cannot be written holds up no other stream."""

import errno
from collections.abc import Callable
from typing import Final, TypeVar

from dragoman.core.errors import LedgerError, StoreUnavailable

Warn = Callable[[str], None]

_DISK_ERRORS: Final = (
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EROFS,
    errno.EIO,
    errno.EMFILE,
    errno.ENFILE,
    errno.ENOMEM,
)

R = TypeVar("R")


def is_systemic(error: Exception) -> bool:
    """True when an error concerns the disk or the store, and not only one stream."""
    if isinstance(error, OSError):
        return error.errno in _DISK_ERRORS
    return isinstance(error, StoreUnavailable)


class ErrorIsolator:
    """Runs work per stream, and remembers streams whose files could not be written, to retry
    them."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self.failed: dict[str, str] = {}
        """Stream -> problem."""

    def run(self, work: Callable[[], R], stream: str, label: str) -> R | None:
        """Run the work and return its result; None, with a warning, when it failed for this stream
        only."""
        try:
            return work()
        except LedgerError as error:
            problem = f"{error.detail}; run `dragoman verify`"
            self.record_failure(stream, f"the files of {stream} could not be written: {problem}")
            return None
        except OSError as error:
            if is_systemic(error):
                raise
            self.record_failure(
                stream,
                f"the files of {label} ({stream}) could not be written: "
                f"{error.filename or 'its path'}: {error.strerror}; move away what is in the way, "
                "or fix its permissions, then `dragoman tick` brings the files up to date",
            )
            return None

    def record_failure(self, stream: str, problem: str) -> None:
        """Remember that the files of a stream could not be written; the next scan retries."""
        self.failed[stream] = problem
        self._warn(problem)

    def failure_summary(self) -> str:
        """Short summary of the failures; empty when there are none."""
        problem, *more = self.failed.values() or ("",)
        return problem if not more else f"{problem} (and the files of {len(more)} more)"
