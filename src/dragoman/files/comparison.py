"""Files against the ledger: what is missing, changed or surplus. Reads only."""

from collections.abc import Callable, Iterator
from typing import Final, Literal

from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.files.disk import Disk
from dragoman.files.event_log import EventLog
from dragoman.files.layout import STATUSES, TASKS, events_path, task_of_file, task_path
from dragoman.files.pictures import result_path
from dragoman.files.streams import TaskStreams
from dragoman.files.task_file import write_task_file
from dragoman.files.task_files import MOST_BYTES

_PAGE: Final = 1_000


class Difference(Struct, frozen=True):
    """A file that is not as the ledger says."""

    path: str
    problem: Literal["missing", "changed", "surplus"]


def compare(
    store: Store,
    disk: Disk,
    streams: TaskStreams,
    events: EventLog,
    progress: Callable[[int], None],
) -> Iterator[Difference]:
    """Every difference, task by task and then day by day."""
    homes: dict[str, str] = {}
    after = 0
    while rows := store.rows(after, _PAGE):
        for row in rows:
            shown = streams.picture_of(row)
            if shown is None:
                continue
            home = task_path(shown.task.status, shown.task.aof_id)
            homes[shown.task.aof_id] = home
            yield from _check(disk, home, write_task_file(shown.file))
            for path, data in shown.current.items():
                yield from _check(disk, path, data)
            for path in shown.once:
                if path not in shown.current and disk.look(path) is None:
                    yield Difference(path, "missing")
            result = result_path(shown.task.aof_id)
            if result not in shown.current and disk.look(result) is not None:
                yield Difference(result, "surplus")
        after = rows[-1].number
        progress(len(rows))
    yield from _surplus(disk, homes)
    yield from _compare_events(store, disk, events)


def _check(disk: Disk, path: str, expected: bytes) -> Iterator[Difference]:
    data = disk.read(path, MOST_BYTES)
    if data is None:
        yield Difference(path, "missing" if disk.look(path) is None else "changed")
    elif data != expected:
        yield Difference(path, "changed")


def _surplus(disk: Disk, homes: dict[str, str]) -> Iterator[Difference]:
    """Task files where their task is not; whatever has another kind of name is left alone."""
    for status in STATUSES:
        for look in disk.list(f"{TASKS}/{status}"):
            path, task_id = f"{TASKS}/{status}/{look.name}", task_of_file(look.name)
            if task_id is not None and homes.get(task_id) != path:
                yield Difference(path, "surplus")


def _compare_events(store: Store, disk: Disk, events: EventLog) -> Iterator[Difference]:
    expected: dict[str, _Day] = {}
    after = 0
    while page := store.entries(after, _PAGE):
        for day, lines in events.by_day(page).items():
            known = expected.setdefault(day, _Day(disk.read(events_path(day), 1 << 40)))
            known.follow(b"".join(line + b"\n" for line in lines))
        after = page[-1].position
    for day, known in expected.items():
        if problem := known.problem():
            yield Difference(events_path(day), problem)
    for day in events.days():
        if day not in expected:
            yield Difference(events_path(day), "surplus")


class _Day:
    """The file of a day, compared piece by piece with what it should hold."""

    def __init__(self, data: bytes | None) -> None:
        self._data = data
        self._at = 0
        self._is_same = True

    def follow(self, expected: bytes) -> None:
        end = self._at + len(expected)
        self._is_same = self._is_same and (self._data or b"")[self._at : end] == expected
        self._at = end

    def problem(self) -> Literal["missing", "changed"] | None:
        if self._data is None:
            return "missing"
        return None if self._is_same and self._at == len(self._data) else "changed"
