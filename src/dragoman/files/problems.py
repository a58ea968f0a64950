"""What can be wrong with the files, said to whoever has to mend it."""

from dragoman.core.errors import DragomanError


class BadFile(DragomanError):
    """A file that people may edit cannot be understood; the detail says where and why."""

    code = "bad_file"


class BadArchive(DragomanError):
    """An archive cannot be taken over; the detail names the first thing that is wrong."""

    code = "bad_archive"


def at_line(number: int, problem: str) -> BadFile:
    """A problem in one line of a file, counted from 1."""
    return BadFile(f"line {number}: {problem}")
