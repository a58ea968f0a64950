"""Comparing the files with the ledger: what is missing, changed or surplus. Reads only."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

import msgspec
from msgspec import Struct

from dragoman.core.moments import parse_rfc3339
from dragoman.core.states.lease import Lease
from dragoman.engine.ports import Store
from dragoman.files.disk import Disk
from dragoman.files.layout import STATUSES, TASKS, task_of_discarded, task_of_file, task_path
from dragoman.files.line_log import LineLog
from dragoman.files.mail.comparison import expected_mail, went_on
from dragoman.files.tasks.pictures import Picture, heartbeat_path, result_path
from dragoman.files.tasks.streams import TaskStreams
from dragoman.files.tasks.task_file import write_task_file
from dragoman.files.tasks.task_files import MOST_BYTES

_PAGE: Final = 1_000
_ANYWHERE: Final = ""


class Difference(Struct, frozen=True):
    """A file that differs from the ledger; `left over`: its removal was interrupted by a crash."""

    path: str
    problem: Literal["missing", "changed", "surplus", "left over"]


class Sources(Struct, frozen=True):
    """The ledger and the files to compare."""

    store: Store
    disk: Disk
    streams: TaskStreams
    logs: tuple[LineLog, ...]


class _Beat(Struct, rename="camel"):
    task_id: str
    agent_id: str
    last_heartbeat: str
    beat_count: int


_beat: Final = msgspec.json.Decoder(_Beat)


def compare(sources: Sources, level: int, progress: Callable[[int], None]) -> Iterator[Difference]:
    """Yield every difference: by task, by letter, then by day of the event log.

    The files show the ledger up to `position`, and nobody writes them meanwhile: a task that has
    changed since then is not compared.
    """
    homes: dict[str, str] = {}
    after = 0
    while rows := sources.store.rows(after, _PAGE):
        for row in rows:
            shown = sources.streams.picture_of(row)
            if shown is None:
                continue
            found = [*_of_task(sources.disk, shown, row.lease)]
            is_later = bool(found) and went_on(sources.store, row, level)
            home = task_path(shown.task.status, shown.task.aof_id)
            homes[shown.task.aof_id] = _ANYWHERE if is_later else home
            if not is_later:
                yield from found
        after = rows[-1].number
        progress(len(rows))
    yield from _surplus(sources.disk, homes)
    yield from _compare_mail(sources, level)
    for log in sources.logs:
        yield from _compare_log(sources, log, level)


def _of_task(disk: Disk, shown: Picture, lease: Lease | None) -> Iterator[Difference]:
    task_id = shown.task.aof_id
    yield from _check(disk, task_path(shown.task.status, task_id), write_task_file(shown.file))
    for path, data in shown.current.items():
        if path != heartbeat_path(task_id) or not _lags(disk, path, task_id, lease):
            yield from _check(disk, path, data)
    for path in shown.once:
        if path not in shown.current and disk.look(path) is None:
            yield Difference(path, "missing")
    result = result_path(task_id)
    if result not in shown.current and disk.look(result) is not None:
        yield Difference(result, "surplus")


def _lags(disk: Disk, path: str, task_id: str, lease: Lease | None) -> bool:
    """True for an earlier heartbeat of this lease: a later one leaves no entry in the ledger."""
    try:
        beat = _beat.decode(disk.read(path, MOST_BYTES) or b"")
        at = parse_rfc3339(beat.last_heartbeat)
    except (msgspec.MsgspecError, ValueError):
        return False
    return (
        lease is not None
        and (beat.task_id, beat.agent_id) == (task_id, lease.holder)
        and beat.beat_count < lease.beats
        and at <= lease.beat_at
    )


def _check(disk: Disk, path: str, expected: bytes) -> Iterator[Difference]:
    data = disk.read(path, MOST_BYTES)
    if data is None:
        yield Difference(path, "missing" if disk.look(path) is None else "changed")
    elif data != expected:
        yield Difference(path, "changed")


def _surplus(disk: Disk, homes: dict[str, str]) -> Iterator[Difference]:
    """Task files in a folder that is not their task's; files with other names are ignored."""
    for status in STATUSES:
        for look in disk.list(f"{TASKS}/{status}"):
            path, task_id = f"{TASKS}/{status}/{look.name}", task_of_file(look.name)
            if task_id is not None and homes.get(task_id) not in (path, _ANYWHERE):
                yield Difference(path, "surplus")
            elif look.kind == "file" and task_of_discarded(look.name):
                yield Difference(path, "left over")


def _compare_mail(sources: Sources, level: int) -> Iterator[Difference]:
    for path, data in expected_mail(sources.store, sources.disk, level):
        if data is not None:
            yield from _check(sources.disk, path, data)
        else:
            yield Difference(path, "surplus")


def _compare_log(sources: Sources, log: LineLog, level: int) -> Iterator[Difference]:
    known: dict[str, _Followed] = {}
    # The projector may have been stopped between writing the lines and saving the cursor.
    for until, may_be_missing in ((level, False), (sources.store.head(), True)):
        after = level if may_be_missing else 0
        while page := sources.store.entries(after, _PAGE, until=until):
            for path, lines in log.by_path(page).items():
                file = known.setdefault(path, _Followed(sources.disk, path))
                file.follow(b"".join(line + b"\n" for line in lines), may_be_missing)
            after = page[-1].position
    for path, file in known.items():
        if problem := file.problem():
            yield Difference(path, problem)
    for path in log.found():
        if path not in known:
            yield Difference(path, "surplus")


class _Followed:
    """Line file that is compared chunk by chunk with its expected content."""

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._at = 0
        self._is_same = True
        self._must_be = False

    def follow(self, expected: bytes, may_be_missing: bool) -> None:
        """Compare the next chunk; of lines that may be missing the file has a prefix."""
        self._must_be = self._must_be or not may_be_missing
        if self._is_same:
            found = self._disk.piece(self._path, self._at, len(expected))
            is_begun = may_be_missing and expected.startswith(found)
            self._is_same = is_begun or found == expected
            self._at += len(found) if is_begun else len(expected)

    def problem(self) -> Literal["missing", "changed"] | None:
        found = self._disk.look(self._path)
        if found is None:
            return "missing" if self._must_be else None
        return None if self._is_same and found.size == self._at else "changed"
