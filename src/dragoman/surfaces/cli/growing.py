"""A file that may still grow, line by line."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from dragoman.surfaces.cli.call import raise_usage_error

_BLOCK_BYTES = 1 << 20
_MAX_DOCUMENT_BYTES = 256 << 20


def read_lines(
    file: BinaryIO, path: Path, wait: Callable[[], bool] | None
) -> Iterator[bytes | None]:
    """Lines of an open file and, with `wait`, those that are appended until it returns False.

    A line counts when it has ended, so that a line being written is not taken for a whole one.
    Without `wait` unterminated text at the end is a line too; with it, None means that all present
    lines were read.
    """
    unfinished = b""
    while True:
        block = file.read(_BLOCK_BYTES)
        if block:
            *lines, unfinished = (unfinished + block).split(b"\n")
            yield from lines
        elif wait is None:
            if unfinished:
                yield unfinished
            return
        elif path.stat().st_size < file.tell():
            raise_usage_error(f"{path} has become shorter while it was read: begin anew")
        else:
            yield None
            if not wait():
                return


def read_document(path: Path) -> bytes:
    """Read a file that is one document over many lines; of a very long one the beginning."""
    with path.open("rb") as file:
        return file.read(_MAX_DOCUMENT_BYTES)
