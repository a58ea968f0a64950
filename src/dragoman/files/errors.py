"""Errors of files and archives, and their isolation: a bad file holds up no other stream."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

from dragoman.core.errors import DragomanError, LedgerError, StoreUnavailable

# --- errors -----------------------------------------------------------------------------------

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class BadFile(DragomanError):
    """A file that people may edit cannot be parsed; the detail says where and why."""

    code = "bad_file"


class BadArchive(DragomanError):
    """An archive or a backup is not valid; the detail names the first problem."""

    code = "bad_archive"


class TargetTaken(DragomanError):
    """The target exists or is in use: nothing is replaced."""

    code = "target_in_use"


def line_error(number: int, problem: str) -> BadFile:
    """Error in one line of a file, counted from 1."""
    return BadFile(f"line {number}: {problem}")


def explain_no_space(error: BaseException, path: Path) -> BaseException:
    """Replace an error about a full disk by a clearer one; return any other as it is."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return StoreUnavailable(
            f"there is no room for {path} ({error.strerror}); nothing was left there. Free some "
            "space, or choose a path on another disk"
        )
    return error


# --- error isolation --------------------------------------------------------------------------

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
