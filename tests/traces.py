"""A named pipe by which tests hear that programs live, and that they have ended."""

import os
import select
from pathlib import Path

_TIMEOUT_SECONDS = 30


class Trace:
    """A pipe that programs hold open while they live, so that their end can be heard."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def close(self) -> None:
        """Listen no more."""
        os.close(self._reader)

    def read_to_end(self) -> bytes:
        """What was written until everybody who held the pipe had ended."""
        data = b""
        while chunk := self.read():
            data += chunk
        return data

    def read(self) -> bytes:
        """The next words; none when nobody holds the pipe any more."""
        poller = select.poll()  # not select(), which knows the first 1,024 descriptors only
        poller.register(self._reader, select.POLLIN)
        assert poller.poll(_TIMEOUT_SECONDS * 1_000), "somebody lives on and says nothing"
        return os.read(self._reader, 100)
