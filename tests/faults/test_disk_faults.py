"""Disk that is full, read-only or broken: a clear error, reads work, nothing is lost."""

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random

import apsw
import pytest

from dragoman.core.errors import StoreLost, StoreUnavailable
from tests.conftest import LONG_RUN
from tests.faults.power_cuts import findings, power_cuts
from tests.faults.quota import Quota
from tests.faults.recorder import Operation, recorded_disk
from tests.faults.recording import (
    NAME,
    Ledger,
    ObservableStore,
    Recording,
    ledger_of,
    record,
    restore_files,
)
from tests.faults.simulated_disk import Files
from tests.faults.workday import DAY, Worker
from tests.requirements import proves

FIRST = len(DAY) - 22
"""First step: much has happened before it, and much comes after it, batches included."""
WINDOW = 128 * 1024
IS_LONG = bool(os.environ.get(LONG_RUN))
STEP = 512 if IS_LONG else 4_096 - 512


class DefaultStore(ObservableStore):
    """Store with its own settings: it does not copy the WAL back in a short day."""

    settings = ()


@pytest.fixture(scope="module")
def files_before(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Files before the first step."""
    folder = tmp_path_factory.mktemp("morning")
    record(folder, steps=range(FIRST))
    return {NAME: (folder / NAME).read_bytes()}


class WorkSession:
    """Worker on a store, from the first remaining step on."""

    def __init__(self, folder: Path, files: Files) -> None:
        restore_files(folder, files)
        self.store = DefaultStore.at(folder)
        self.worker = Worker(self.store)
        self.step = FIRST
        self.ledger = ledger_of(self.store)

    def work_until_refused(self) -> StoreUnavailable | None:
        """Work until the hub refuses; returns the refusal."""
        while self.step < len(DAY):
            try:
                self.worker.work(self.step)
            except StoreUnavailable as error:
                return error
            self.step += 1
            self.ledger = ledger_of(self.store)
        return None

    def is_unchanged(self) -> bool:
        """All acknowledged entries can be read, and nothing else."""
        return ledger_of(self.store) == self.ledger

    def end(self) -> None:
        """Work to the end, and verify."""
        assert self.work_until_refused() is None
        assert findings(self.store) == []
        self.worker.engine.close()
        self.store.close()


@pytest.fixture(scope="module")
def expected_ledger(files_before: Files, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Ledger at the end of an undisturbed day."""
    session = WorkSession(tmp_path_factory.mktemp("evening"), files_before)
    session.end()
    return session.ledger


@proves("DISK-FULL")
def test_disk_full_at_every_size_of_a_window(
    files_before: Files, expected_ledger: Ledger, tmp_path: Path
) -> None:
    reached: set[int] = set()
    for free_bytes in range(0, WINDOW, STEP):
        with recorded_disk() as disk:
            quota = Quota(disk, files_before, free_bytes)
            session = WorkSession(tmp_path, files_before)
            for _ in range(2):
                refusal = session.work_until_refused()
                assert refusal is not None
                assert not isinstance(refusal, StoreLost)
                assert "the disk is full" in refusal.detail
                assert "nothing was written" in refusal.detail
                assert session.is_unchanged(), f"{free_bytes} bytes of room"
            reached.add(session.step)
            quota.limit += 100 * WINDOW
            session.end()
        assert session.ledger == expected_ledger, f"{free_bytes} bytes of room"
    assert len(reached) >= 3


@proves("DISK-FULL")
def test_killed_hub_is_readable_on_a_full_disk(day: Recording, tmp_path: Path) -> None:
    """Its WAL cannot be copied into the file, and counts all the same."""
    opened = 0
    for cut in power_cuts(day, 0, Random(0)):
        if cut.outcome != "keep_everything" or not cut.acknowledged or cut.at % 50:
            continue
        restore_files(tmp_path, cut.files)
        with recorded_disk() as disk:
            quota = Quota(disk, cut.files, free_bytes=0)
            store = DefaultStore.at(tmp_path)
            assert ledger_of(store) == day.ledger[: store.head()]
            assert store.image() in day.images[cut.acknowledged : cut.commits + 1]
            quota.limit *= 9
            store.close()
        opened += 1
    assert opened > 20


class FailingDisk:
    """Fails at chosen operations after the first few, until it is switched off."""

    def __init__(self, error: type[apsw.Error], verbs: Iterable[str], successes: int) -> None:
        self._error = error
        self._verbs = frozenset(verbs)
        self._successes = successes
        self.is_on = True
        self.count = 0

    def __call__(self, operation: Operation) -> None:
        """Allow an operation, or raise."""
        if operation[0] in self._verbs:
            self.count += 1
            if self.is_on and self.count > self._successes:
                raise self._error


KINDS = {
    "read-only": (apsw.ReadOnlyError, ("write", "truncate"), "cannot be written"),
    "EIO at a write": (apsw.IOError, ("write",), "failed"),
    "EIO at a sync": (apsw.IOError, ("sync",), "failed"),
    "ENOSPC at a write": (apsw.FullError, ("write",), "the disk is full"),
}


@proves("DISK-ERROR", "STORE-READ-ONLY")
@pytest.mark.parametrize("kind", KINDS)
def test_hub_recovers_after_failing_operations(
    files_before: Files, expected_ledger: Ledger, tmp_path: Path, kind: str
) -> None:
    error, verbs, sentence = KINDS[kind]
    for successes in range(20) if IS_LONG else (0, 1, 2, 7, 20):
        with recorded_disk() as disk:
            session = WorkSession(tmp_path, files_before)
            disk.before = failing = FailingDisk(error, verbs, successes)
            for _ in range(2):
                refusal = session.work_until_refused()
                assert refusal is not None
                assert refusal.code == "store_unavailable"
                assert sentence in refusal.detail
                assert str(tmp_path / NAME) in refusal.detail
                assert session.is_unchanged(), f"after {successes} operations"
            failing.is_on = False
            session.end()
        assert session.ledger == expected_ledger, f"after {successes} operations"
