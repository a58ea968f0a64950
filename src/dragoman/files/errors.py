"""Errors of files that people edit and of archives."""

import errno
from pathlib import Path

from dragoman.core.errors import DragomanError, StoreUnavailable

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
