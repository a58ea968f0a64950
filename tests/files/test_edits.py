"""Edited and moved task files: submitted as requests and recorded; no edit is lost."""

import os
import shutil
from pathlib import Path

import msgspec
import pytest

from dragoman.core.attempt import EndAttempt, ReportOutcome
from dragoman.core.task_state import EditTask, MoveTask, NoteTask, Task
from dragoman.files.task_file import parse_task_file
from dragoman.ledger.entry import read_line
from dragoman.system.safe_fs import FileStat, SafeDisk
from tests.engine.lab import ALICE, HUMAN
from tests.files.lab import CrashingDisk, FilesLab, Killed, list_statuses, read_tree
from tests.requirements import proves

SECRET = "ghp_" + "a1B2" * 9


def create_task_in_review(lab: FilesLab) -> str:
    """Make a task that waits for its review."""
    task = lab.create()
    lab.claim_only(task)
    lab.do(ALICE, ReportOutcome(task, "done"))
    lab.do(ALICE, EndAttempt(task))
    lab.catch_up()
    return task


def rejected_files(lab: FilesLab) -> dict[str, str]:
    """Files beside task files: refused contents, and the reasons."""
    found = sorted(lab.data.glob("tasks/*/*.rejected*"))
    return {str(path.relative_to(lab.data)): path.read_text() for path in found}


@proves("FILES-EDITS")
@pytest.mark.parametrize(
    ("old", "new", "field", "value"),
    [
        ('"Fix it"', "Fix that, too", "title", "Fix that, too"),
        ("priority: normal", "priority: critical", "priority", "critical"),
        ("reviewRequired: true", "reviewRequired: false", "review_required", False),
        ("metadata:", "assignee: bob\nmetadata:", "assignee", "bob"),
        ("Do this.", "Do that.\n\n## Work\n\nMore", "body", "Do that.\n\n## Work\n\nMore"),
        ("status: ready", "status: blocked", "status", "blocked"),
    ],
)
def test_edit_is_applied_and_recorded(
    tmp_path: Path, old: str, new: str, field: str, value: object
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create(body="Do this.")
    lab.edit("ready", task, old, new)
    assert lab.scan() == 1
    assert getattr(lab.task(task), field) == value
    last = read_line(lab.store.entries(0, 100)[-1].line)
    assert (last.actor, last.via) == ("file:files", "files")
    assert list_statuses(lab, task) == [lab.task(task).status]
    assert lab.differences() == []
    assert rejected_files(lab) == {}
    assert lab.scan() == 0


@proves("FILES-EDITS")
def test_moved_file_moves_task_and_folder(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    (tmp_path / "tasks" / "ready" / task / "work" / "x").write_text("x")
    lab.path("ready", task).rename(lab.path("blocked", task))
    assert lab.scan() == 1
    assert lab.task(task).status == "blocked"
    assert (tmp_path / "tasks" / "blocked" / task / "work" / "x").exists()
    assert not (tmp_path / "tasks" / "ready" / task).exists()
    assert lab.differences() == []


@proves("FILES-COPY")
def test_copy_in_another_folder_is_not_a_move(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    shutil.copy2(lab.path("ready", task), lab.path("backlog", task))
    assert lab.scan() == 1
    assert list_statuses(lab, task) == [lab.task(task).status] == ["ready"]
    assert list(rejected_files(lab)) == [f"tasks/ready/{task}.rejected.md.reason.txt"]
    assert "the task's own file is in ready" in "".join(rejected_files(lab).values())
    assert lab.scan() == 0
    assert lab.differences() == []


@proves("FILES-COPY")
@pytest.mark.parametrize("original", ["untouched", "edited", "refused"])
def test_edited_copies_are_kept_and_original_is_applied(tmp_path: Path, original: str) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    text = lab.path("ready", task).read_text()
    for copy in ("backlog", "review"):
        lab.path(copy, task).write_text(text.replace("Fix it", f"Copied to {copy}"))
    if original != "untouched":
        new = "title: Edited" if original == "edited" else "title: [a, b]"
        lab.edit("ready", task, 'title: "Fix it"', new)
    lab.scan()
    assert lab.task(task).title == ("Edited" if original == "edited" else "Fix it")
    assert list_statuses(lab, task) == [lab.task(task).status] == ["ready"]
    typed = [words for words in rejected_files(lab).values() if 'title: "Copied to' in words]
    assert len(typed) == 2
    assert lab.scan() == 0


@proves("FILES-COPY")
def test_first_of_two_copies_replaces_missing_original(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    shutil.copy2(lab.path("ready", task), lab.path("blocked", task))
    lab.path("ready", task).rename(lab.path("backlog", task))
    assert lab.scan() == 2
    assert list_statuses(lab, task) == [lab.task(task).status] == ["backlog"]
    assert "own file is in backlog" in "".join(rejected_files(lab).values())


@proves("FILES-COPY")
def test_save_at_old_path_is_applied_after_task_moved(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    typed = lab.path("ready", task).read_text().replace("Fix it", "Fix that")
    lab.do(HUMAN, MoveTask(task, "blocked"))
    lab.catch_up()
    lab.path("ready", task).write_text(typed)
    assert lab.scan() == 1
    assert (lab.task(task).title, list_statuses(lab, task)) == ("Fix that", ["blocked"])
    assert rejected_files(lab) == {}


@proves("FILES-ONE-ANSWER")
@pytest.mark.parametrize("by", ["sweep", "claim", "rebuild"])
@pytest.mark.parametrize(("old", "new"), [('"Fix it"', "{}"), ("Do this.", "Do this.\n\n{}.")])
def test_redacted_edit_rewrites_file_once(tmp_path: Path, by: str, old: str, new: str) -> None:
    lab = FilesLab(tmp_path)
    redactions = list[str]()
    lab.hub.redaction.on_masked = redactions.append
    task = lab.create(body="Do this.")
    lab.edit("ready", task, old, new.format(f"use {SECRET}"))
    if by == "sweep":
        assert lab.scan() == 1
    elif by == "claim":
        lab.claim(task)
    else:
        lab.projector().rebuild(lambda _: None)
    text = lab.path(lab.task(task).status, task).read_text()
    assert SECRET not in text
    assert "use [REDACTED:" in text
    assert len(redactions) == 1
    assert list_statuses(lab, task) == [lab.task(task).status]
    assert (lab.differences(), rejected_files(lab)) == ([], {})
    assert lab.scan() == 0
    assert len([event for _, event in lab.lines() if event == "task.edited"]) == 1


@proves("FILES-ONE-ANSWER", "FILES-CRASH")
def test_crash_before_rewrite_records_edit_once(tmp_path: Path) -> None:
    operations = 0
    while True:
        lab = FilesLab(tmp_path / str(operations))
        lab.data.mkdir()
        task = lab.create()
        lab.edit("ready", task, "Fix it", f"use {SECRET}")
        try:
            lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).scan()
        except Killed:
            lab.scan()
        else:
            break
        assert len([event for _, event in lab.lines() if event == "task.edited"]) == 1
        assert (lab.differences(), rejected_files(lab)) == ([], {})
        operations += 1
    assert operations > 5


@proves("FILES-ONE-ANSWER")
@pytest.mark.parametrize("seal", ["", "projection: 99-deadbeefdeadbeef\n"])
def test_applied_file_is_not_refused_as_well(tmp_path: Path, seal: str) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    path = lab.path("ready", task)
    lines = path.read_text().replace("Fix it", "Fix that").splitlines(keepends=True)
    lab.clock.advance(1)
    path.write_text("".join(seal if line.startswith("projection:") else line for line in lines))
    assert lab.scan() == 1
    assert lab.task(task).title == "Fix that"
    assert (lab.differences(), rejected_files(lab)) == ([], {})


@proves("FILES-EMPTY-BODY")
def test_text_added_to_empty_body_becomes_body(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task, noted = lab.create(), lab.create("Noted")
    with lab.path("ready", task).open("a") as file:
        file.write("\nNew body.\n\n    indented\n")
    lab.do(HUMAN, NoteTask(noted, "a note"))
    lab.catch_up()
    lab.edit("ready", noted, "\n## Work Log", "\nAbove the log.\n\n## Work Log")
    lab.scan()
    assert lab.task(task).body == "New body.\n\n    indented"
    assert lab.task(noted).body == "Above the log."
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_moving_file_does_not_approve_review(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = create_task_in_review(lab)
    lab.path("review", task).rename(lab.path("done", task))
    assert lab.scan() == 1
    assert lab.task(task).status == "review"
    assert list_statuses(lab, task) == ["review"]
    ((path, text),) = rejected_files(lab).items()
    assert path == f"tasks/review/{task}.rejected.md.reason.txt"
    assert "not_authorized" in text
    assert f"tasks/done/{task}.md" in text
    assert lab.scan() == 0
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_trusted_move_approves_review(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path, trust_moves=True)
    task = create_task_in_review(lab)
    lab.path("review", task).rename(lab.path("done", task))
    lab.scan()
    assert lab.task(task).status == "done"
    assert list_statuses(lab, task) == ["done"]
    assert rejected_files(lab) == {}


@proves("FILES-EDITS")
def test_file_is_applied_whole_or_not_at_all(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = create_task_in_review(lab)
    lab.edit("review", task, "Fix it", "Fixed")
    typed = lab.path("review", task).read_text()
    lab.path("review", task).rename(lab.path("done", task))
    lab.scan()
    assert (lab.task(task).title, lab.task(task).status) == ("Fix it", "review")
    assert rejected_files(lab)[f"tasks/review/{task}.rejected.md"] == typed
    assert "is kept in" in rejected_files(lab)[f"tasks/review/{task}.rejected.md.reason.txt"]


@proves("FILES-EDITS")
@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("title: ", "titel: ", "the field title is missing"),
        ("priority: normal", "priority: normal\ncolour: red", "colour is no field of a task"),
        (
            "delegationDepth: 0",
            "delegationDepth: 1",
            "metadata.delegationDepth is no field of a task, or is written by",
        ),
        (
            "| Notes: begun",
            "| Notes: finished",
            "the work log is no field of a task, or is written by the hub",
        ),
        ('"Fix it"', '""', "title is empty"),
        ("status: ready", "status: in-progress", "claim"),
    ],
)
def test_refused_edit_is_undone_and_kept(tmp_path: Path, old: str, new: str, why: str) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.do(HUMAN, NoteTask(task, "begun"))
    lab.catch_up()
    lab.edit("ready", task, old, new)
    typed = lab.path("ready", task).read_text()
    before = lab.task(task)
    assert lab.scan() == 1
    assert lab.task(task) == before
    assert rejected_files(lab)[f"tasks/ready/{task}.rejected.md"] == typed
    assert why in rejected_files(lab)[f"tasks/ready/{task}.rejected.md.reason.txt"]
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_conflicting_status_and_folder_are_refused(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.edit("ready", task, "status: ready", "status: backlog")
    lab.path("ready", task).rename(lab.path("blocked", task))
    lab.scan()
    assert lab.task(task).status == "ready"
    assert "use one of them" in "".join(rejected_files(lab).values())


@proves("FILES-EDITS")
def test_second_refusal_does_not_overwrite_first(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    for words in ("first", "second"):
        lab.path("ready", task).write_text(words)
        lab.scan()
    assert rejected_files(lab)[f"tasks/ready/{task}.rejected.md"] == "first"
    assert rejected_files(lab)[f"tasks/ready/{task}-2.rejected.md"] == "second"


@proves("FILES-EDITS")
def test_edit_is_applied_before_file_is_rewritten(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.edit("ready", task, "Fix it", "Fix it well")
    lab.claim(task)
    assert (lab.task(task).title, lab.task(task).status) == ("Fix it well", "in-progress")
    file = parse_task_file(lab.path("in-progress", task).read_bytes())
    assert (file.title, file.status) == ("Fix it well", "in-progress")
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_only_edited_fields_are_applied(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create(body="Old body.")
    lab.edit("ready", task, "priority: normal", "priority: low")
    lab.do(HUMAN, EditTask(task, title="New title", body="New body."))
    lab.catch_up()
    now = lab.task(task)
    assert (now.title, now.body, now.priority) == ("New title", "New body.", "low")
    assert rejected_files(lab) == {}


@proves("FILES-EDITS")
def test_concurrent_moves_by_person_and_agent_lose_nothing(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    (tmp_path / "tasks" / "ready" / task / "work" / "x").write_text("agent's")
    lab.edit("ready", task, "Fix it", "Fix it for me")
    typed = lab.path("ready", task).read_text()
    lab.path("ready", task).rename(lab.path("backlog", task))
    (tmp_path / "tasks" / "ready" / task).rename(tmp_path / "tasks" / "backlog" / task)
    lab.claim(task)
    assert list_statuses(lab, task) == ["in-progress"]
    assert (tmp_path / "tasks" / "in-progress" / task / "work" / "x").read_text() == "agent's"
    assert typed in rejected_files(lab).values()
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_unsealed_file_is_compared_with_current_task(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lines = lab.path("ready", task).read_text().splitlines(keepends=True)
    text = "".join(line for line in lines if not line.startswith("projection:"))
    lab.path("ready", task).write_text(text.replace("Fix it", "Fix that"))
    lab.clock.advance(1)
    lab.scan()
    assert lab.task(task).title == "Fix that"
    lab.path("ready", task).write_text(text.replace("Fix it", "Fix that"))
    assert lab.scan() == 1, "an old file is no wish to go back in time"
    why = "".join(rejected_files(lab).values())
    assert "its line `projection`, which names the version it was edited from, is missing" in why
    assert "is written by the hub" not in why


@proves("FILES-EDITS")
def test_missing_final_newline_is_not_an_edit(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create(body="Text.")
    path = lab.path("ready", task)
    before = path.read_bytes()
    path.write_bytes(before.rstrip(b"\n"))
    assert lab.scan() == 0
    assert path.read_bytes() == before


@proves("FILES-EDITS", "FILES-BENEATH")
@pytest.mark.parametrize("what", ["binary", "link", "folder"])
def test_irregular_file_in_place_of_task_file_is_kept(tmp_path: Path, what: str) -> None:
    data, secret = tmp_path / "data", tmp_path / "secret"
    data.mkdir()
    secret.write_text("secret")
    lab = FilesLab(data)
    task = lab.create()
    path = lab.path("ready", task)
    path.unlink()
    if what == "binary":
        path.write_bytes(b"\xff\x00")
    elif what == "link":
        path.symlink_to(secret)
    else:
        path.mkdir()
        (path / "inside").write_text("x")
    lab.scan()
    aside = data / "tasks" / "ready" / f"{task}.rejected.md"
    assert aside.exists()
    assert aside.is_symlink() == (what == "link")
    assert aside.with_name(aside.name + ".reason.txt").is_file()
    assert secret.read_text() == "secret"
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_file_of_unknown_task_stays_with_a_note(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    path = lab.path("ready", "TASK-2026-02-09-777")
    path.write_text("mine")
    assert lab.scan() == 1
    assert path.read_text() == "mine"
    assert "There is no task" in path.with_name(path.name + ".reason.txt").read_text()
    assert lab.scan() == 0


@proves("FILES-EDITS")
def test_unrelated_files_are_left_alone(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    strays = {"notes.md": "n", ".hidden": "h", "TASK-1.md": "t", "x.txt": "x"}
    for name, text in strays.items():
        (tmp_path / "tasks" / "ready" / name).write_text(text)
    before = read_tree(tmp_path)
    assert lab.scan() == 0
    assert read_tree(tmp_path) == before


@proves("FILES-EDITS")
@pytest.mark.parametrize("what", ["file", "folder", "tasks", "tasks and events"])
def test_deleted_files_are_restored(tmp_path: Path, what: str) -> None:
    lab = FilesLab(tmp_path)
    task, other = lab.create(), lab.create("Other")
    lab.path("ready", task).unlink()
    if what != "file":
        shutil.rmtree(tmp_path / "tasks" / "ready" / task)
    if what.startswith("tasks"):
        shutil.rmtree(tmp_path / "tasks")
    lab.scan()
    assert lab.differences() == []
    assert (tmp_path / "tasks" / "ready" / task / "outputs").is_dir()
    if what.endswith("events"):
        shutil.rmtree(tmp_path / "events")
    lab.claim(other)
    assert list_statuses(lab, other) == ["in-progress"]
    assert lab.warnings == []


@proves("FILES-EDITS")
def test_edit_with_restored_mtime_is_applied_before_rewrite(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    path = lab.path("ready", task)
    stamp = path.stat().st_mtime_ns
    lab.edit("ready", task, "Fix it", "Fix IT")
    os.utime(path, ns=(stamp, stamp))
    lab.claim(task)
    assert lab.task(task).title == "Fix IT"


@proves("FILES-CRASH", "FILES-EDITS")
def test_crash_while_applying_edits_applies_each_once(tmp_path: Path) -> None:
    operations = 0
    while True:
        lab = FilesLab(tmp_path / str(operations))
        lab.data.mkdir()
        task, other = lab.create(), lab.create("Other")
        lab.edit("ready", task, "Fix it", "Fix that")
        lab.path("ready", task).rename(lab.path("blocked", task))
        lab.path("ready", other).write_text("unreadable words")
        try:
            lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).scan()
        except Killed:
            lab.scan()
        else:
            break
        now: Task = lab.task(task)
        assert (now.title, now.status, list_statuses(lab, task)) == (
            "Fix that",
            "blocked",
            ["blocked"],
        )
        assert len([event for _, event in lab.lines() if event == "task.edited"]) == 1
        assert list(rejected_files(lab).values()).count("unreadable words") == 1
        assert lab.differences() == []
        operations += 1
    assert operations > 10


@proves("FILES-EDITS")
def test_edit_during_rewrite_is_applied(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.do(HUMAN, MoveTask(task, "backlog"))

    class EditingDisk(CrashingDisk):
        """Disk on which a person saves an edit between the write of the next content and its
        rename."""

        def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
            if path.endswith(f".{task}.md.next") and self.operations_left == 1:
                self.operations_left = 0
                lab.edit("ready", task, "Fix it", "Fix it now")
            self._disk.write(path, data, mtime_ns)

    disk = EditingDisk(SafeDisk(tmp_path), 1)
    disk.changing = ()
    lab.projector(disk).catch_up()
    lab.catch_up()
    assert (lab.task(task).title, lab.task(task).status) == ("Fix it now", "backlog")
    assert list_statuses(lab, task) == ["backlog"]
    assert lab.differences() == []


class SavingDisk(CrashingDisk):
    """Disk on which a person saves an edit, as an editor does, right before the file is removed."""

    def __init__(self, path: Path) -> None:
        super().__init__(SafeDisk(path.parents[2]), 0)
        self._path = path

    def remove_if_unchanged(self, path: str, aside: str, seen: FileStat) -> bool:
        if not self.operations_left and path.endswith(
            f"{self._path.parent.name}/{self._path.name}"
        ):
            self.operations_left = 1
            saved = self._path.with_name("saved~")
            saved.write_text(self._path.read_text() + "Typed meanwhile.\n")
            saved.replace(self._path)
        return self._disk.remove_if_unchanged(path, aside, seen)

    changing = ()


@proves("FILES-EDITS")
def test_save_while_move_is_undone_is_kept(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.path("ready", task).rename(lab.path("review", task))
    lab.projector(SavingDisk(lab.path("review", task))).scan()
    ((note, why), (path, text)) = sorted(rejected_files(lab).items(), reverse=True)
    assert "Typed meanwhile." in text
    assert (note, path in why) == (f"{path}.reason.txt", True)
    assert (lab.task(task).status, list_statuses(lab, task)) == ("ready", ["ready"])
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_save_into_outdated_file_before_removal_is_applied(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    before = lab.path("ready", task).read_bytes()
    lab.do(HUMAN, MoveTask(task, "blocked"))
    lab.catch_up()
    lab.path("ready", task).write_bytes(before)
    lab.projector(SavingDisk(lab.path("ready", task))).scan()
    assert (lab.task(task).body, list_statuses(lab, task)) == ("Typed meanwhile.", ["blocked"])
    assert rejected_files(lab) == {}


class KilledDuringDiscard(CrashingDisk):
    """Disk whose process is killed after a file was moved aside and before it is checked there."""

    changing = ()

    def remove_if_unchanged(self, path: str, aside: str, seen: FileStat) -> bool:
        del seen
        self._disk.move(path, aside)
        raise Killed


@proves("FILES-EDITS", "FILES-CRASH")
@pytest.mark.parametrize("by", ["sweep", "rebuild"])
def test_file_displaced_by_killed_process_is_kept(tmp_path: Path, by: str) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    shutil.copy(lab.path("ready", task), lab.path("backlog", task))
    with pytest.raises(Killed):
        lab.projector(KilledDuringDiscard(SafeDisk(tmp_path), 0)).scan()
    displaced = tmp_path / f"tasks/backlog/{task}.rejected.md"
    displaced.write_text(displaced.read_text().replace("Fix it", "Mend it"))

    if by == "sweep":
        lab.scan()
    else:
        lab.projector().rebuild(lambda _: None)

    assert "Mend it" in displaced.read_text()
    assert (lab.task(task).title, list_statuses(lab, task)) == ("Fix it", ["ready"])
    assert lab.differences() == []


@proves("FILES-EDITS")
def test_transition_reason_distinguishes_edit_from_move(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    edited, moved = lab.create(), lab.create()
    lab.edit("ready", edited, "status: ready", "status: blocked")
    (tmp_path / f"tasks/ready/{moved}.md").rename(tmp_path / f"tasks/blocked/{moved}.md")
    lab.scan()

    reasons = {
        line.stream: msgspec.json.decode(line.body)["reason"]
        for line in (read_line(entry.line) for entry in lab.store.entries(0, 100))
        if line.event == "task.transitioned"
    }
    assert reasons == {
        f"task:{edited}": "the status in the task file was edited",
        f"task:{moved}": "the task file was moved",
    }
