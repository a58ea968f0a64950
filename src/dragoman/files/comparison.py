"""Comparing the files with the ledger: what is missing, changed or surplus. Reads only."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec
from msgspec import Struct

from dragoman.core.moments import parse_rfc3339
from dragoman.core.states.lease import Lease
from dragoman.engine.ports import Store
from dragoman.files.disk import Disk
from dragoman.files.layout import STATUSES, TASKS, task_id_of_discarded, task_id_of_file, task_path
from dragoman.files.line_log import LineLog
from dragoman.files.mail.comparison import expected_letters, has_changed_since
from dragoman.files.tasks.pictures import TaskSnapshot, heartbeat_path, result_path
from dragoman.files.tasks.streams import TaskSnapshots
from dragoman.files.tasks.task_file import format_task_file
from dragoman.files.tasks.task_files import MAX_FILE_BYTES

_COMPARISON_PAGE: Final = 1_000
_ANYWHERE: Final = ""


class Difference(Struct, frozen=True):
    """A file that differs from the ledger; `left over`: its removal was interrupted by a crash."""

    path: str
    problem: Literal["missing", "changed", "surplus", "left over"]


class ComparisonSources(Struct, frozen=True):
    """The ledger and the files to compare."""

    store: Store
    disk: Disk
    snapshots: TaskSnapshots
    logs: tuple[LineLog, ...]


class _Heartbeat(Struct, rename="camel"):
    task_id: str
    agent_id: str
    last_heartbeat: str
    beat_count: int


_heartbeat_decoder: Final = msgspec.json.Decoder(_Heartbeat)


def compare_files(
    sources: ComparisonSources, position: int, progress: Callable[[int], None]
) -> Iterator[Difference]:
    """Yield every difference: by task, by letter, then by day of the event log.

    The files show the ledger up to `position`, and nobody writes them meanwhile: a task that has
    changed since then is not compared.
    """
    expected_paths: dict[str, str] = {}
    after = 0
    while rows := sources.store.rows(after, _COMPARISON_PAGE):
        for row in rows:
            snapshot = sources.snapshots.of_row(row)
            if snapshot is None:
                continue
            found = [*_compare_task(sources.disk, snapshot, row.lease)]
            is_later = bool(found) and has_changed_since(sources.store, row, position)
            home = task_path(snapshot.task.status, snapshot.task.aof_id)
            expected_paths[snapshot.task.aof_id] = _ANYWHERE if is_later else home
            if not is_later:
                yield from found
        after = rows[-1].number
        progress(len(rows))
    yield from _find_surplus(sources.disk, expected_paths)
    yield from _compare_mail(sources, position)
    for log in sources.logs:
        yield from _compare_log(sources, log, position)


def _compare_task(disk: Disk, snapshot: TaskSnapshot, lease: Lease | None) -> Iterator[Difference]:
    task_id = snapshot.task.aof_id
    yield from _compare_file(
        disk, task_path(snapshot.task.status, task_id), format_task_file(snapshot.file)
    )
    for path, data in snapshot.current.items():
        if path != heartbeat_path(task_id) or not _is_older_heartbeat(disk, path, task_id, lease):
            yield from _compare_file(disk, path, data)
    for path in snapshot.write_once:
        if path not in snapshot.current and disk.stat(path) is None:
            yield Difference(path, "missing")
    result = result_path(task_id)
    if result not in snapshot.current and disk.stat(result) is not None:
        yield Difference(result, "surplus")


def _is_older_heartbeat(disk: Disk, path: str, task_id: str, lease: Lease | None) -> bool:
    """True for an earlier heartbeat of this lease: a later one leaves no entry in the ledger."""
    try:
        heartbeat = _heartbeat_decoder.decode(disk.read(path, MAX_FILE_BYTES) or b"")
        at = parse_rfc3339(heartbeat.last_heartbeat)
    except (msgspec.MsgspecError, ValueError):
        return False
    return (
        lease is not None
        and (heartbeat.task_id, heartbeat.agent_id) == (task_id, lease.holder)
        and heartbeat.beat_count < lease.beats
        and at <= lease.beat_at
    )


def _compare_file(disk: Disk, path: str, expected: bytes) -> Iterator[Difference]:
    data = disk.read(path, MAX_FILE_BYTES)
    if data is None:
        yield Difference(path, "missing" if disk.stat(path) is None else "changed")
    elif data != expected:
        yield Difference(path, "changed")


def _find_surplus(disk: Disk, expected_paths: dict[str, str]) -> Iterator[Difference]:
    """Task files in a folder that is not their task's; files with other names are ignored."""
    for status in STATUSES:
        for info in disk.list(f"{TASKS}/{status}"):
            path, task_id = f"{TASKS}/{status}/{info.name}", task_id_of_file(info.name)
            if task_id is not None and expected_paths.get(task_id) not in (path, _ANYWHERE):
                yield Difference(path, "surplus")
            elif info.kind == "file" and task_id_of_discarded(info.name):
                yield Difference(path, "left over")


def _compare_mail(sources: ComparisonSources, position: int) -> Iterator[Difference]:
    for path, data in expected_letters(sources.store, sources.disk, position):
        if data is not None:
            yield from _compare_file(sources.disk, path, data)
        else:
            yield Difference(path, "surplus")


def _compare_log(sources: ComparisonSources, log: LineLog, position: int) -> Iterator[Difference]:
    known: dict[str, _ComparedFile] = {}
    # The projector may have been stopped between writing the lines and saving the cursor.
    for until, may_be_missing in ((position, False), (sources.store.head(), True)):
        after = position if may_be_missing else 0
        while page := sources.store.entries(after, _COMPARISON_PAGE, until=until):
            for path, lines in log.render_by_path(page).items():
                file = known.setdefault(path, _ComparedFile(sources.disk, path))
                file.compare_next(b"".join(line + b"\n" for line in lines), may_be_missing)
            after = page[-1].position
    for path, file in known.items():
        if problem := file.problem():
            yield Difference(path, problem)
    for path in log.existing():
        if path not in known:
            yield Difference(path, "surplus")


class _ComparedFile:
    """Line file that is compared chunk by chunk with its expected content."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._offset = 0
        self._is_same = True
        self._is_required = False

    def compare_next(self, expected: bytes, may_be_missing: bool) -> None:
        """Compare the next chunk; of lines that may be missing the file has a prefix."""
        self._is_required = self._is_required or not may_be_missing
        if self._is_same:
            found = self._disk.read_at(self._path, self._offset, len(expected))
            is_begun = may_be_missing and expected.startswith(found)
            self._is_same = is_begun or found == expected
            self._offset += len(found) if is_begun else len(expected)

    def problem(self) -> Literal["missing", "changed"] | None:
        found = self._disk.stat(self._path)
        if found is None:
            return "missing" if self._is_required else None
        return None if self._is_same and found.size == self._offset else "changed"
