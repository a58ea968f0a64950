"""The files of the notifier: how far each target has come, and what was given up."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.core.errors import StoreCorrupt
from dragoman.system.files import append_line, write_atomically
from dragoman.system.plain_file import open_regular


class OutboxFiles:
    """`notify.cursor`, `notify.failed.jsonl` and `notify.lock` in the data directory.

    None of them may be a link: agents write beside them, and a link would lead out of the
    directory.
    """

    def __init__(self, data: Path) -> None:
        self._cursor = data / "notify.cursor"
        self._failed = data / "notify.failed.jsonl"
        self._lock = data / "notify.lock"

    @contextmanager
    def try_lock(self) -> Generator[bool]:
        """Hold the notifier's lock if it is free; yields False when another process delivers."""
        descriptor = open_regular(self._lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
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
        """Saved cursor; empty before the first time."""
        return _read_without_links(self._cursor)

    def save(self, data: bytes) -> None:
        """Save the cursor, durably."""
        write_atomically(self._cursor, data)

    def damaged_error(self) -> StoreCorrupt:
        """Error for a saved cursor that cannot be decoded."""
        return StoreCorrupt(
            f"{self._cursor} is damaged, so no notifications are sent: restore it from a backup, "
            "or move it away, and notifications continue with what happens from then on"
        )

    def record_failed(self, line: bytes) -> None:
        """Record a notice that could not be delivered."""
        append_line(self._failed, line, follow_links=False)

    def read_failed(self) -> list[bytes]:
        """All recorded notices that could not be delivered."""
        return _read_without_links(self._failed).splitlines()


def _read_without_links(path: Path) -> bytes:
    """Content of a file that is no link; empty when there is none."""
    try:
        descriptor = open_regular(path, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return b""
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
