"""Small state files in the data directory: hub id, notifier cursor, usage of agents."""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from dragoman.core.errors import StoreCorrupt
from dragoman.system.safe_fs import (
    append_line,
    create_atomically,
    open_regular,
    read_regular,
    write_atomically,
)

# --- hub id -----------------------------------------------------------------------------------


def load_or_create_hub_id(data: Path, new_id: Callable[[], str]) -> str:
    """Id of this hub, created once in `hub.id`; hubs that share their keys still have ids of their
    own."""
    path = data / "hub.id"
    if not path.exists():
        create_atomically(path, f"hub-{new_id()}\n".encode())
    return path.read_text(encoding="ascii").strip()


# --- files that are replaced as a whole --------------------------------------------------------


class StateFile:
    """A file that is replaced as a whole. It may be no link: agents write beside it, and a link
    would lead out of the directory."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> bytes:
        """Saved content; empty before the first time."""
        try:
            return read_regular(self._path, follow_links=False)
        except FileNotFoundError:
            return b""

    def save(self, data: bytes) -> None:
        """Save the content, durably."""
        try:
            write_atomically(self._path, data)
        except OSError as error:  # named after the file itself, not after its temporary name
            raise OSError(error.errno, error.strerror, str(self._path)) from error


# --- notifier ---------------------------------------------------------------------------------


class OutboxFiles(StateFile):
    """`notify.cursor`, `notify.failed.jsonl` and `notify.lock` in the data directory, or others
    that begin with another word. None of them may be a link."""

    def __init__(self, data: Path, prefix: str = "notify") -> None:
        super().__init__(data / f"{prefix}.cursor")
        self._failed = data / f"{prefix}.failed.jsonl"
        self._lock = data / f"{prefix}.lock"

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

    def damaged_error(self) -> StoreCorrupt:
        """Error for a saved cursor that cannot be decoded."""
        return StoreCorrupt(
            f"{self._path} is damaged, so no notifications are sent: restore it from a backup, "
            "or move it away, and notifications continue with what happens from then on"
        )

    def record_failed(self, line: bytes) -> None:
        append_line(self._failed, line, follow_links=False)

    def read_failed(self) -> list[bytes]:
        """All recorded notifications that could not be delivered."""
        return StateFile(self._failed).load().splitlines()
