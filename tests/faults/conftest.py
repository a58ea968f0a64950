"""What the tests of faults share: a day that nothing disturbs, and a judge of what a cut leaves."""

from collections.abc import Generator

import pytest

from tests.faults.memory_disk import memory_disk
from tests.faults.power_cuts import CutChecker
from tests.faults.recording import Recording, record

REAL_STORE_EVERY = 40
"""One cut of so many is opened by the real store, in files; the others by SQLite, in memory."""


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Give a day that nothing disturbs."""
    return record(tmp_path_factory.mktemp("day"))


@pytest.fixture
def checker(tmp_path_factory: pytest.TempPathFactory) -> Generator[CutChecker]:
    """Give a judge with a folder of its own."""
    with memory_disk() as disk:
        yield CutChecker(disk, tmp_path_factory.mktemp("judged"), REAL_STORE_EVERY)
