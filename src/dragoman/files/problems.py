"""What can be wrong with the files, said to whoever has to mend it."""

import errno
from pathlib import Path

from dragoman.core.errors import DragomanError, StoreUnavailable

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class BadFile(DragomanError):
    """A file that people may edit cannot be understood; the detail says where and why."""

    code = "bad_file"


class BadArchive(DragomanError):
    """An archive or a backup is not what it must be; the detail names the first thing that is
    wrong."""

    code = "bad_archive"


class PlaceTaken(DragomanError):
    """Nothing is replaced: where it is to be made there is something, or somebody is at work."""

    code = "place_taken"


def at_line(number: int, problem: str) -> BadFile:
    """A problem in one line of a file, counted from 1."""
    return BadFile(f"line {number}: {problem}")


def explained(error: BaseException, target: Path) -> BaseException:
    """The same error, unless what it says of a full disk can be said better."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return StoreUnavailable(
            f"there is no room for {target} ({error.strerror}); nothing was left there. Free some "
            "space, or name a place on another disk"
        )
    return error
