"""The power test has teeth: what is broken on purpose is found by the very judge that passes us."""

from pathlib import Path

import pytest

from dragoman.store.sqlite import connect, log
from dragoman.store.sqlite.driver import Connection
from tests.conformance.store.scripts import SCRIPT
from tests.faults.power import Judge
from tests.faults.recording import Copied, Recording, Watched, record
from tests.faults.test_interrupted import UNSYNCED, check, commits, killed
from tests.requirements import proves

pytestmark = proves("POWER-TEETH")

SEED = 1


class Normal(Watched):
    """Syncs the WAL only when it is copied back, as so many advise."""

    settings = (*Watched.settings, ("synchronous", "normal"))


class Off(Watched):
    """Leaves it to the operating system when anything reaches the disk."""

    settings = (*Watched.settings, ("synchronous", "off"))


def verdicts(judge: Judge, recording: Recording, ways: int = 0) -> set[str]:
    """What the judge complains of; no longer than until a lost write is found."""
    found: set[str] = set()
    for complaint in judge.complaints(recording, ways, SEED, first=recording.answered[0][0]):
        found.add(complaint.verdict)
        if complaint.verdict == "lost":
            break
    return found


def test_a_copy_of_the_log_that_is_not_synced_loses_what_was_acknowledged(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hasty(path: Path) -> Connection:
        copier = connect.open_copier(path)
        copier.pragma("synchronous", "off")
        return copier

    monkeypatch.setattr(log, "_PAGES", 5)
    monkeypatch.setattr(log, "open_copier", hasty)
    assert "lost" in verdicts(judge, record(tmp_path, store_type=Copied), ways=3)


@pytest.mark.parametrize("broken", [Normal, Off])
def test_a_store_that_syncs_less_loses_what_was_acknowledged(
    judge: Judge, tmp_path: Path, broken: type[Watched]
) -> None:
    assert "lost" in verdicts(judge, record(tmp_path, store_type=broken))


def test_a_store_that_syncs_nothing_is_damaged_too(judge: Judge, tmp_path: Path) -> None:
    complaints = judge.complaints(record(tmp_path, store_type=Off), 1, SEED)
    assert any(complaint.verdict.startswith(("damaged", "strange")) for complaint in complaints)


def test_an_engine_that_answers_before_the_commit_loses_what_it_acknowledged(
    judge: Judge, tmp_path: Path
) -> None:
    assert "lost" in verdicts(judge, record(tmp_path, hastily=True))


def test_a_disk_whose_folders_are_not_synced_loses_what_was_acknowledged(
    judge: Judge, tmp_path: Path
) -> None:
    """The first sync of a new WAL must be followed by one of its folder."""
    recording = record(tmp_path)
    recording.tape = [
        # Done again, so that the tape stays as long as it was.
        ("sync", 1) if operation == ("sync_folder",) else operation
        for operation in recording.tape
    ]
    assert "lost" in verdicts(judge, recording)


def test_a_store_that_does_not_sync_what_it_finds_loses_what_was_seen(
    day: Recording, judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave_it(_: Connection) -> None:
        """As if it were on the disk already."""

    monkeypatch.setattr(connect, "_settle", leave_it)
    at = commits(day, len(SCRIPT))[UNSYNCED][1]
    recording = killed(day, tmp_path, at)

    with pytest.raises(AssertionError, match="interrupted at operation"):
        check(judge, recording, day, at)
