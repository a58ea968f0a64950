"""Obstacles to one task's files: kept or reported, while the files of others are written."""

import os
from pathlib import Path

import pytest

from dragoman.core.delegation import RequestDelegation
from dragoman.core.task_state import MoveTask, NoteTask
from dragoman.files.layout import numbered_path, shorten_name
from dragoman.system.safe_fs import SafeDisk
from tests.engine.lab import ALICE, HUMAN, START
from tests.files.lab import FilesLab, list_statuses, read_tree
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
def test_long_name_in_both_folders_is_kept_twice(tmp_path: Path, name: bytes) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    for status in ("ready", "in-progress"):
        work = tmp_path / "tasks" / status / task / "work"
        work.mkdir(parents=True, exist_ok=True)
        (work / os.fsdecode(name)).write_text(status)
    lab.scan()
    lab.do(ALICE, MoveTask(task, "review"))
    lab.do(HUMAN, NoteTask(lab.create("Other"), "x"))
    lab.catch_up()
    work = tmp_path / "tasks" / "review" / task / "work"
    kept = {os.fsencode(path.name): path.read_text() for path in work.iterdir()}
    assert kept.pop(name) == "in-progress"
    assert list(kept.values()) == ["ready"]
    assert all(b"-2" in other and len(other) <= 255 for other in kept)
    assert lab.warnings == []
    assert lab.differences() == []


@proves("FILES-LONG-NAMES")
@pytest.mark.parametrize("spare", [0, 17, 100])
def test_shortened_name_keeps_whole_characters_and_suffix(spare: int) -> None:
    for name in map(os.fsdecode, NAMES):
        shortened = shorten_name(name, spare, "-12")
        assert len(os.fsencode(shortened)) <= 255 - spare
        assert len(os.fsencode(shortened)) > 255 - spare - 2 - len("-12")
        assert "-12" in shortened
        assert not name.endswith(".json") or shortened.endswith("-12.json")
    assert numbered_path("a/b.tar.gz", 1) == "a/b.tar.gz"
    assert numbered_path("a/b.tar.gz", 2) == "a/b-2.tar.gz"


@proves("FILES-OBSTACLE")
def test_file_in_place_of_task_folder_is_set_aside(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    (tmp_path / "tasks" / "ready" / task / "work" / "a.txt").write_text("mine")
    (tmp_path / "tasks" / "in-progress" / task).write_text("in the way")
    lab.claim(task)
    files = read_tree(tmp_path / "tasks" / "in-progress")
    assert files[f"{task}/work/a.txt"] == b"mine"
    assert files[f"{task}-found"] == b"in the way"
    assert list_statuses(lab, task) == ["in-progress"]
    assert lab.warnings == []


@proves("FILES-FOLDER")
@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_handoff_files_replace_no_foreign_file(tmp_path: Path, kind: str) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    inputs = tmp_path / "tasks" / "ready" / child / "inputs"
    foreign = inputs / "handoff.md"
    if kind == "file":
        foreign.write_text("mine")
    elif kind == "link":
        foreign.symlink_to("/etc/passwd")
    else:
        (foreign / "deep").mkdir(parents=True)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))
    lab.catch_up()
    assert sorted(path.name for path in inputs.iterdir()) == [
        "handoff.json",
        "handoff.md",
        "handoff.md-found",
    ]
    assert foreign.read_text().startswith("# Handoff Request")
    assert foreign.is_file()
    assert not foreign.is_symlink()
    assert lab.warnings == []


@proves("FILES-FOLDER")
def test_changed_handoff_replaces_its_own_files(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))
    lab.catch_up()
    lab.do(HUMAN, MoveTask(child, "backlog"))
    lab.catch_up()
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**9, constraints=("gently",)))
    lab.catch_up()
    inputs = tmp_path / "tasks" / "backlog" / child / "inputs"
    assert "gently" in (inputs / "handoff.md").read_text()
    assert sorted(path.name for path in inputs.iterdir()) == ["handoff.json", "handoff.md"]
    (inputs / "handoff.md").write_text("my notes on it")
    lab.do(HUMAN, NoteTask(child, "x"))
    lab.catch_up()
    assert "gently" in (inputs / "handoff.md").read_text()
    assert (inputs / "handoff.md-found").read_text() == "my notes on it"


@proves("FILES-OBSTACLE")
def test_unwritable_files_are_retried_by_every_scan(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    obstacle = tmp_path / "runs" / task / "run.json"
    obstacle.mkdir(parents=True)
    (obstacle / "mine").write_text("x")
    lab.claim(task)
    other = lab.create("Other")
    assert list_statuses(lab, other) == ["ready"]
    assert len(lab.warnings) == 1
    assert f"task:{task}" in lab.warnings[0]
    # Another process knows of it, too, though nothing has happened to the task since.
    later = lab.projector()
    later.catch_up()
    assert "run.json" in later.failure_summary()
    later.scan()
    assert "run.json" in later.failure_summary()
    (obstacle / "mine").unlink()
    obstacle.rmdir()
    later.scan()
    assert later.failure_summary() == ""
    assert lab.projector().failure_summary() == ""
    assert lab.differences() == []
    assert b"failed" not in (tmp_path / "projection.json").read_bytes()


@proves("FILES-OBSTACLE")
def test_inaccessible_folder_stops_only_its_task(tmp_path: Path) -> None:
    class DeniedDisk(SafeDisk):
        """Disk that denies access to the folder of one task."""

        def move(self, old: str, new: str) -> bool:
            """Move, unless denied."""
            if first in old:
                raise PermissionError(13, "Permission denied", old)
            return super().move(old, new)

    lab = FilesLab(tmp_path)
    first, second, third = lab.create("A"), lab.create("B"), lab.create("C")
    for task in (first, second, third):
        lab.claim_only(task)
    projector = lab.projector(DeniedDisk(tmp_path))
    projector.catch_up()
    assert list_statuses(lab, first) == ["ready"]
    assert list_statuses(lab, second) == list_statuses(lab, third) == ["in-progress"]
    assert f"task:{first}" in projector.failure_summary()
    lab.do(HUMAN, MoveTask(second, "blocked"))
    lab.scan()
    assert list_statuses(lab, first) == ["in-progress"]
    assert lab.differences() == []
