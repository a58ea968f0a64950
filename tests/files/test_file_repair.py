"""A tick repairs files that were written here; others are kept under another name, and told."""

import os
from pathlib import Path

from dragoman.core.mail import ReadMail
from dragoman.core.task_state import CreateTask
from tests.engine.lab import BOB, HUMAN
from tests.files.lab import FilesLab, read_tree
from tests.files.test_mail_files import post_letter
from tests.requirements import proves

pytestmark = proves("FILES-REPAIRED")


def test_stale_file_as_it_was_written_here_is_written_again(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    post_letter(lab, "m1")
    lab.catch_up()
    letter = tmp_path / "mail/ol-1/00000001-PROGRESS.md"
    early, stamp = letter.read_bytes(), letter.stat().st_mtime_ns
    lab.do(BOB, ReadMail("m1"))
    lab.catch_up()
    whole = read_tree(tmp_path)
    letter.write_bytes(early)
    os.utime(letter, ns=(stamp, stamp))
    assert lab.differences() == [("mail/ol-1/00000001-PROGRESS.md", "changed")]

    assert lab.projector().mend() == 1

    assert (lab.differences(), lab.warnings) == ([], [])
    assert read_tree(tmp_path) == whole
    assert lab.projector().mend() == 0


def test_changed_file_is_kept_under_another_name_and_told(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    run = tmp_path / f"runs/{task}/run.json"
    mine = run.read_bytes()
    run.write_bytes(b"theirs")

    assert lab.projector().mend() == 1

    assert lab.differences() == []
    assert run.read_bytes() == mine
    assert run.with_name("run.json-found").read_bytes() == b"theirs"
    (warning,) = lab.warnings
    assert warning == (
        f"runs/{task}/run.json was changed by somebody else: it is kept as "
        f"runs/{task}/run.json-found, and written again as the ledger has it"
    )


def test_missing_files_are_written_again(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.claim(lab.create())
    post_letter(lab, "m1")
    lab.catch_up()
    whole = read_tree(tmp_path)
    for path in (*tmp_path.glob("runs/*/run*.json"), *tmp_path.glob("mail/*/*.md")):
        path.unlink()

    assert lab.projector().mend() == 3

    assert read_tree(tmp_path) == whole
    assert lab.warnings == []


def test_edits_of_task_files_and_results_are_left_to_the_scan(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create("Fix it")
    lab.edit("ready", task, "Fix it", "Mend it")
    edited = lab.path("ready", task).read_bytes()

    assert lab.projector().mend() == 0

    assert lab.path("ready", task).read_bytes() == edited
    lab.scan()
    assert lab.task(task).title == "Mend it"


def test_many_tasks_are_repaired_one_part_after_the_other(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, *(CreateTask(f"Task {number}") for number in range(200)))
    lab.do(HUMAN, *(CreateTask(f"Task {number}") for number in range(100)))
    post_letter(lab, "m1")
    lab.catch_up()
    (letter,) = tmp_path.glob("mail/*/*.md")
    letter.unlink()

    assert [lab.projector().mend() for _ in range(4)] == [0, 1, 0, 0]

    letter.unlink()
    assert [lab.projector().mend() for _ in range(2)] == [0, 1]


def test_nothing_is_repaired_before_the_first_entry(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    assert lab.projector().mend() == 0
    assert lab.differences() == []
