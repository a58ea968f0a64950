"""Files that hold a secret: read only if nobody else on this machine can use them."""

import os
import stat
from pathlib import Path
from shlex import quote
from typing import Final

from dragoman.core.errors import DragomanError

OWNER_ONLY: Final = 0o600
_MAX_BYTES: Final = 65_536


class BadKey(DragomanError):
    """A key file that cannot be used; the detail says why and what to do."""

    code = "bad_key"


def read_private_file(path: Path, remedy: str) -> bytes:
    """Read the file; BadKey when others can access it, or (with the remedy) when it is not
    regular."""
    # Non-blocking, so that a pipe in place of the file cannot hang the hub.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise BadKey(f"The file {path} is not a regular file. {remedy}")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise BadKey(
                f"The file {path} can be used by others on this machine (its mode is "
                f"{stat.S_IMODE(mode):03o}). Make it yours alone with: chmod 600 {quote(str(path))}"
            )
        return os.read(descriptor, _MAX_BYTES)
    finally:
        os.close(descriptor)
