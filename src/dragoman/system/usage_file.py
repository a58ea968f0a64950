"""How much each agent has used of its day: a file in the data directory."""

from pathlib import Path

from dragoman.system.files import write_atomically
from dragoman.system.plain_file import read_regular


class UsageFile:
    """Usage of each agent today, in `agent-usage.json`."""

    def __init__(self, data: Path) -> None:
        self._path = data / "agent-usage.json"

    def load(self) -> bytes:
        """Saved content; empty before the first time."""
        try:
            return read_regular(self._path)
        except FileNotFoundError:
            return b""

    def save(self, data: bytes) -> None:
        """Save the content, durably."""
        try:
            write_atomically(self._path, data)
        except OSError as error:  # named after the file itself, not after its temporary name
            raise OSError(error.errno, error.strerror, str(self._path)) from error
