"""Input that is not on the command line: a file, standard input, a growing file, a URL."""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from dragoman.core.errors import SettingsError
from dragoman.surfaces.cli.context import raise_usage_error

if TYPE_CHECKING:
    from dragoman.system.http_client import SafeHttpClient

STANDARD_INPUT = "-"

SourceArgument = Annotated[
    str,
    typer.Argument(
        metavar="FILE|-", show_default=False, help="The file; `-` or nothing: standard input."
    ),
]


def open_source(source: str) -> AbstractContextManager[BinaryIO]:
    """Open a file or standard input for reading."""
    return nullcontext(sys.stdin.buffer) if source == STANDARD_INPUT else open_file(Path(source))


def open_file(path: Path) -> BinaryIO:
    """Open a file for reading; ends the call if it cannot be read."""
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name cannot be one"
        raise_usage_error(f"{path} cannot be read: {reason}")


def check_readable(path: Path) -> None:
    """End the call unless this is a file that can be read more than once."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise_usage_error(f"{path} cannot be read: it is not a regular file")
    open_file(path).close()


def read_source(source: str, max_bytes: int) -> bytes:
    """Read up to `max_bytes` + 1 bytes, so that the caller can refuse input that is too long."""
    with open_source(source) as file:
        return file.read(max_bytes + 1)


def make_endpoint(
    url: str, label: str, allowed: Collection[str], seconds: float = 5.0
) -> "SafeHttpClient":
    """Make an HTTP endpoint for a typed URL; `label` is what a person calls it."""
    from dragoman.system.http_client import SafeHttpClient

    try:
        return SafeHttpClient(url, label, allowed, seconds=seconds)
    except SettingsError as error:
        raise_usage_error(error.detail)


# --- growing files ----------------------------------------------------------------------------

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
