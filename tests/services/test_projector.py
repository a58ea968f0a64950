"""The files duty: a disk that takes nothing is told, and stops nothing else."""

import errno
from pathlib import Path

import pytest

from dragoman.core.commands import CreateTask
from dragoman.engine.trouble import Trouble
from dragoman.services.projector import FilesDuty
from dragoman.system.beneath import Beneath
from tests.engine.lab import HUMAN
from tests.files.lab import FilesLab
from tests.requirements import proves


class FullDisk(Beneath):
    """A disk on which nothing more can be written."""

    code = errno.ENOSPC

    def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
        """There is no room."""
        raise OSError(self.code, "No space left on device", path)

    def append(self, path: str, keep: int, data: bytes, mtime_ns: int | None = None) -> None:
        """There is no room for this either."""
        raise OSError(self.code, "No space left on device", path)


class ReadOnlyDisk(FullDisk):
    """A disk that was mounted so that nothing can be written."""

    code = errno.EROFS

    def make_folder(self, path: str) -> None:
        """Not even a name."""
        raise OSError(self.code, "Read-only file system", path)


@proves("FILES-DISK")
@pytest.mark.parametrize("kind", [FullDisk, ReadOnlyDisk])
def test_files_lag_and_catch_up(tmp_path: Path, kind: type[Beneath]) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    lab.do(HUMAN, CreateTask("Second", ready=True))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    told: list[str] = []
    duty = FilesDuty("files", lab.projector(kind(tmp_path)).level, told.append)
    assert duty.run_once(0) == 0
    assert len(told) == 1
    assert "the files lag behind the ledger" in told[0]
    assert "dragoman tick" in told[0]
    assert duty.undone == Trouble(told[0])
    assert {path: path.read_bytes() for path in before} == before
    assert lab.task("TASK-2026-02-09-002").title == "Second"
    again = FilesDuty("files", lab.projector().level, told.append)
    assert again.run_once(0) == 1
    assert again.undone.words == ""
    assert len(told) == 1
    assert lab.differences() == []


@proves("FILES-DISK")
def test_a_disk_that_fills_at_any_operation_leaves_nothing_damaged(tmp_path: Path) -> None:
    told, room = ["not yet"], 0
    while told:
        data = tmp_path / str(room)
        data.mkdir()
        lab = FilesLab(data)
        task = lab.create()
        lab.claim_only(task)

        class Filling(Beneath):
            """A disk with room for a few more files."""

            left = room

            def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
                """Write while there is room."""
                if not self.left:
                    raise OSError(errno.ENOSPC, "No space left on device", path)
                self.left -= 1
                super().write(path, data, mtime_ns)

        told.clear()
        FilesDuty("files", lab.projector(Filling(data)).level, told.append).run_once(0)
        lab.level()
        assert lab.differences() == []
        room += 1
    assert room > 3


@proves("FILES-DISK")
def test_it_is_named_after_its_part() -> None:
    assert FilesDuty("inbox", lambda: 3, lambda _: None).name == "inbox"
    assert FilesDuty("inbox", lambda: 3, lambda _: None).run_once(0) == 3


@proves("HUB-TROUBLE")
def test_what_is_left_of_its_work_is_told_until_it_is_done() -> None:
    left = ["the files of one task", ""]
    duty = FilesDuty("files", lambda: 3, lambda _: None, left=lambda: left.pop(0))
    assert (duty.run_once(0), duty.undone) == (
        3,
        Trouble("the files of one task", is_partial=True),
    )
    assert (duty.run_once(0), duty.undone.words) == (3, "")


@proves("HUB-TROUBLE")
def test_a_message_that_cannot_be_taken_is_not_called_a_file_that_lags() -> None:
    def take() -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "a.json")

    told: list[str] = []
    FilesDuty("inbox", take, told.append).run_once(0)
    assert told[0].startswith("messages wait in the inbox: a.json: Permission denied")
    assert "recorded" not in told[0]


@proves("FILES-DISK")
def test_a_look_around_rests_twenty_times_as_long_as_it_took() -> None:
    clock, looks = [0.0], list[float]()

    def look() -> int:
        looks.append(clock[0])
        clock[0] += 2
        return 1

    duty = FilesDuty("files", look, lambda _: None, lambda: clock[0])
    for at in (0.0, 5.0, 41.0, 42.0, 50.0):
        clock[0] = max(clock[0], at)
        duty.run_once(0)
    assert looks == [0.0, 42.0]
