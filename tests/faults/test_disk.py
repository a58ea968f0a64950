"""A disk that is full, read-only or broken: a clear word, reads work, nothing is lost."""

import os
from collections.abc import Iterable
from pathlib import Path
from random import Random

import apsw
import pytest

from dragoman.core.errors import StoreLost, StoreUnavailable
from tests.conftest import LONG_RUN
from tests.faults.platter import Files
from tests.faults.power import cuts, findings
from tests.faults.quota import Quota
from tests.faults.recorder import Operation, recorder
from tests.faults.recording import NAME, Ledger, Recording, Watched, ledger_of, put, record
from tests.faults.workday import DAY, Worker
from tests.requirements import proves

FIRST = len(DAY) - 22
"""By then much has happened, and much is still to come, batches and all."""
WINDOW = 128 * 1024
IS_LONG = bool(os.environ.get(LONG_RUN))
STEP = 512 if IS_LONG else 4_096 - 512


class Plain(Watched):
    """The store with no settings but its own: it does not copy the WAL back in a short day."""

    settings = ()


@pytest.fixture(scope="module")
def morning(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """Give the files as they are when much has happened."""
    folder = tmp_path_factory.mktemp("morning")
    record(folder, steps=range(FIRST))
    return {NAME: (folder / NAME).read_bytes()}


class Shift:
    """Somebody at work on a store, from the first step that is left."""

    def __init__(self, folder: Path, files: Files) -> None:
        put(folder, files)
        self.store = Plain.at(folder)
        self.worker = Worker(self.store)
        self.step = FIRST
        self.known = ledger_of(self.store)

    def refused(self) -> StoreUnavailable | None:
        """Work until the hub cannot; what it said."""
        while self.step < len(DAY):
            try:
                self.worker.work(self.step)
            except StoreUnavailable as error:
                return error
            self.step += 1
            self.known = ledger_of(self.store)
        return None

    def is_unharmed(self) -> bool:
        """Whether all that was answered can be read, and nothing else."""
        return ledger_of(self.store) == self.known

    def end(self) -> None:
        """Work to the end, and see that all is well."""
        assert self.refused() is None
        assert findings(self.store) == []
        self.worker.engine.close()
        self.store.close()


@pytest.fixture(scope="module")
def evening(morning: Files, tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    """Give the ledger at the end of a day that nothing disturbs."""
    shift = Shift(tmp_path_factory.mktemp("evening"), morning)
    shift.end()
    return shift.known


@proves("DISK-FULL")
def test_full_at_every_size_of_a_window(morning: Files, evening: Ledger, tmp_path: Path) -> None:
    reached: set[int] = set()
    for room in range(0, WINDOW, STEP):
        with recorder() as disk:
            quota = Quota(disk, morning, room)
            shift = Shift(tmp_path, morning)
            for _ in range(2):
                refused = shift.refused()
                assert refused is not None
                assert not isinstance(refused, StoreLost)
                assert "the disk is full" in refused.detail
                assert "nothing was written" in refused.detail
                assert shift.is_unharmed(), f"{room} bytes of room"
            reached.add(shift.step)
            quota.limit += 100 * WINDOW
            shift.end()
        assert shift.known == evening, f"{room} bytes of room"
    assert len(reached) >= 3


@proves("DISK-FULL")
def test_a_hub_that_was_killed_is_opened_and_read_on_a_full_disk(
    day: Recording, tmp_path: Path
) -> None:
    """What its WAL has cannot be taken into the file, and counts all the same."""
    opened = 0
    for cut in cuts(day, 0, Random(0)):
        if cut.way != "everything" or not cut.due or cut.at % 50:
            continue
        put(tmp_path, cut.files)
        with recorder() as disk:
            quota = Quota(disk, cut.files, room=0)
            store = Plain.at(tmp_path)
            assert ledger_of(store) == day.ledger[: store.head()]
            assert store.image() in day.images[cut.due : cut.commits + 1]
            quota.limit *= 9
            store.close()
        opened += 1
    assert opened > 20


class Failing:
    """Fails at each of some operations after the first few, until it is told not to."""

    def __init__(self, error: type[apsw.Error], verbs: Iterable[str], left: int) -> None:
        self._error = error
        self._verbs = frozenset(verbs)
        self._left = left
        self.is_on = True
        self.count = 0

    def __call__(self, operation: Operation) -> None:
        """Let it happen, or not."""
        if operation[0] in self._verbs:
            self.count += 1
            if self.is_on and self.count > self._left:
                raise self._error


KINDS = {
    "read-only": (apsw.ReadOnlyError, ("write", "truncate"), "cannot be written"),
    "EIO at a write": (apsw.IOError, ("write",), "failed"),
    "EIO at a sync": (apsw.IOError, ("sync",), "failed"),
    "ENOSPC at a write": (apsw.FullError, ("write",), "the disk is full"),
}


@proves("DISK-ERROR", "STORE-READ-ONLY")
@pytest.mark.parametrize("kind", KINDS)
def test_from_the_nth_operation_on_nothing_works_until_it_does(
    morning: Files, evening: Ledger, tmp_path: Path, kind: str
) -> None:
    error, verbs, sentence = KINDS[kind]
    for left in range(20) if IS_LONG else (0, 1, 2, 7, 20):
        with recorder() as disk:
            shift = Shift(tmp_path, morning)
            disk.before = failing = Failing(error, verbs, left)
            for _ in range(2):
                refused = shift.refused()
                assert refused is not None
                assert refused.code == "store_unavailable"
                assert sentence in refused.detail
                assert str(tmp_path / NAME) in refused.detail
                assert shift.is_unharmed(), f"after {left} operations"
            failing.is_on = False
            shift.end()
        assert shift.known == evening, f"after {left} operations"
