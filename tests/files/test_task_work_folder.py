"""Working folder of an attempt: folder, prompt and log, and no symlink is followed."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.core.task_state import EditTask
from dragoman.files.layout import PROJECTION_LOCK
from dragoman.files.task_work_folder import WorkingFolders
from dragoman.system.safe_fs import SafeDisk
from tests.engine.lab import HUMAN
from tests.files.lab import FilesLab
from tests.requirements import proves

pytestmark = proves("RUN-DESK")

TASK = "TASK-2026-02-09-001"


@pytest.fixture
def workplace(tmp_path: Path) -> WorkingFolders:
    return WorkingFolders(tmp_path, lambda: SafeDisk(tmp_path))


def test_open_makes_folder_prompt_and_log(tmp_path: Path, workplace: WorkingFolders) -> None:
    folder = workplace.open(TASK, 1, b"do it")
    assert folder.home == tmp_path / "tasks/in-progress" / TASK
    assert folder.folder.is_dir()
    assert folder.prompt.read_bytes() == b"do it"
    folder.log.write(b"one\n")
    folder.log.write(b"two\n")
    folder.log.close()
    folder.log.close()
    assert (tmp_path / "runs" / TASK / "output.log").read_bytes() == b"one\ntwo\n"
    with pytest.raises(ValueError, match="closed"):
        folder.log.write(b"three\n")


def test_existing_files_move_along_and_earlier_logs_are_kept(
    tmp_path: Path, workplace: WorkingFolders
) -> None:
    ready = tmp_path / "tasks/ready" / TASK / "work"
    ready.mkdir(parents=True)
    (ready / "half").write_text("done")
    for attempt, words in ((1, b"first"), (2, b"second"), (2, b" again"), (3, b"third")):
        folder = workplace.open(TASK, attempt, b"")
        folder.log.write(words)
        folder.log.close()
    assert (folder.folder / "half").read_text() == "done"
    runs = tmp_path / "runs" / TASK
    assert (runs / "output.log").read_bytes() == b"third"
    assert (runs / "attempts/2/output.log").read_bytes() == b"second again"
    assert (runs / "attempts/1/output.log").read_bytes() == b"first"


def test_symlink_in_place_of_log_is_not_followed(tmp_path: Path, workplace: WorkingFolders) -> None:
    (tmp_path / "runs" / TASK).mkdir(parents=True)
    (tmp_path / "runs" / TASK / "output.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"output\.log"):
        workplace.open(TASK, 1, b"")
    assert not (tmp_path / "elsewhere").exists()


def test_pipe_in_place_of_log_does_not_block(tmp_path: Path, workplace: WorkingFolders) -> None:
    (tmp_path / "runs" / TASK).mkdir(parents=True)
    os.mkfifo(tmp_path / "runs" / TASK / "output.log")
    with pytest.raises(OSError, match=r"output\.log"):
        workplace.open(TASK, 1, b"")


def test_open_does_not_wait_for_projection_lock(tmp_path: Path, workplace: WorkingFolders) -> None:
    with SafeDisk(tmp_path).lock(PROJECTION_LOCK):
        folder = workplace.open(TASK, 1, b"do it")
        folder.log.close()
    assert folder.prompt.read_bytes() == b"do it"


def test_folder_of_started_attempt_is_not_moved_by_outdated_projection(
    tmp_path: Path, workplace: WorkingFolders
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.do(HUMAN, EditTask(task, title="Another"))
    opened_folders: list[Path] = []

    class ClaimingDisk(SafeDisk):
        """Disk on which the task is claimed, and its agent started, before a folder is moved."""

        @contextmanager
        def lock_nested(self, path: str) -> Generator[None]:
            if not opened_folders:
                lab.claim_only(task)
                folder = workplace.open(task, 1, b"")
                folder.log.close()
                opened_folders.append(folder.home)
            with super().lock_nested(path):
                yield

    lab.projector(ClaimingDisk(tmp_path)).catch_up()
    assert (opened_folders[0] / "inputs/prompt.md").exists()
    lab.catch_up()
    assert (opened_folders[0] / "inputs/prompt.md").exists()
    assert lab.differences() == []
