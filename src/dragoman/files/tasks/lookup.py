"""Looking for one file in the folder of a task."""

from typing import Final

from dragoman.core.errors import Refusal
from dragoman.core.events import Status
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task
from dragoman.files.disk import Disk
from dragoman.files.layout import task_folder_path

_FOLDER_ALIASES: Final = {"output": "outputs"}
"""run.json says `output/`, as the protocol shows it; on the disk it is `outputs/` (S-AOF-10)."""


def has_task_file(store: Store, disk: Disk, task_id: str, ref: str) -> bool:
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


def _is_file(disk: Disk, status: Status, task_id: str, path: str) -> bool:
    try:
        found = disk.stat("/".join(filter(None, (task_folder_path(status, task_id), path))))
    except OSError:
        return False  # a path that cannot be read cannot be shown to anybody either
    return found is not None and found.kind == "file"
