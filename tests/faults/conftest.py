"""Fixtures for tests of faults: a recording of an undisturbed day, and a checker of power cuts."""

from collections.abc import Generator

import pytest

from tests.faults.memory_disk import memory_disk
from tests.faults.power_cuts import CutChecker
from tests.faults.recording import Recording, record

REAL_STORE_EVERY = 40
"""One of so many cuts is opened by the real store, in files; the others by SQLite, in memory."""


@pytest.fixture(scope="session")
def day(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """Recording of an undisturbed day."""
    return record(tmp_path_factory.mktemp("day"))


@pytest.fixture
def checker(tmp_path_factory: pytest.TempPathFactory) -> Generator[CutChecker]:
    """Checker with a folder of its own."""
    with memory_disk() as disk:
        yield CutChecker(disk, tmp_path_factory.mktemp("judged"), REAL_STORE_EVERY)
