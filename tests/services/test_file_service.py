"""The file service: a disk that accepts no writes is reported, and stops nothing else."""

import errno
from pathlib import Path

import pytest

from dragoman.core.task_state import CreateTask
from dragoman.engine.service_health import HealthProblem
from dragoman.services.file_service import FileService
from dragoman.system.safe_fs import SafeDisk
from tests.engine.lab import HUMAN
from tests.files.lab import FilesLab
from tests.requirements import proves


class FullDisk(SafeDisk):
    """A disk on which nothing more can be written."""

    code = errno.ENOSPC

    def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
        """Fail: no space."""
        raise OSError(self.code, "No space left on device", path)

    def append(self, path: str, offset: int, data: bytes, mtime_ns: int | None = None) -> None:
        """Fail: no space."""
        raise OSError(self.code, "No space left on device", path)


class ReadOnlyDisk(FullDisk):
    """A disk that is mounted read-only."""

    code = errno.EROFS

    def make_folder(self, path: str) -> None:
        """Fail: read-only."""
        raise OSError(self.code, "Read-only file system", path)


@proves("FILES-DISK")
@pytest.mark.parametrize("kind", [FullDisk, ReadOnlyDisk])
def test_files_lag_on_a_full_disk_and_catch_up(tmp_path: Path, kind: type[SafeDisk]) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    lab.do(HUMAN, CreateTask("Second", ready=True))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    reports: list[str] = []
    service = FileService("files", lab.projector(kind(tmp_path)).catch_up, reports.append)
    assert service.run_once(0) == 0
    assert len(reports) == 1
    assert "the files lag behind the ledger" in reports[0]
    assert "dragoman tick" in reports[0]
    assert service.last_problem == HealthProblem(reports[0])
    assert {path: path.read_bytes() for path in before} == before
    assert lab.task("TASK-2026-02-09-002").title == "Second"
    next_service = FileService("files", lab.projector().catch_up, reports.append)
    assert next_service.run_once(0) == 1
    assert next_service.last_problem.message == ""
    assert len(reports) == 1
    assert lab.differences() == []


@proves("FILES-DISK")
def test_disk_that_fills_at_any_write_leaves_nothing_damaged(tmp_path: Path) -> None:
    reports, room = ["not yet"], 0
    while reports:
        data = tmp_path / str(room)
        data.mkdir()
        lab = FilesLab(data)
        task = lab.create()
        lab.claim_only(task)

        class FillingDisk(SafeDisk):
            """A disk with space for a few more files."""

            left = room

            def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
                """Write while there is space."""
                if not self.left:
                    raise OSError(errno.ENOSPC, "No space left on device", path)
                self.left -= 1
                super().write(path, data, mtime_ns)

        reports.clear()
        FileService("files", lab.projector(FillingDisk(data)).catch_up, reports.append).run_once(0)
        lab.catch_up()
        assert lab.differences() == []
        room += 1
    assert room > 3


@proves("FILES-DISK")
def test_service_has_the_name_of_its_files() -> None:
    assert FileService("inbox", lambda: 3, lambda _: None).name == "inbox"
    assert FileService("inbox", lambda: 3, lambda _: None).run_once(0) == 3


@proves("HUB-TROUBLE")
def test_unfinished_work_is_reported_until_done() -> None:
    unfinished = ["the files of one task", ""]
    service = FileService(
        "files", lambda: 3, lambda _: None, find_leftovers=lambda: unfinished.pop(0)
    )
    assert (service.run_once(0), service.last_problem) == (
        3,
        HealthProblem("the files of one task", is_partial=True),
    )
    assert (service.run_once(0), service.last_problem.message) == (3, "")


@proves("HUB-TROUBLE")
def test_unreadable_inbox_message_is_reported_as_waiting_not_as_lagging() -> None:
    def read_inbox() -> int:
        raise PermissionError(errno.EACCES, "Permission denied", "a.json")

    reports: list[str] = []
    FileService("inbox", read_inbox, reports.append).run_once(0)
    assert reports[0].startswith("messages wait in the inbox: a.json: Permission denied")
    assert "recorded" not in reports[0]
