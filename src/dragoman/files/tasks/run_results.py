"""A run_result.json that no report made: told and put aside, never applied (S-AOF-8).

What an agent has reported is in the ledger, and the file shows it. A file in its place that was
not written here is somebody's mistake, or a try to end a task without saying so.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.files.disk import Disk
from dragoman.files.layout import REASON_SUFFIX
from dragoman.files.putting import find_free_name, write_if_changed
from dragoman.files.tasks.documents import render_result
from dragoman.files.tasks.pictures import TaskSnapshot, result_path

_MAX_RESULT_BYTES: Final = 16 << 20
_decode_result: Final = msgspec.json.Decoder().decode

RecordProblem = Callable[[str, str], None]
"""Records a problem, by the AOF id of the task and a sentence."""


class ResultFiles:
    """Checks the result files of attempts."""

    def __init__(self, disk: Disk, record: RecordProblem) -> None:
        self._disk = disk
        self._record = record

    def check_strays(self, snapshot: TaskSnapshot) -> None:
        """Remove or reject a result file that is not the one of the present attempt."""
        path = result_path(snapshot.task.aof_id)
        if self._disk.stat(path) is None:
            return
        data = self._disk.read(path, _MAX_RESULT_BYTES)
        if data is not None and data == snapshot.current.get(path):
            return
        if data is None or not _was_reported(snapshot, data):
            self._reject(snapshot, path)
        elif path not in snapshot.current:
            # An earlier attempt's, which has it among its own files.
            self._disk.remove(path)

    def _reject(self, snapshot: TaskSnapshot, path: str) -> None:
        folder = path.rpartition("/")[0]
        target = find_free_name(self._disk, f"{folder}/run_result.rejected.json", REASON_SUFFIX)
        problem = f"{path} is not a result that was reported; it was not applied"
        write_if_changed(
            self._disk, target + REASON_SUFFIX, f"{problem}. Send a completion.report.\n".encode()
        )
        self._disk.move(path, target)
        self._record(snapshot.task.aof_id, problem)


def _was_reported(snapshot: TaskSnapshot, data: bytes) -> bool:
    """True when it equals a result that some attempt has reported, even if it was replaced."""
    try:
        found = _decode_result(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False
    return any(
        found == _decode_result(render_result(snapshot.task.aof_id, report))
        for attempt in snapshot.history.attempts
        for report in (*attempt.replaced, attempt.report)
        if report is not None
    )
