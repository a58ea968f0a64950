"""A day at the hub, recorded: what it did to the disk, and what it had told its callers by when."""

from bisect import bisect_right
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Self, TypeVar, cast

import apsw
from msgspec import Struct

from dragoman.core.errors import StoreLost, StoreUnavailable
from dragoman.engine.reads.ask import entries
from dragoman.engine.request import Outcome
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.driver import Connection
from tests.faults.recorder import Operation, Recorder, recorded_disk
from tests.faults.simulated_disk import Files
from tests.faults.workday import DAY, Worker
from tests.store.sqlite.files import ledger_id

T = TypeVar("T")

Ledger = list[tuple[str, int, bytes]]
"""(Stream, version, hash) of every entry."""

NAME = "hub.db"
REOPENED = frozenset({20, 45})
"""Before these steps the store is closed and opened again."""


class ProcessKilled(BaseException):
    """The process is gone."""


class ObservableStore(SqliteStore):
    """The real store, with settings on top, and its pages for everyone to see."""

    settings: tuple[tuple[str, str | int], ...] = (("wal_autocheckpoint", 16),)
    """After fewer pages than usual the WAL is copied back and begun anew, many times a day."""
    on_commit: Callable[[bytes], None] | None = None
    """Told all pages after each commit."""

    @classmethod
    def at(cls, folder: Path) -> Self:
        """The store of a folder."""
        return cast(Self, cls.open(folder / NAME, ledger_id))

    def image(self) -> bytes:
        """All pages of the database as they are now, wherever SQLite keeps them."""
        return cast(Any, self._writer).serialize("main")

    def integrity(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        writer = self._writer or self._open_writer()
        found = [problem for (problem,) in writer.execute("PRAGMA integrity_check").fetchall()]
        return found if found != ["ok"] else []

    def abandon(self) -> None:
        """End like a process that was killed: nothing is tidied up."""
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


class SideCopiedStore(ObservableStore):
    """One whose log is copied by nobody but the thread beside the writer."""

    settings = (("wal_autocheckpoint", 0),)


class Recording(Struct):
    """All that a day did to the disk, and what the hub had said by when."""

    base: Files
    operations: list[Operation]
    images: list[bytes] = []
    """What the database was like at first, and after each commit."""
    committed: list[int] = []
    """How long the tape was when each of them was done."""
    acknowledged_at: list[tuple[int, int]] = []
    """(Length of the tape, number of the commit) of each answer: from then on it must be there."""
    done: list[tuple[int, int]] = []
    """(Length of the tape, next step) after each step."""
    answers: dict[int, list[Outcome]] = {}
    ledger: Ledger = []
    """At the end of the day."""

    def commits(self, at: int) -> int:
        """How many commits were done by then, the first state included."""
        return bisect_right(self.committed, at)

    def acknowledged(self, at: int) -> int:
        """The last commit that somebody had an answer of by then."""
        return _value_at(self.acknowledged_at, at)

    def step(self, at: int) -> int:
        """The step that was under way, or came next."""
        return _value_at(self.done, at)


def _value_at(marks: list[tuple[int, int]], at: int) -> int:
    known = bisect_right(marks, at, key=lambda mark: mark[0])
    return marks[known - 1][1] if known else 0


class DayRecorder:
    """Lets a worker work, and takes down what happens."""

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
        """Do one step; whoever is killed meanwhile, or gets no answer, does it again."""
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
        """The end of the day, or of a shift."""
        self.recording.ledger = ledger_of(self._store)
        # SQLite takes a failure here in its stride, but nobody could be told of it.
        with self._disk.without_faults():
            self._store.close()

    def _open(self) -> ObservableStore:
        try:
            store = self._store_type.at(self._folder)
        except StoreUnavailable:
            # The disk failed; whoever starts a hub tries again.
            store = self._store_type.at(self._folder)
        # Also one that a killed process had written and did not live to tell of.
        if self.recording.images[-1:] != [image := store.image()]:
            self._commit(image)
        store.on_commit = self._commit
        return store

    def _on_failpoint(self, failpoint: str) -> None:
        if self._answers_early and failpoint == "written":
            self._answer(ahead=1)

    def _answer(self, ahead: int = 0) -> None:
        """Somebody is told that it is done; ahead: though the commit is still to come."""
        recording = self.recording
        recording.acknowledged_at.append(
            (len(self._disk.operations), len(recording.images) - 1 + ahead)
        )

    def _commit(self, image: bytes) -> None:
        self.recording.images.append(image)
        self.recording.committed.append(len(self._disk.operations))


def no_disturbance(_: Recorder) -> None:
    """A disk in good health."""


def record(
    folder: Path,
    base: Files | None = None,
    steps: Iterable[int] = range(len(DAY)),
    store_type: type[ObservableStore] = ObservableStore,
    *,
    answers_early: bool = False,
    disturb: Callable[[Recorder], None] = no_disturbance,
) -> Recording:
    """These steps of a day, with the files that there are, on a disk that may be disturbed.

    Hastily: callers are answered when all is written, before it is committed.
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
    """What the ledger has, in short."""
    return [(entry.stream, entry.version, entry.hash) for entry in entries(store)]


def restore_files(folder: Path, files: Files) -> None:
    """Let a folder have these files and no others."""
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
