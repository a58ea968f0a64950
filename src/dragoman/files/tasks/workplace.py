"""The desk of an attempt: the task's folder to work in, its prompt, and the log of its output."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from dragoman.files.disk import Disk
from dragoman.files.layout import MOVING, folder_path, run_folder
from dragoman.files.putting import make_way
from dragoman.files.tasks.companion import settle_folder

PROMPT: Final = "inputs/prompt.md"
OUTPUT: Final = "output.log"


class Log(Protocol):
    """A file that grows."""

    def write(self, data: bytes) -> None:
        """Add to it."""
        ...

    def close(self) -> None:
        """Let go of it; twice does nothing."""
        ...


class GrowingDisk(Disk, Protocol):
    """A disk with files that can be kept open and added to."""

    def appender(self, path: str) -> Log:
        """A regular file to add to, made when there is none."""
        ...

    def close(self) -> None:
        """Let go of what was kept open."""
        ...


class Desk(Struct, frozen=True):
    """Where an attempt takes place."""

    home: Path
    """The task's own folder, with its inputs, work and outputs."""
    folder: Path
    prompt: Path
    log: Log


class Workplace:
    """Makes desks beneath the data directory. Nothing of a desk has to survive a power cut."""

    def __init__(self, root: Path, open_disk: Callable[[], GrowingDisk]) -> None:
        self._root = root.absolute()
        self._open_disk = open_disk

    def open(self, task_id: str, attempt: int, prompt: bytes) -> Desk:
        """The desk of an attempt that has begun: by now the task is in progress."""
        disk, home = self._open_disk(), folder_path("in-progress", task_id)
        try:
            make_way(disk, home.rpartition("/")[0])
            # The projector moves the same folder when it sees that the task was claimed.
            with disk.hold(MOVING):
                settle_folder(disk, task_id, "in-progress")
                disk.write(f"{home}/{PROMPT}", prompt)
                log = _open_log(disk, task_id, attempt)
        finally:
            disk.close()
        at = self._root / home
        return Desk(at, at / "work", at / PROMPT, log)


def _open_log(disk: GrowingDisk, task_id: str, attempt: int) -> Log:
    """The log of this attempt; that of the one before goes where its other files are."""
    folder, earlier = run_folder(task_id), run_folder(task_id, attempt - 1)
    make_way(disk, folder)
    if attempt > 1 and disk.look(f"{folder}/{OUTPUT}"):
        make_way(disk, earlier)
        # One that is there already was moved when this attempt began: it goes on after a restart.
        with suppress(FileNotFoundError):
            disk.move(f"{folder}/{OUTPUT}", f"{earlier}/{OUTPUT}")
    return disk.appender(f"{folder}/{OUTPUT}")
