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
    """File opened for appending."""

    def write(self, data: bytes) -> None:
        """Append data."""
        ...

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        ...


class GrowingDisk(Disk, Protocol):
    """Disk that can open files for appending."""

    def appender(self, path: str) -> Log:
        """Open a regular file for appending; created when there is none."""
        ...

    def close(self) -> None:
        """Release open files and folders."""
        ...


class Desk(Struct, frozen=True):
    """Folders and files of an attempt."""

    home: Path
    """The task's own folder, with its inputs, work and outputs."""
    folder: Path
    prompt: Path
    log: Log


class Workplace:
    """Creates working folders in the data directory. Nothing of them has to survive a power cut."""

    def __init__(self, root: Path, open_disk: Callable[[], GrowingDisk]) -> None:
        self._root = root.absolute()
        self._open_disk = open_disk

    def open(self, task_id: str, attempt: int, prompt: bytes) -> Desk:
        """Create the working folder of an attempt that has begun: by now the task is in
        progress."""
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
    """Open the output log of this attempt; that of the previous one moves to its other files."""
    folder, earlier = run_folder(task_id), run_folder(task_id, attempt - 1)
    make_way(disk, folder)
    if attempt > 1 and disk.look(f"{folder}/{OUTPUT}"):
        make_way(disk, earlier)
        # An existing one was moved when this attempt began: the attempt goes on after a restart.
        with suppress(FileNotFoundError):
            disk.move(f"{folder}/{OUTPUT}", f"{earlier}/{OUTPUT}")
    return disk.appender(f"{folder}/{OUTPUT}")
