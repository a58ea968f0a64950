"""The files of the notifier: how far each target has come, and what was given up."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.core.errors import StoreCorrupt
from dragoman.system.files import append_line, write_atomically


class OutboxFiles:
    """`notify.cursor`, `notify.failed.jsonl` and `notify.lock` in the data directory."""

    def __init__(self, data: Path) -> None:
        self._cursor = data / "notify.cursor"
        self._failed = data / "notify.failed.jsonl"
        self._lock = data / "notify.lock"

    @contextmanager
    def alone(self) -> Generator[bool]:
        """Whether nobody else delivers just now; nobody can begin to while this lasts."""
        descriptor = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(descriptor)

    def load(self) -> bytes:
        """What was saved last; empty before the first time."""
        try:
            return self._cursor.read_bytes()
        except FileNotFoundError:
            return b""

    def save(self, data: bytes) -> None:
        """Keep it, durably."""
        write_atomically(self._cursor, data)

    def damaged(self) -> StoreCorrupt:
        """What to say when what was saved cannot be read."""
        return StoreCorrupt(
            f"{self._cursor} is damaged, so nobody is notified: bring it back from a backup, or "
            "move it away, and notifications go on with what happens from then on"
        )

    def give_up(self, line: bytes) -> None:
        """Write down what could not be delivered."""
        append_line(self._failed, line)
