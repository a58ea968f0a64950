"""Named pipe by which tests notice that programs run, and that they have ended."""

import os
import select
from pathlib import Path

_TIMEOUT_SECONDS = 30


class Trace:
    """A pipe that programs hold open while they run; end of file means that all have ended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def close(self) -> None:
        os.close(self._reader)

    def read_to_end(self) -> bytes:
        """Return all that was written until every writer had ended."""
        data = b""
        while chunk := self.read():
            data += chunk
        return data

    def read(self) -> bytes:
        """Return the next bytes; none when no writer is left."""
        poller = select.poll()  # not select(), which is limited to the first 1,024 descriptors
        poller.register(self._reader, select.POLLIN)
        assert poller.poll(_TIMEOUT_SECONDS * 1_000), "somebody lives on and says nothing"
        return os.read(self._reader, 100)
