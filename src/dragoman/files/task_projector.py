"""Projection of tasks to files; edits and moves that people made are submitted first.

A file in place of run_result.json that no report made is reported and moved aside, never
applied (S-AOF-8): the ledger has what an agent reported. Such a file is a mistake, or an
attempt to end a task without a completion.report.
"""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, Literal, TypeVar

import msgspec
from msgspec import Struct

from dragoman.core.actor import Actor, RejectMessage
from dragoman.core.base import Command, Status
from dragoman.core.errors import Refusal, Refused
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.hub import Hub
from dragoman.files.atomic_write import (
    ensure_folder,
    find_free_name,
    remove_if_unchanged,
    stage,
    stage_if_changed,
    stage_in_task_folder,
    write_if_changed,
)
from dragoman.files.errors import BadFile, ErrorIsolator
from dragoman.files.layout import (
    FOLDERS_LOCK,
    REASON_SUFFIX,
    STATUSES,
    TASKS,
    has_mtime_stamp,
    mtime_stamp,
    rejected_path,
    run_folder_path,
    staged_path,
    task_path,
)
from dragoman.files.task_file import format_task_file, is_unedited, parse_task_file
from dragoman.files.task_file_edits import commands_of_edit
from dragoman.files.task_snapshot import (
    TaskSnapshot,
    TaskSnapshots,
    heartbeat_path,
    render_result,
    result_path,
)
from dragoman.files.task_work_folder import gather_task_folder
from dragoman.system.safe_fs import FileStat, SafeDisk
from dragoman.text.safe_text import safe_text

# --- result files -----------------------------------------------------------------------------

_MAX_RESULT_BYTES: Final = 16 << 20

_decode_result: Final = msgspec.json.Decoder().decode

RecordProblem = Callable[[str, str], None]
"""Records a problem, by the AOF id of the task and a sentence."""


class ResultFiles:
    """Checks the result files of attempts."""

    def __init__(self, disk: SafeDisk, record: RecordProblem) -> None:
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


# --- projection -------------------------------------------------------------------------------

MAX_FILE_BYTES: Final = 16 << 20
"""A longer task file was not written here, and is not read."""

_DIALECT: Final = "aof"
"""Dialect of the task files."""

_MAX_TRIES: Final = 8

_BATCH: Final = 64

_BUSY_WARNING: Final = (
    "the files of a task ({stream}) were changed or removed by somebody else each time that they "
    "were written; `dragoman tick` tries again"
)

T = TypeVar("T")

R = TypeVar("R")

_EditResult = Literal["", "taken", "refused"]
"""Result of an edit; empty when there was none."""

FoundFiles = dict[Status, FileStat]
"""Files of a task by status; more than one when it was copied."""


class _Plan(Struct):
    """Pending projection of one task."""

    stream: str
    snapshot: TaskSnapshot
    found: FoundFiles
    answered: int
    is_task_file_staged: bool = False
    is_disturbed: bool = False
    """True when a file vanished during writing: an agent may remove files of its folder at any
    moment."""
    staged: list[str] = []
    """Other files whose next content is staged."""


class _Heartbeat(Struct, rename="camel"):
    last_heartbeat: str


_heartbeat_decoder: Final = msgspec.json.Decoder(_Heartbeat)


class TaskProjector:
    """Projects tasks to files, after submitting what people have edited in them."""

    def __init__(
        self,
        hub: Hub,
        disk: SafeDisk,
        snapshots: TaskSnapshots,
        actor: Actor,
        isolator: ErrorIsolator,
    ) -> None:
        self._hub = hub
        self._disk = disk
        self._isolator = isolator
        self._snapshots = snapshots
        self._actor = actor
        self._results = ResultFiles(disk, self._record_rejection)
        self._accepted: dict[str, FileStat] = {}
        """Path -> file whose edit is recorded, but which is not rewritten yet. The recorded text
        may differ from the typed one (a secret is redacted), so only this tells that the edit was
        answered."""

    def project(self, streams: Iterable[str]) -> int:
        """Project tasks to files; returns how many edits were answered."""
        answered, waiting = 0, dict.fromkeys(streams, _MAX_TRIES)
        while waiting:
            batch = list(islice(waiting, _BATCH))
            # Contents are staged beside the files until all of them are durable, then published.
            plans = [plan for stream in batch if (plan := self._isolated(self._prepare, stream))]
            answered += sum(plan.answered for plan in plans)
            unfinished = {
                plan.stream for plan in plans if self._isolated(self._publish, plan) is False
            }
            for stream in batch:
                tries_left = waiting.pop(stream) - 1
                if tries_left and stream in unfinished:
                    waiting[stream] = tries_left
                elif stream in unfinished:
                    self._isolator.record_failure(stream, _BUSY_WARNING.format(stream=stream))
        return answered

    def _isolated(self, work: Callable[[T], R], subject: T) -> R | None:
        return self._isolator.run(lambda: work(subject), _stream_of(subject), "a task")

    def project_heartbeats(self, streams: Iterable[str]) -> None:
        """Project heartbeats and results only, and reject results that nobody has reported."""
        for stream in streams:
            self._isolated(self._project_heartbeat, stream)

    def _project_heartbeat(self, stream: str) -> None:
        snapshot = self._snapshots.load(stream)
        if snapshot is not None:
            self._results.check_strays(snapshot)
            self._archive_heartbeat(snapshot)
            for path in (heartbeat_path(snapshot.task.aof_id), result_path(snapshot.task.aof_id)):
                if path in snapshot.current:
                    at = snapshot.task.updated_at
                    write_if_changed(self._disk, path, snapshot.current[path], at)

    def _find_files(self, snapshot: TaskSnapshot) -> FoundFiles:
        found: FoundFiles = {}
        for status in STATUSES:
            info = self._disk.stat(self._path(snapshot, status))
            if info is not None:
                found[status] = info
        return found

    def _path(self, snapshot: TaskSnapshot, status: Status) -> str:
        return task_path(status, snapshot.task.aof_id)

    # Edits

    def _apply_edits(self, snapshot: TaskSnapshot, found: FoundFiles) -> int:
        """Submit the edits in the files of a task; returns how many were answered."""
        answered = 0
        for status, info in found.items():
            result = self._apply_edit(snapshot, status, info, found)
            answered += bool(result)
            if result == "taken":
                break  # the edits of the other files are compared with the task's new state
        return answered

    def _apply_edit(
        self, snapshot: TaskSnapshot, folder: Status, info: FileStat, found: FoundFiles
    ) -> _EditResult:
        """Submit the edit in the file of this folder, if there is one that was not answered yet."""
        path = self._path(snapshot, folder)
        if self._accepted.get(path) == info:
            return ""
        data = self._disk.read(path, MAX_FILE_BYTES) if info.kind == "file" else None
        if data is None and has_mtime_stamp(path, info.size, info.mtime_ns):
            return ""  # written here and unedited, however long it is
        if data is None:
            return self._reject_edit(
                snapshot, path, info, None, "it is not a readable regular file"
            )
        try:
            commands = self._derive_commands(snapshot, folder, data, found)
        except BadFile as bad:
            return self._reject_edit(snapshot, path, info, data, bad.detail)
        if not commands:
            return ""
        refusal = self._submit(commands)
        if refusal is None:
            self._accepted[path] = info
            return "taken"
        return self._reject_edit(snapshot, path, info, data, f"{refusal.code}: {refusal.detail}")

    def _derive_commands(
        self, snapshot: TaskSnapshot, folder: Status, data: bytes, found: FoundFiles
    ) -> tuple[Command, ...]:
        is_ours, path = is_unedited(data), self._path(snapshot, folder)
        # An interrupted projection has moved it here: the next content is still staged beside it.
        if is_ours and (
            folder == snapshot.task.status or self._disk.stat(staged_path(path)) is not None
        ):
            return ()
        file = parse_task_file(data)
        if is_ours and file.status == folder:
            return ()
        stream = f"task:{snapshot.task.id}"
        before = self._snapshots.task_file_at(stream, file.version)
        base = None if before is None else parse_task_file(format_task_file(before))
        current = parse_task_file(format_task_file(snapshot.file))
        others = found.keys() - {folder}
        return commands_of_edit(snapshot.task.aof_id, file, folder, base, current, others)

    def _submit(self, commands: tuple[Command, ...]) -> Refusal | None:
        try:
            self._hub.submit(self._actor, *commands)
        except Refused as refused:
            return refused.refusal
        return None

    def _record_rejection(self, task_id: str, problem: str) -> None:
        """Record that a file was rejected as a message."""
        self._submit((RejectMessage("invalid_envelope", problem, task_id, _DIALECT),))

    def _reject_edit(
        self, snapshot: TaskSnapshot, path: str, info: FileStat, data: bytes | None, reason: str
    ) -> _EditResult:
        """Write the reason beside the task's file, and keep the edited file under another name."""
        home = self._path(snapshot, snapshot.task.status)
        target = find_free_name(self._disk, rejected_path(home), REASON_SUFFIX)
        is_ours = data is not None and is_unedited(data)
        write_if_changed(
            self._disk,
            target + REASON_SUFFIX,
            format_reason(path, reason, "" if is_ours else target),
        )
        if not is_ours:
            self._disk.move(path, target)
        elif not remove_if_unchanged(self._disk, path, info):
            # Somebody has saved it meanwhile: this new edit comes next.
            self._disk.remove(target + REASON_SUFFIX)
            return ""
        return "refused"

    # Projection

    def _prepare(self, stream: str) -> _Plan | None:
        """Submit edits, and stage every content that differs."""
        snapshot = self._snapshots.load(stream)
        if snapshot is None:
            return None
        found = self._find_files(snapshot)
        answered = self._apply_edits(snapshot, found)
        plan = _Plan(stream, snapshot, found, answered)
        # An answer may have changed the ledger or the files, so everything is read again.
        if not answered:
            try:
                self._stage(plan)
            except FileNotFoundError:
                plan.is_disturbed = True
        return plan

    def _stage(self, plan: _Plan) -> None:
        snapshot = plan.snapshot
        task, home = snapshot.task, self._path(snapshot, snapshot.task.status)
        data = format_task_file(snapshot.file)
        with self._disk.lock_nested(FOLDERS_LOCK):
            # The status of now: an agent that was started meanwhile works in its folder.
            status = self._snapshots.status_of(plan.stream) or task.status
            gather_task_folder(self._disk, task.aof_id, status)
        self._results.check_strays(snapshot)
        self._archive_heartbeat(snapshot)
        if self._is_current(home, data, plan.found, task.status):
            self._disk.sync_later(home)
        else:
            stage(self._disk, home, data, mtime_stamp(home, len(data), task.updated_at))
            plan.is_task_file_staged = True
        for path, content in snapshot.current.items():
            if path.startswith(f"{TASKS}/"):
                is_new = stage_in_task_folder(self._disk, path, content, task.updated_at)
            else:
                is_new = stage_if_changed(self._disk, path, content, task.updated_at)
            if is_new:
                plan.staged.append(path)
        for path, content in snapshot.write_once.items():
            if path not in snapshot.current and self._disk.stat(path) is None:
                stage(self._disk, path, content)
                plan.staged.append(path)

    def _publish(self, plan: _Plan) -> bool:
        """Publish the staged files; False when the task has to be projected again."""
        if plan.answered or plan.is_disturbed or self._has_changed(plan):
            return False
        if not self._remove_other_copies(plan):
            return False
        if plan.is_task_file_staged:
            status = plan.snapshot.task.status
            home = self._path(plan.snapshot, status)
            if not self._disk.replace_if_unchanged(staged_path(home), home, plan.found.get(status)):
                return False
        try:
            for path in plan.staged:
                self._disk.replace(staged_path(path), path)
        except FileNotFoundError:
            return False
        for status in plan.found:
            self._accepted.pop(self._path(plan.snapshot, status), None)
        return True

    def _has_changed(self, plan: _Plan) -> bool:
        """True when somebody has changed the task's file since it was read."""
        status = plan.snapshot.task.status
        return any(
            self._disk.stat(self._path(plan.snapshot, place)) != plan.found.get(place)
            for place in (status, *plan.found)
        )

    def _is_current(self, home: str, data: bytes, found: FoundFiles, status: Status) -> bool:
        info = found.get(status)
        return (
            info is not None
            and len(found) == 1
            and has_mtime_stamp(home, info.size, info.mtime_ns)
            and self._disk.read(home, len(data)) == data
        )

    def _remove_other_copies(self, plan: _Plan) -> bool:
        """Leave the task's file in one folder only, without it ever missing; False when somebody
        changed it meanwhile."""
        home = plan.snapshot.task.status
        for status, info in list(plan.found.items()):
            if status == home:
                continue
            old = self._path(plan.snapshot, status)
            if self._disk.move(old, self._path(plan.snapshot, home)):
                plan.found[home] = info
            elif not remove_if_unchanged(self._disk, old, info):
                return False
        return True

    def _archive_heartbeat(self, snapshot: TaskSnapshot) -> None:
        """Move the heartbeat file of the previous attempt to that attempt's files."""
        if len(snapshot.history.attempts) < 2:
            return
        previous, last = snapshot.history.attempts[-2:]
        path = heartbeat_path(snapshot.task.aof_id)
        data = self._disk.read(path, MAX_FILE_BYTES)
        if data is None or _heartbeat_time(data) >= last.started_at:
            return
        target = f"{run_folder_path(snapshot.task.aof_id, previous.number)}/run_heartbeat.json"
        ensure_folder(self._disk, run_folder_path(snapshot.task.aof_id, previous.number))
        self._disk.replace(path, target)


def _stream_of(subject: object) -> str:
    """Stream that a piece of work is about."""
    return subject.stream if isinstance(subject, _Plan) else f"{subject}"


def format_reason(path: str, reason: str, kept_path: str) -> bytes:
    """Format the note about a rejected file; `kept_path` is set if it was edited."""
    lines = [f"The file at {path} was not applied.", "", f"Reason: {reason}", ""]
    if kept_path:
        lines.append(f"The file as it was found is kept in {kept_path}.")
    else:
        lines.append("Its content was not edited, so it was put back where it was.")
    return (safe_text("\n".join(lines)) + "\n").encode()


def _heartbeat_time(data: bytes) -> int:
    """Time of a heartbeat file; one that cannot be decoded is older than everything."""
    try:
        return parse_rfc3339(_heartbeat_decoder.decode(data).last_heartbeat)
    except (msgspec.MsgspecError, ValueError):
        return -1
