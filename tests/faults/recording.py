"""Recording of a day at the hub: its disk operations, and which answers were given by when."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import apsw
from msgspec import Struct

from dragoman.core.errors import StoreLost, StoreUnavailable
from dragoman.engine.queries.entries import all_entries
from dragoman.engine.request import Outcome
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.apsw_types import Connection
from tests.faults.recorder import Operation, Recorder, recorded_disk
from tests.faults.simulated_disk import Files
from tests.faults.workday import DAY, Worker
from tests.store.sqlite.files import ledger_id

T = TypeVar("T")

Ledger = list[tuple[str, int, bytes]]
"""(Stream, version, hash) of every entry."""

NAME = "hub.db"
REOPENED = frozenset({20, 45})
"""Steps before which the store is closed and opened again."""


class ProcessKilled(BaseException):
    """The process was killed."""


class ObservableStore(SqliteStore):
    """Real store with additional settings, whose pages can be read."""

    settings: tuple[tuple[str, str | int], ...] = (("wal_autocheckpoint", 16),)
    """The WAL is copied back after fewer pages than usual, many times a day."""
    on_commit: Callable[[bytes], None] | None = None
    """Called with all pages after each commit."""

    @classmethod
    def at(cls, folder: Path) -> Self:
        """Open the store of a folder."""
        return cast(Self, cls.open(folder / NAME, ledger_id))

    def image(self) -> bytes:
        """All pages of the database as they are now, wherever SQLite keeps them."""
        return cast(Any, self._writer).serialize("main")

    def integrity(self) -> list[str]:
        """Problems that SQLite itself finds in the file."""
        writer = self._writer or self._open_writer()
        found = [problem for (problem,) in writer.execute("PRAGMA integrity_check").fetchall()]
        return found if found != ["ok"] else []

    def abandon(self) -> None:
        """End like a killed process, without cleanup."""
        if self._writer is not None:
            self._writer.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        self.close()

    def _open_writer(self) -> Connection:
        writer = super()._open_writer()
        for name, value in self.settings:
            writer.pragma(name, value)
        return writer

    def _write(self, work: Callable[[Connection, int], T]) -> T:
        result = super()._write(work)
        if self.on_commit is not None:
            self.on_commit(self.image())
        return result


class Recording(Struct):
    """Disk operations of a day, and its answers by position in them."""

    base: Files
    operations: list[Operation]
    images: list[bytes] = []
    """Pages of the database at first, and after each commit."""
    committed: list[int] = []
    """Number of operations at each commit."""
    acknowledged_at: list[tuple[int, int]] = []
    """(Number of operations, number of the commit) of each answer: from then on it must be there.
    """
    done: list[tuple[int, int]] = []
    """(Number of operations, next step) after each step."""
    answers: dict[int, list[Outcome]] = {}
    ledger: Ledger = []
    """Ledger at the end of the day."""

    def commits(self, at: int) -> int:
        """Number of commits done by then, the first state included."""
        return bisect_right(self.committed, at)

    def acknowledged(self, at: int) -> int:
        """Last commit with an answer by then."""
        return _value_at(self.acknowledged_at, at)

    def step(self, at: int) -> int:
        """Step in progress, or the next one."""
        return _value_at(self.done, at)


def _value_at(marks: list[tuple[int, int]], at: int) -> int:
    known = bisect_right(marks, at, key=lambda mark: mark[0])
    return marks[known - 1][1] if known else 0


class DayRecorder:
    """Lets a worker work, and records what happens."""

    def __init__(
        self,
        folder: Path,
        disk: Recorder,
        base: Files,
        store_type: type[ObservableStore],
        *,
        answers_early: bool,
    ) -> None:
        self._folder = folder
        self._disk = disk
        self._store_type = store_type
        self._answers_early = answers_early
        self.recording = Recording(base, disk.operations)
        self._store = self._open()

    def work(self, step: int) -> None:
        """Do one step; after a kill, or without an answer, do it again."""
        if step in REOPENED:
            self.close()
            self._store = self._open()
        try:
            worker = self._run_step(step)
        except ProcessKilled:
            self._store.abandon()
            self._store = self._open()
            worker = self._run_step(step)
        except StoreLost:
            worker = self._run_step(step)
        self._answer()
        self.recording.done.append((len(self._disk.operations), step + 1))
        self.recording.answers |= worker.answers

    def _run_step(self, step: int) -> Worker:
        worker = Worker(self._store, self._on_failpoint)
        worker.work(step)
        worker.engine.close()
        return worker

    def close(self) -> None:
        """Close the store at the end of a day or before it is reopened."""
        self.recording.ledger = ledger_of(self._store)
        # SQLite survives a failure here, but nobody would be told of it.
        with self._disk.without_faults():
            self._store.close()

    def _open(self) -> ObservableStore:
        try:
            store = self._store_type.at(self._folder)
        except StoreUnavailable:
            # The disk failed; a restarted hub tries again.
            store = self._store_type.at(self._folder)
        # Also a commit that a killed process had written without answering it.
        if self.recording.images[-1:] != [image := store.image()]:
            self._commit(image)
        store.on_commit = self._commit
        return store

    def _on_failpoint(self, failpoint: str) -> None:
        if self._answers_early and failpoint == "written":
            self._answer(ahead=1)

    def _answer(self, ahead: int = 0) -> None:
        """Record an answer; `ahead`: before its commit."""
        recording = self.recording
        recording.acknowledged_at.append(
            (len(self._disk.operations), len(recording.images) - 1 + ahead)
        )

    def _commit(self, image: bytes) -> None:
        self.recording.images.append(image)
        self.recording.committed.append(len(self._disk.operations))


def no_disturbance(_: Recorder) -> None:
    """Disturb nothing."""


def record(
    folder: Path,
    base: Files | None = None,
    steps: Iterable[int] = range(len(DAY)),
    store_type: type[ObservableStore] = ObservableStore,
    *,
    answers_early: bool = False,
    disturb: Callable[[Recorder], None] = no_disturbance,
) -> Recording:
    """Record steps of a day, on given files, on a disk that may be disturbed.

    `answers_early`: callers are answered when all is written, before it is committed.
    """
    restore_files(folder, base or {})
    with recorded_disk() as disk:
        disturb(disk)
        day_recorder = DayRecorder(
            folder, disk, base or {}, store_type, answers_early=answers_early
        )
        for step in steps:
            day_recorder.work(step)
        day_recorder.close()
    return day_recorder.recording


def ledger_of(store: SqliteStore) -> Ledger:
    """Stream, version and hash of all entries."""
    return [(entry.stream, entry.version, entry.hash) for entry in all_entries(store)]


def restore_files(folder: Path, files: Files) -> None:
    """Replace the files of a folder."""
    for name in (NAME, f"{NAME}-wal", f"{NAME}-journal", f"{NAME}-shm"):
        path = folder / name
        if name in files:
            path.touch()
            # Not emptied first: some file systems then write the file to the disk at once.
            with path.open("r+b") as file:
                file.write(files[name])
                file.truncate()
        else:
            path.unlink(missing_ok=True)
