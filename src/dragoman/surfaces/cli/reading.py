"""What a command reads that is not on its line: a file, standard input, or what an address has."""

import sys
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from dragoman.core.errors import SettingsError
from dragoman.surfaces.cli.call import wrong_usage

if TYPE_CHECKING:
    from dragoman.system.fetch import Endpoint

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
        why = error.strerror if isinstance(error, OSError) else "its name cannot be one"
        wrong_usage(f"{path} cannot be read: {why}")


def check_readable(path: Path) -> None:
    """End the call unless this is a file that can be read more than once."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        wrong_usage(f"{path} cannot be read: it is not a regular file")
    open_file(path).close()


def read_source(source: str, most: int) -> bytes:
    """Read up to `max_bytes` + 1 bytes, so that the caller can refuse input that is too long."""
    with open_source(source) as file:
        return file.read(most + 1)


def endpoint_at(
    url: str, called: str, allowed: Collection[str], seconds: float = 5.0
) -> "Endpoint":
    """Make an HTTP endpoint for a typed URL; `label` is what a person calls it."""
    from dragoman.system.fetch import Endpoint

    try:
        return Endpoint(url, called, allowed, seconds=seconds)
    except SettingsError as error:
        wrong_usage(error.detail)
