"""Task files that were about to be removed when the process was killed, put right."""

from typing import Final

from dragoman.files.disk import Disk
from dragoman.files.layout import REASON_SUFFIX
from dragoman.files.putting import find_free_name, write_if_changed
from dragoman.files.tasks.task_file import is_unedited
from dragoman.files.tasks.task_files import MAX_FILE_BYTES, format_reason

_REPLACED_REASON: Final = (
    "it was saved while the file was removed, and another file has its name by now"
)


def recover_discarded(disk: Disk, folder: str, name: str, task_id: str) -> None:
    """Put a file whose removal was interrupted back if somebody has edited it. If its place is
    taken, keep it with a note; if it is unedited, remove it."""
    found, target = f"{folder}/{name}", f"{folder}/{task_id}.md"
    data = disk.read(found, MAX_FILE_BYTES)
    if data is not None and is_unedited(data):
        disk.remove(found)
    elif not disk.move(found, target):
        rejected = find_free_name(disk, f"{folder}/{task_id}.rejected.md", REASON_SUFFIX)
        write_if_changed(
            disk, rejected + REASON_SUFFIX, format_reason(target, _REPLACED_REASON, rejected)
        )
        disk.move(found, rejected)
