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


# --- notifier ---------------------------------------------------------------------------------


class OutboxFiles:
    """`notify.cursor`, `notify.failed.jsonl` and `notify.lock` in the data directory, or others
    that begin with another word.

    None of them may be a link: agents write beside them, and a link would lead out of the
    directory.
    """

    def __init__(self, data: Path, prefix: str = "notify") -> None:
        self._cursor = data / f"{prefix}.cursor"
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
        append_line(self._failed, line, follow_links=False)

    def read_failed(self) -> list[bytes]:
        """All recorded notifications that could not be delivered."""
        return _read_without_links(self._failed).splitlines()


def _read_without_links(path: Path) -> bytes:
    """Content of a file that is no link; empty when there is none."""
    try:
        return read_regular(path, follow_links=False)
    except FileNotFoundError:
        return b""


# --- deliverer --------------------------------------------------------------------------------


class DeliveryCursor:
    """`deliveries.cursor` in the data directory: how far the deliverer has come."""

    def __init__(self, data: Path) -> None:
        self._path = data / "deliveries.cursor"

    def load(self) -> bytes:
        """Saved cursor; empty before the first time."""
        return _read_without_links(self._path)

    def save(self, data: bytes) -> None:
        """Save the cursor, durably."""
        write_atomically(self._path, data)


# --- usage of agents --------------------------------------------------------------------------


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
