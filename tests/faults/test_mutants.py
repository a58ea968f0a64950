"""Mutant stores and disks: each is detected by the checker that the real store passes."""

from pathlib import Path

import pytest

from dragoman.store.sqlite import connect
from dragoman.store.sqlite.apsw_types import Connection
from tests.conformance.store.scripts import SCRIPT
from tests.faults.power_cuts import CutChecker
from tests.faults.recording import ObservableStore, Recording, record
from tests.faults.test_interrupted_commits import (
    UNSYNCED,
    check_recording,
    find_commits,
    record_killed_day,
)
from tests.requirements import proves

pytestmark = proves("POWER-TEETH")

SEED = 1


class SyncNormalStore(ObservableStore):
    """Syncs the WAL only when it is copied back, as is often advised."""

    settings = (*ObservableStore.settings, ("synchronous", "normal"))


class SyncOffStore(ObservableStore):
    """Never syncs: the operating system decides when anything reaches the disk."""

    settings = (*ObservableStore.settings, ("synchronous", "off"))


def find_verdicts(checker: CutChecker, recording: Recording, outcomes: int = 0) -> set[str]:
    """Verdicts of the checker, up to the first lost write."""
    found: set[str] = set()
    for violation in checker.violations(
        recording, outcomes, SEED, first=recording.acknowledged_at[0][0]
    ):
        found.add(violation.verdict)
        if violation.verdict == "lost":
            break
    return found


@pytest.mark.parametrize("mutant", [SyncNormalStore, SyncOffStore])
def test_store_that_syncs_less_is_detected(
    checker: CutChecker, tmp_path: Path, mutant: type[ObservableStore]
) -> None:
    assert "lost" in find_verdicts(checker, record(tmp_path, store_type=mutant))


def test_store_that_syncs_nothing_is_damaged(checker: CutChecker, tmp_path: Path) -> None:
    violations = checker.violations(record(tmp_path, store_type=SyncOffStore), 1, SEED)
    assert any(violation.verdict.startswith(("damaged", "strange")) for violation in violations)


def test_engine_that_answers_before_commit_is_detected(checker: CutChecker, tmp_path: Path) -> None:
    assert "lost" in find_verdicts(checker, record(tmp_path, answers_early=True))


def test_unsynced_folder_is_detected(checker: CutChecker, tmp_path: Path) -> None:
    """The first sync of a new WAL must be followed by one of its folder."""
    recording = record(tmp_path)
    recording.operations = [
        # A second sync in its place, so that the number of operations stays the same.
        ("sync", 1) if operation == ("sync_folder",) else operation
        for operation in recording.operations
    ]
    assert "lost" in find_verdicts(checker, recording)


def test_store_that_does_not_sync_found_wal_is_detected(
    day: Recording, checker: CutChecker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def skip_settling(_: Connection) -> None:
        """Leave the WAL that was found unsynced."""

    monkeypatch.setattr(connect, "_sync_existing_wal", skip_settling)
    at = find_commits(day, len(SCRIPT))[UNSYNCED][1]
    recording = record_killed_day(day, tmp_path, at)

    with pytest.raises(AssertionError, match="interrupted at operation"):
        check_recording(checker, recording, day, at)
