"""Task files that were about to be removed when the process was killed, put right."""

from typing import Final

from dragoman.files.disk import Disk
from dragoman.files.layout import REASON
from dragoman.files.putting import free_name, put
from dragoman.files.tasks.task_file import is_untouched
from dragoman.files.tasks.task_files import MOST_BYTES, reason_text

_TAKEN: Final = "it was saved while the file was removed, and another file has its name by now"


def bring_back(disk: Disk, folder: str, name: str, task_id: str) -> None:
    """Put a file whose removal was interrupted back if somebody has edited it. If its place is
    taken, keep it with a note; if it is unedited, remove it."""
    found, place = f"{folder}/{name}", f"{folder}/{task_id}.md"
    data = disk.read(found, MOST_BYTES)
    if data is not None and is_untouched(data):
        disk.remove(found)
    elif not disk.move(found, place):
        kept = free_name(disk, f"{folder}/{task_id}.rejected.md", REASON)
        put(disk, kept + REASON, reason_text(place, _TAKEN, kept))
        disk.move(found, kept)
