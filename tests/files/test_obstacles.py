"""What stands in the way of one task's files is kept or told, and the files of others go on."""

import os
from pathlib import Path

import pytest

from dragoman.core.commands import MoveTask, NoteTask, RequestDelegation
from dragoman.files.layout import fitted, numbered
from dragoman.system.beneath import Beneath
from tests.engine.lab import ALICE, HUMAN, START
from tests.files.lab import FilesLab, places, tree
from tests.requirements import proves

NAMES = (
    b"n" * 250 + b".json",
    b"n" * 255,
    b"." + b"n" * 254,
    b"a." + b"n" * 253,
    "é".encode() * 125 + b".json",
    b"\xe9" * 250 + b".json",
)


@proves("FILES-LONG-NAMES")
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_long_name_that_stands_in_both_places_is_kept_twice(tmp_path: Path, name: bytes) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    for status in ("ready", "in-progress"):
        work = tmp_path / "tasks" / status / task / "work"
        work.mkdir(parents=True, exist_ok=True)
        (work / os.fsdecode(name)).write_text(status)
    lab.sweep()
    lab.do(ALICE, MoveTask(task, "review"))
    lab.do(HUMAN, NoteTask(lab.create("Other"), "x"))
    lab.level()
    work = tmp_path / "tasks" / "review" / task / "work"
    kept = {os.fsencode(path.name): path.read_text() for path in work.iterdir()}
    assert kept.pop(name) == "in-progress"
    assert list(kept.values()) == ["ready"]
    assert all(b"-2" in other and len(other) <= 255 for other in kept)
    assert lab.warnings == []
    assert lab.differences() == []


@proves("FILES-LONG-NAMES")
@pytest.mark.parametrize("spare", [0, 17, 100])
def test_a_name_is_cut_between_characters_and_keeps_its_kind(spare: int) -> None:
    for name in map(os.fsdecode, NAMES):
        short = fitted(name, spare, "-12")
        assert len(os.fsencode(short)) <= 255 - spare
        assert len(os.fsencode(short)) > 255 - spare - 2 - len("-12")
        assert "-12" in short
        assert not name.endswith(".json") or short.endswith("-12.json")
    assert numbered("a/b.tar.gz", 1) == "a/b.tar.gz"
    assert numbered("a/b.tar.gz", 2) == "a/b-2.tar.gz"


@proves("FILES-OBSTACLE")
def test_a_file_in_the_place_of_a_tasks_folder_is_put_aside(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    (tmp_path / "tasks" / "ready" / task / "work" / "a.txt").write_text("mine")
    (tmp_path / "tasks" / "in-progress" / task).write_text("in the way")
    lab.claim(task)
    files = tree(tmp_path / "tasks" / "in-progress")
    assert files[f"{task}/work/a.txt"] == b"mine"
    assert files[f"{task}-found"] == b"in the way"
    assert places(lab, task) == ["in-progress"]
    assert lab.warnings == []


@proves("FILES-FOLDER")
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_a_handoff_replaces_nothing_that_somebody_else_has_put_there(
    tmp_path: Path, kind: str
) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    inputs = tmp_path / "tasks" / "ready" / child / "inputs"
    mine = inputs / "handoff.md"
    if kind == "file":
        mine.write_text("mine")
    elif kind == "link":
        mine.symlink_to("/etc/passwd")
    else:
        (mine / "deep").mkdir(parents=True)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))
    lab.level()
    assert sorted(path.name for path in inputs.iterdir()) == [
        "handoff.json",
        "handoff.md",
        "handoff.md-found",
    ]
    assert mine.read_text().startswith("# Handoff Request")
    assert mine.is_file()
    assert not mine.is_symlink()
    assert lab.warnings == []


@proves("FILES-FOLDER")
def test_a_handoff_that_changes_replaces_its_own_files_wherever_they_are(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))
    lab.level()
    lab.do(HUMAN, MoveTask(child, "backlog"))
    lab.level()
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**9, constraints=("gently",)))
    lab.level()
    inputs = tmp_path / "tasks" / "backlog" / child / "inputs"
    assert "gently" in (inputs / "handoff.md").read_text()
    assert sorted(path.name for path in inputs.iterdir()) == ["handoff.json", "handoff.md"]
    (inputs / "handoff.md").write_text("my notes on it")
    lab.do(HUMAN, NoteTask(child, "x"))
    lab.level()
    assert "gently" in (inputs / "handoff.md").read_text()
    assert (inputs / "handoff.md-found").read_text() == "my notes on it"


@proves("FILES-OBSTACLE")
def test_files_of_one_task_that_cannot_be_written_are_tried_again_by_every_look_around(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    obstacle = tmp_path / "runs" / task / "run.json"
    obstacle.mkdir(parents=True)
    (obstacle / "mine").write_text("x")
    lab.claim(task)
    other = lab.create("Other")
    assert places(lab, other) == ["ready"]
    assert len(lab.warnings) == 1
    assert f"task:{task}" in lab.warnings[0]
    # Another process knows of it, too, though nothing has happened to the task since.
    later = lab.projector()
    later.level()
    assert "run.json" in later.trouble()
    later.sweep()
    assert "run.json" in later.trouble()
    (obstacle / "mine").unlink()
    obstacle.rmdir()
    later.sweep()
    assert later.trouble() == ""
    assert lab.projector().trouble() == ""
    assert lab.differences() == []
    assert b"behind" not in (tmp_path / "projection.json").read_bytes()


@proves("FILES-OBSTACLE")
def test_a_folder_that_may_not_be_entered_stops_only_its_task(tmp_path: Path) -> None:
    class Strict(Beneath):
        """A disk on which one task has a folder of somebody else's."""

        def move(self, old: str, new: str) -> bool:
            """Move what is ours."""
            if first in old:
                raise PermissionError(13, "Permission denied", old)
            return super().move(old, new)

    lab = FilesLab(tmp_path)
    first, second, third = lab.create("A"), lab.create("B"), lab.create("C")
    for task in (first, second, third):
        lab.claim_only(task)
    projector = lab.projector(Strict(tmp_path))
    projector.level()
    assert places(lab, first) == ["ready"]
    assert places(lab, second) == places(lab, third) == ["in-progress"]
    assert f"task:{first}" in projector.trouble()
    lab.do(HUMAN, MoveTask(second, "blocked"))
    lab.sweep()
    assert places(lab, first) == ["in-progress"]
    assert lab.differences() == []
