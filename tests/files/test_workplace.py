"""The desk of an attempt: folder, prompt and log, and no link that leads elsewhere."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.core.commands import EditTask
from dragoman.files.layout import LOCK
from dragoman.files.tasks.workplace import Workplace
from dragoman.system.beneath import Beneath
from tests.engine.lab import HUMAN
from tests.files.lab import FilesLab
from tests.requirements import proves

pytestmark = proves("RUN-DESK")

TASK = "TASK-2026-02-09-001"


@pytest.fixture
def workplace(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path, lambda: Beneath(tmp_path))


def test_a_desk_has_a_folder_a_prompt_and_a_log(tmp_path: Path, workplace: Workplace) -> None:
    desk = workplace.open(TASK, 1, b"do it")
    assert desk.home == tmp_path / "tasks/in-progress" / TASK
    assert desk.folder.is_dir()
    assert desk.prompt.read_bytes() == b"do it"
    desk.log.write(b"one\n")
    desk.log.write(b"two\n")
    desk.log.close()
    desk.log.close()
    assert (tmp_path / "runs" / TASK / "output.log").read_bytes() == b"one\ntwo\n"
    with pytest.raises(ValueError, match="closed"):
        desk.log.write(b"three\n")


def test_what_was_there_comes_along_and_earlier_logs_are_kept(
    tmp_path: Path, workplace: Workplace
) -> None:
    ready = tmp_path / "tasks/ready" / TASK / "work"
    ready.mkdir(parents=True)
    (ready / "half").write_text("done")
    for attempt, words in ((1, b"first"), (2, b"second"), (2, b" again"), (3, b"third")):
        desk = workplace.open(TASK, attempt, b"")
        desk.log.write(words)
        desk.log.close()
    assert (desk.folder / "half").read_text() == "done"
    runs = tmp_path / "runs" / TASK
    assert (runs / "output.log").read_bytes() == b"third"
    assert (runs / "attempts/2/output.log").read_bytes() == b"second again"
    assert (runs / "attempts/1/output.log").read_bytes() == b"first"


def test_a_link_in_the_place_of_the_log_is_not_followed(
    tmp_path: Path, workplace: Workplace
) -> None:
    (tmp_path / "runs" / TASK).mkdir(parents=True)
    (tmp_path / "runs" / TASK / "output.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"output\.log"):
        workplace.open(TASK, 1, b"")
    assert not (tmp_path / "elsewhere").exists()


def test_a_pipe_in_the_place_of_the_log_holds_nobody_up(
    tmp_path: Path, workplace: Workplace
) -> None:
    (tmp_path / "runs" / TASK).mkdir(parents=True)
    os.mkfifo(tmp_path / "runs" / TASK / "output.log")
    with pytest.raises(OSError, match=r"output\.log"):
        workplace.open(TASK, 1, b"")


def test_a_desk_does_not_wait_for_whoever_writes_the_files(
    tmp_path: Path, workplace: Workplace
) -> None:
    with Beneath(tmp_path).lock(LOCK):
        assert workplace.open(TASK, 1, b"do it").prompt.read_bytes() == b"do it"


def test_a_folder_stays_where_an_agent_was_given_it_while_older_news_is_written(
    tmp_path: Path, workplace: Workplace
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.do(HUMAN, EditTask(task, title="Another"))
    begun: list[Path] = []

    class StartingMeanwhile(Beneath):
        """Before a folder is moved, the task is claimed and its agent has begun."""

        @contextmanager
        def hold(self, path: str) -> Generator[None]:
            if not begun:
                lab.claim_only(task)
                begun.append(workplace.open(task, 1, b"").home)
            with super().hold(path):
                yield

    lab.projector(StartingMeanwhile(tmp_path)).level()
    assert (begun[0] / "inputs/prompt.md").exists()
    lab.level()
    assert (begun[0] / "inputs/prompt.md").exists()
    assert lab.differences() == []
