"""How much each agent has used of its day: a file in the data directory."""

from pathlib import Path

from dragoman.system.files import write_atomically


class UsageFile:
    """`agent-usage.json`."""

    def __init__(self, data: Path) -> None:
        self._path = data / "agent-usage.json"

    def load(self) -> bytes:
        """What was saved last; empty before the first time."""
        try:
            return self._path.read_bytes()
        except FileNotFoundError:
            return b""

    def save(self, data: bytes) -> None:
        """Keep it, durably."""
        write_atomically(self._path, data)
