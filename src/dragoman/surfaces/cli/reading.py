"""What a command reads that is not on its line: a file, standard input, or what an address has."""

import sys
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from dragoman.core.errors import SettingsError
from dragoman.surfaces.cli.call import raise_usage_error

if TYPE_CHECKING:
    from dragoman.system.fetch import SafeHttpClient

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
    from dragoman.system.fetch import SafeHttpClient

    try:
        return SafeHttpClient(url, label, allowed, seconds=seconds)
    except SettingsError as error:
        raise_usage_error(error.detail)
