"""A run_result.json that no report made: told and put aside, never applied (S-AOF-8).

What an agent has reported is in the ledger, and the file shows it. A file in its place that was
not written here is somebody's mistake, or a try to end a task without saying so.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.files.disk import Disk
from dragoman.files.layout import REASON
from dragoman.files.putting import free_name, put
from dragoman.files.tasks.documents import result_document
from dragoman.files.tasks.pictures import Picture, result_path

_MOST_BYTES: Final = 16 << 20
_decode: Final = msgspec.json.Decoder().decode

Told = Callable[[str, str], None]
"""Records a problem, by the AOF id of the task and a sentence."""


class RunResults:
    """Checks the result files of attempts."""

    def __init__(self, disk: Disk, tell: Told) -> None:
        self._disk = disk
        self._tell = tell

    def mind(self, shown: Picture) -> None:
        """Remove or reject a result file that is not the one of the present attempt."""
        path = result_path(shown.task.aof_id)
        if self._disk.look(path) is None:
            return
        data = self._disk.read(path, _MOST_BYTES)
        if data is not None and data == shown.current.get(path):
            return
        if data is None or not _was_reported(shown, data):
            self._put_aside(shown, path)
        elif path not in shown.current:
            # An earlier attempt's, which has it among its own files.
            self._disk.remove(path)

    def _put_aside(self, shown: Picture, path: str) -> None:
        folder = path.rpartition("/")[0]
        kept = free_name(self._disk, f"{folder}/run_result.rejected.json", REASON)
        said = f"{path} is not a result that was reported; it was not applied"
        put(self._disk, kept + REASON, f"{said}. Send a completion.report.\n".encode())
        self._disk.move(path, kept)
        self._tell(shown.task.aof_id, said)


def _was_reported(shown: Picture, data: bytes) -> bool:
    """True when it equals a result that some attempt has reported, even if it was replaced."""
    try:
        found = _decode(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return any(
        found == _decode(result_document(shown.task.aof_id, report))
        for attempt in shown.story.attempts
        for report in (*attempt.replaced, attempt.report)
        if report is not None
    )
