"""A task's own folder: it moves with the task's status, and holds the agent's prompt and work.

Files that an agent writes late, in a folder that has moved, are merged into the present one.
"""

from collections.abc import Callable
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Final

from msgspec import Struct

from dragoman.core.base import Status
from dragoman.core.errors import Refusal
from dragoman.engine.ports import Store
from dragoman.engine.queries.tasks import find_task
from dragoman.files.atomic_write import force_folder, move_aside
from dragoman.files.layout import (
    FOLDERS_LOCK,
    OUTPUT_LOG,
    STATUSES,
    TASK_SUBFOLDERS,
    run_folder_path,
    task_folder_path,
)
from dragoman.system.safe_fs import FileStat, SafeDisk

# --- moving -----------------------------------------------------------------------------------

_MAX_MERGE_DEPTH: Final = 32
"""Depth to which two folders are merged; below it, one of them gets another name."""


def gather_task_folder(disk: SafeDisk, task_id: str, status: Status) -> None:
    """Move the task's folder to its status, merging all folders that it has.

    The caller holds FOLDERS_LOCK, and has read the status since.
    """
    target = task_folder_path(status, task_id)
    for other in STATUSES:
        if other != status:
            _move_folder(disk, task_folder_path(other, task_id), target)
    try:
        disk.make_folder(target)
        disk.make_folders(target, TASK_SUBFOLDERS)
    except NotADirectoryError:
        for part in TASK_SUBFOLDERS:
            force_folder(disk, f"{target}/{part}")


def _move_folder(disk: SafeDisk, old: str, target: str) -> None:
    found = disk.stat(old)
    if found is None:
        return
    if found.kind != "folder":
        move_aside(disk, old, target)
    # Renamed as a whole, so that an agent that has a file of it open goes on writing to it.
    elif not disk.move(old, target):
        force_folder(disk, target)
        if not disk.move(old, target):
            _merge_folders(disk, old, target, _MAX_MERGE_DEPTH)


def _merge_folders(disk: SafeDisk, old: str, new: str, depth: int) -> None:
    """Merge a folder into another; of files in both, both are kept."""
    for found in disk.list(old):
        source, target = f"{old}/{found.name}", f"{new}/{found.name}"
        if disk.move(source, target):
            continue
        if found.kind == "folder" and depth and _is_folder(disk.stat(target)):
            _merge_folders(disk, source, target, depth - 1)
        else:
            move_aside(disk, source, target)
    disk.remove_folder(old)


def _is_folder(found: FileStat | None) -> bool:
    return found is not None and found.kind == "folder"


# --- working folder of an attempt -------------------------------------------------------------

PROMPT_FILE: Final = "inputs/prompt.md"


class WorkingFolder(Struct, frozen=True):
    """Folders and files of an attempt."""

    home: Path
    """The task's own folder, with its inputs, work and outputs."""
    folder: Path
    prompt: Path
    log: FileIO


class WorkingFolders:
    """Creates working folders in the data directory. Nothing of them has to survive a power cut."""

    def __init__(self, root: Path, open_disk: Callable[[], SafeDisk]) -> None:
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


def _open_output_log(disk: SafeDisk, task_id: str, attempt: int) -> FileIO:
    """Open the output log of this attempt; that of the previous one moves to its other files."""
    folder, earlier = run_folder_path(task_id), run_folder_path(task_id, attempt - 1)
    force_folder(disk, folder)
    if attempt > 1 and disk.stat(f"{folder}/{OUTPUT_LOG}"):
        force_folder(disk, earlier)
        # An existing one was moved when this attempt began: the attempt goes on after a restart.
        with suppress(FileNotFoundError):
            disk.move(f"{folder}/{OUTPUT_LOG}", f"{earlier}/{OUTPUT_LOG}")
    return disk.open_append(f"{folder}/{OUTPUT_LOG}")


# --- lookup -----------------------------------------------------------------------------------

_FOLDER_ALIASES: Final = {"output": "outputs"}
"""run.json says `output/`, as the protocol shows it; on the disk it is `outputs/` (S-AOF-10)."""


def has_task_file(store: Store, disk: SafeDisk, task_id: str, ref: str) -> bool:
    """True when the folder of the task with this AOF id has a plain file at this path."""
    # `./a` and `a//b` mean `a` and `a/b`.
    first, *rest = [part for part in ref.split("/") if part not in ("", ".")] or [""]
    path = "/".join((_FOLDER_ALIASES.get(first, first), *rest))
    # The reporting agent works on the task, so its folder is in progress: no query is needed.
    if _is_file(disk, "in-progress", task_id, path):
        return True
    found = find_task(store, task_id)
    return not isinstance(found, Refusal) and _is_file(
        disk, found.task.status, found.task.aof_id, path
    )


def _is_file(disk: SafeDisk, status: Status, task_id: str, path: str) -> bool:
    try:
        found = disk.stat("/".join(filter(None, (task_folder_path(status, task_id), path))))
    except OSError:
        return False  # a path that cannot be read cannot be shown to anybody either
    return found is not None and found.kind == "file"
