"""The desk of an attempt: the task's folder to work in, its prompt, and the log of its output."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from dragoman.files.disk import Disk
from dragoman.files.layout import FOLDERS_LOCK, run_folder_path, task_folder_path
from dragoman.files.putting import force_folder
from dragoman.files.tasks.companion import gather_task_folder

PROMPT_FILE: Final = "inputs/prompt.md"
OUTPUT_FILE: Final = "output.log"


class OutputLog(Protocol):
    """File opened for appending."""

    def write(self, data: bytes) -> None:
        """Append data."""
        ...

    def close(self) -> None:
        """Close the file; closing twice does nothing."""
        ...


class AppendDisk(Disk, Protocol):
    """Disk that can open files for appending."""

    def open_append(self, path: str) -> OutputLog:
        """Open a regular file for appending; created when there is none."""
        ...

    def close(self) -> None:
        """Release open files and folders."""
        ...


class WorkingFolder(Struct, frozen=True):
    """Folders and files of an attempt."""

    home: Path
    """The task's own folder, with its inputs, work and outputs."""
    folder: Path
    prompt: Path
    log: OutputLog


class WorkingFolders:
    """Creates working folders in the data directory. Nothing of them has to survive a power cut."""

    def __init__(self, root: Path, open_disk: Callable[[], AppendDisk]) -> None:
        self._root = root.absolute()
        self._open_disk = open_disk

    def open(self, task_id: str, attempt: int, prompt: bytes) -> WorkingFolder:
        """Create the working folder of an attempt that has begun: by now the task is in
        progress."""
        disk, home = self._open_disk(), task_folder_path("in-progress", task_id)
        try:
            force_folder(disk, home.rpartition("/")[0])
            # The projector moves the same folder when it sees that the task was claimed.
            with disk.lock_nested(FOLDERS_LOCK):
                gather_task_folder(disk, task_id, "in-progress")
                disk.write(f"{home}/{PROMPT_FILE}", prompt)
                log = _open_output_log(disk, task_id, attempt)
        finally:
            disk.close()
        folder = self._root / home
        return WorkingFolder(folder, folder / "work", folder / PROMPT_FILE, log)


def _open_output_log(disk: AppendDisk, task_id: str, attempt: int) -> OutputLog:
    """Open the output log of this attempt; that of the previous one moves to its other files."""
    folder, earlier = run_folder_path(task_id), run_folder_path(task_id, attempt - 1)
    force_folder(disk, folder)
    if attempt > 1 and disk.stat(f"{folder}/{OUTPUT_FILE}"):
        force_folder(disk, earlier)
        # An existing one was moved when this attempt began: the attempt goes on after a restart.
        with suppress(FileNotFoundError):
            disk.move(f"{folder}/{OUTPUT_FILE}", f"{earlier}/{OUTPUT_FILE}")
    return disk.open_append(f"{folder}/{OUTPUT_FILE}")
