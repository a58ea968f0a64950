"""The projection: everything at its path, level whatever happened before, each event line once."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import (
    CreateTask,
    DelegateIntent,
    EndAttempt,
    ExpireLease,
    MoveTask,
    NoteTask,
    RenewLease,
    ReportOutcome,
    RequestDelegation,
    UpdateTask,
)
from dragoman.core.moments import parse_rfc3339
from dragoman.files import projector
from dragoman.files.layout import has_stamp, stamp
from dragoman.files.tasks.task_file import read_task_file
from dragoman.system.beneath import Beneath
from tests.engine.lab import ALICE, HUMAN, START, TTL
from tests.files.lab import Died, FilesLab, MortalDisk, places, tree
from tests.requirements import proves

TOP_FOLDERS = ("tasks", "runs", "events", "inbox")


def events(lab: FilesLab) -> list[int]:
    """The ids of all event lines, in the order of the files."""
    return [
        json.loads(line)["eventId"]
        for path in sorted(lab.data.glob("events/*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def busy_life(lab: FilesLab) -> str:
    """A task with everything that leaves a file, and one that it was handed to."""
    lab.do(HUMAN, CreateTask("Parent", "ol-527.1", ready=True, aliases=("bead:ol-527.1",)))
    task = lab.task("ol-527.1").aof_id
    lab.do(HUMAN, CreateTask("Child", ready=True, parent="ol-527.1"))
    child = next(name for name in lab.task("ol-527.1").children)
    lab.claim_only(task)
    lab.do(ALICE, NoteTask(task, "begun"))
    lab.clock.advance(TTL)
    lab.do(SYSTEM, ExpireLease(task))
    lab.clock.advance(60_000)
    lab.claim_only(task)
    lab.do(
        ALICE, RequestDelegation(child, task, "bob", START + 10**8, acceptance_criteria=("a", "b"))
    )
    lab.do(ALICE, UpdateTask(task, progress="half", blockers=("key",), sent_at=START + 1))
    lab.do(ALICE, ReportOutcome(task, "done", "well", details={"deliverables": ["x"]}))
    lab.do(ALICE, EndAttempt(task))
    lab.do(HUMAN, MoveTask(task, "done"))
    return task


@proves("FILES-PROJECTION")
def test_a_new_task_has_its_file_and_its_folder(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create("Fix it", body="Do this.", priority="high")
    file = read_task_file(lab.path("ready", task).read_bytes())
    assert (file.id, file.title, file.body) == (task, "Fix it", "Do this.")
    assert (file.status, file.priority, file.created_at) == ("ready", "high", START)
    folder = tmp_path / "tasks" / "ready" / task
    assert sorted(path.name for path in folder.iterdir()) == ["inputs", "outputs", "work"]
    assert not (tmp_path / "runs" / task).exists()


@proves("FILES-PROJECTION", "FILES-ARTIFACTS")
def test_a_busy_life_leaves_everything_at_its_path(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = busy_life(lab)
    lab.level()
    assert places(lab, task) == ["done"]
    file = read_task_file(lab.path("done", task).read_bytes())
    assert file.primary_id == "ol-527.1"
    assert [(entry.at, entry.progress, entry.notes) for entry in file.log] == [
        (START, "", "begun"),
        (START + 1, "half", ""),
    ]
    runs = tmp_path / "runs" / task
    first = json.loads((runs / "attempts" / "1" / "run.json").read_text())
    assert (first["status"], first["reason"]) == ("expired", "stale_heartbeat")
    assert json.loads((runs / "run.json").read_text())["status"] == "completed"
    assert json.loads((runs / "run_result.json").read_text())["deliverables"] == ["x"]
    assert json.loads((runs / "run_heartbeat.json").read_text())["beatCount"] == 1
    child = lab.task(lab.task("ol-527.1").children[0])
    inputs = tmp_path / "tasks" / "ready" / child.aof_id / "inputs"
    assert json.loads((inputs / "handoff.json").read_text())["parentTaskId"] == task
    assert (inputs / "handoff.md").read_text().startswith("# Handoff Request\n")
    handed = read_task_file(lab.path("ready", child.aof_id).read_bytes())
    assert (handed.parent_id, handed.depth) == (task, 1)
    assert lab.differences() == []
    assert lab.warnings == []


@proves("CCOS-PROMPT", "FILES-PROJECTION")
def test_the_folder_of_an_intent_s_task_has_what_was_asked_for(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, CreateTask("Hull", "old", ready=True))
    beside = {"new": {"meta": {"trace": "t-7"}}, "old": dict[str, Any]()}
    for name, more in beside.items():
        goal = DelegateIntent("weld\x1b[2J", name, {"thickness": 5}, ("gently",))
        lab.do(HUMAN, replace(goal, passed_on=more))
        lab.level()
        task = lab.task(name).aof_id
        document = (tmp_path / "tasks" / "blocked" / task / "inputs/request.json").read_text()
        assert json.loads(document) == {
            "taskId": task,
            "intentId": name,
            "fromAgent": HUMAN.name,
            "goal": "weld\x1b[2J",
            "params": {"thickness": 5},
            "constraints": ["gently"],
            **({"passedOn": more} if more else {}),
        }
        assert "\x1b" not in document
    lab.do(HUMAN, MoveTask("new", "cancelled"))
    lab.level()
    assert lab.differences() == []


@proves("FILES-PROJECTION")
def test_running_again_changes_nothing(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    busy_life(lab)
    lab.level()
    before = tree(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    lab.level()
    assert lab.sweep() == 0
    assert tree(tmp_path) == before
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


@proves("FILES-CRASH")
def test_a_crash_between_any_two_operations_is_made_good_by_the_next_run(tmp_path: Path) -> None:
    clean = FilesLab(tmp_path / "clean")
    clean.data.mkdir()
    task = busy_life(clean)
    clean.level()
    expected = tree(clean.data)
    operations = 0
    while True:
        lab = FilesLab(tmp_path / f"crash{operations}")
        lab.data.mkdir()
        busy_life(lab)
        try:
            lab.projector(MortalDisk(Beneath(lab.data), operations)).level()
        except Died:
            assert len(places(lab, task)) <= 1
            lab.level()
            assert tree(lab.data) == expected, f"after {operations} operations"
            operations += 1
        else:
            break
    assert operations > 40


@proves("FILES-CRASH", "FILES-FOLDER")
def test_a_crash_in_each_step_of_a_life_loses_nothing_of_an_agents_files(tmp_path: Path) -> None:
    """Every change of the task is projected by a process that dies a little later than the last."""
    for stride in range(1, 12):
        lab = FilesLab(tmp_path / str(stride))
        lab.data.mkdir()
        task = lab.create()
        (lab.data / "tasks" / "ready" / task / "work" / "draft").write_text("mine")
        steps = [
            partial(lab.claim_only, task),
            partial(lab.do, ALICE, MoveTask(task, "blocked", "why")),
            partial(lab.do, HUMAN, MoveTask(task, "ready")),
            partial(lab.do, HUMAN, MoveTask(task, "backlog")),
        ]
        for number, step in enumerate(steps):
            step()
            disk = MortalDisk(Beneath(lab.data), stride * (number + 1) % 13)
            try:
                lab.projector(disk).level()
            except Died:
                assert len(places(lab, task)) <= 1
        lab.level()
        assert lab.sweep() == 0
        assert places(lab, task) == ["backlog"]
        kept = list(lab.data.glob(f"tasks/*/{task}/work/draft"))
        assert [path.read_text() for path in kept] == ["mine"]
        assert kept[0].parts[-4] == "backlog"
        assert events(lab) == sorted(set(events(lab)))
        assert lab.differences() == []
        assert not list(lab.data.glob("tasks/*/*reason*")), "a move of ours is no wish"


@proves("FILES-CRASH")
@pytest.mark.parametrize("torn", [b'{"eventId":', b"\xff\xfe", b'{"eventId":999999999999999'])
def test_a_torn_event_line_is_cut_off_and_written_again(tmp_path: Path, torn: bytes) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    expected = tree(tmp_path)
    day = next(tmp_path.glob("events/*.jsonl"))
    whole = day.read_bytes()
    day.write_bytes(whole[: whole.index(b"\n") + 1] + torn)
    (tmp_path / "projection.json").unlink()
    lab.level()
    assert tree(tmp_path) == expected


@proves("FILES-CRASH")
def test_a_line_that_somebody_added_does_not_stop_the_log(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    day = next(tmp_path.glob("events/*.jsonl"))
    day.write_bytes(day.read_bytes() + b"hello\n")
    lab.claim(task)
    assert day.read_text().count("eventId") == 4
    assert (f"events/{day.name}", "changed") in lab.differences()


@proves("FILES-PROJECTION")
def test_event_lines_stand_in_the_file_of_their_day(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    lab.clock.advance(86_400_000)
    lab.create()
    lab.clock.advance(-86_400_000)
    lab.create()
    assert [path.name for path in sorted(tmp_path.glob("events/*"))] == [
        "2026-02-09.jsonl",
        "2026-02-10.jsonl",
    ]
    assert len(events(lab)) == 6
    assert lab.differences() == []


@proves("FILES-PROJECTION")
def test_many_processes_at_once_end_level(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)

    def work(number: int) -> None:
        lab.do(HUMAN, CreateTask(f"Task {number}", ready=True))
        lab.projector().level()
        assert any(f'"Task {number}"' in p.read_text() for p in tmp_path.glob("tasks/ready/*.md"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))
    assert lab.differences() == []
    assert events(lab) == sorted(set(events(lab)))


@proves("FILES-PROJECTION", "FILES-ARTIFACTS")
def test_a_heartbeat_is_told_although_it_leaves_no_entry(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    beat = tmp_path / "runs" / task / "run_heartbeat.json"
    lab.clock.advance(1_000)
    lab.do(ALICE, RenewLease(task))
    lab.projector().level(beaten=[f"task:{task}"])
    assert json.loads(beat.read_text())["beatCount"] == 2
    lab.do(ALICE, RenewLease(task))
    lab.sweep()
    assert json.loads(beat.read_text())["beatCount"] == 3


@proves("FILES-ARTIFACTS")
def test_an_attempts_last_heartbeat_goes_with_it(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    lab.do(ALICE, RenewLease(task))
    lab.sweep()
    lab.clock.advance(TTL)
    lab.do(SYSTEM, ExpireLease(task))
    lab.clock.advance(60_000)
    lab.claim(task)
    runs = tmp_path / "runs" / task
    old = json.loads((runs / "attempts" / "1" / "run_heartbeat.json").read_text())
    assert (old["beatCount"], old["lastHeartbeat"]) == (2, "2026-02-09T14:30:00.000Z")
    assert json.loads((runs / "run_heartbeat.json").read_text())["beatCount"] == 1


@proves("FILES-FOLDER")
def test_an_agent_that_is_writing_goes_on_in_the_new_folder(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    folder = tmp_path / "tasks" / "in-progress" / task
    with (folder / "outputs" / "summary.md").open("w") as file:
        file.write("first ")
        lab.do(ALICE, MoveTask(task, "review"))
        lab.level()
        file.write("second")
    moved = tmp_path / "tasks" / "review" / task / "outputs" / "summary.md"
    assert moved.read_text() == "first second"
    assert not folder.exists()


@proves("FILES-FOLDER")
def test_what_is_written_to_the_old_path_is_brought_after(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    ready = tmp_path / "tasks" / "ready" / task
    (ready / "outputs" / "a.md").write_text("one")
    (ready / "work" / "deep").mkdir()
    (ready / "work" / "deep" / "b").write_text("old b")
    lab.claim(task)
    late = ready / "outputs"
    late.mkdir(parents=True)
    (late / "a.md").write_text("another")
    (late / "c.md").write_text("late")
    (ready / "work" / "deep").mkdir(parents=True)
    (ready / "work" / "deep" / "b").write_text("new b")
    (ready / "stray").symlink_to("/etc/passwd")
    lab.sweep()
    home = tmp_path / "tasks" / "in-progress" / task
    assert (home / "outputs" / "a.md").read_text() == "one"
    assert (home / "outputs" / "a-2.md").read_text() == "another"
    assert (home / "outputs" / "c.md").read_text() == "late"
    assert (home / "work" / "deep" / "b").read_text() == "old b"
    assert (home / "work" / "deep" / "b-2").read_text() == "new b"
    assert (home / "stray").is_symlink()
    assert not ready.exists()


@proves("FILES-FOLDER", "FILES-BENEATH")
def test_a_link_in_the_place_of_a_folder_is_put_aside_and_never_followed(tmp_path: Path) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.mkdir()
    lab = FilesLab(data)
    parent, child = lab.create("Parent"), lab.create("Child")
    inputs = data / "tasks" / "ready" / child / "inputs"
    inputs.rmdir()
    inputs.symlink_to(outside)
    (data / "runs" / parent).symlink_to(outside)
    lab.claim(parent)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))
    lab.level()
    assert list(outside.iterdir()) == []
    assert (inputs / "handoff.json").is_file()
    assert (inputs.parent / "inputs-found").is_symlink()
    assert (data / "runs" / parent / "run.json").is_file()
    assert lab.warnings == []


@proves("FILES-PLACES", "FILES-BENEATH")
@pytest.mark.parametrize("what", ["link", "file", "pipe"])
@pytest.mark.parametrize("place", [*TOP_FOLDERS, "tasks/ready", "tasks/deadletter"])
def test_whatever_stands_in_the_place_of_a_folder_is_put_aside(
    tmp_path: Path, place: str, what: str
) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.mkdir()
    lab = FilesLab(data)
    lab.claim(lab.create())
    (data / place).rename(tmp_path / "before")
    if what == "link":
        (data / place).symlink_to(outside)
    elif what == "file":
        (data / place).write_text("in the way")
    else:
        os.mkfifo(data / place)
    assert list(lab.projector().taken_places()) == [place]
    task = lab.create("Another")
    lab.sweep()
    assert (data / place).is_dir()
    assert os.path.lexists(data / f"{place}-found")
    assert places(lab, task) == ["ready"]
    told = f"{place} was no folder: it is kept as {place}-found, and a folder is made in its place"
    assert (list(outside.iterdir()), lab.warnings) == ([], [told])
    assert list(lab.projector().taken_places()) == []
    lab.projector().rebuild(lambda _: None)
    assert lab.differences() == []


@proves("FILES-PLACES")
def test_a_folder_in_the_place_of_the_cursor_is_put_aside_with_a_word(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    cursor = tmp_path / "projection.json"
    cursor.unlink()
    cursor.mkdir()
    assert list(lab.projector().taken_places()) == ["projection.json"]
    lab.sweep()
    assert (cursor.is_file(), (tmp_path / "projection.json-found").is_dir()) == (True, True)
    (told,) = lab.warnings
    assert told.startswith("projection.json was no file: it is kept as projection.json-found")
    assert list(lab.projector().taken_places()) == []
    assert lab.differences() == []


@proves("DOCTOR-AGREES")
@pytest.mark.parametrize("moment", ["1969-12-31T23:00:00Z", "9999-12-31T23:00:00Z"])
def test_the_stamp_of_a_strange_clock_is_a_time_that_file_systems_keep(moment: str) -> None:
    mark = stamp("events/day.jsonl", 7, parse_rfc3339(moment))
    assert 0 <= mark < 2**63
    assert has_stamp("events/day.jsonl", 7, mark)


def put_in_place_of(path: Path, what: str, outside: Path) -> None:
    """What is no file stands where a file was."""
    path.rename(f"{path}.bak")
    match what:
        case "link":
            path.symlink_to(outside)
        case "folder":
            path.mkdir()
        case _:
            os.mkfifo(path)


@proves("FILES-PLACES", "FILES-BENEATH")
@pytest.mark.parametrize("by", ["level", "rebuild"])
@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_whatever_stands_in_the_place_of_the_event_lines_is_put_aside_with_a_word(
    tmp_path: Path, what: str, by: str
) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.write_text("not ours")
    lab = FilesLab(data)
    lab.create()
    (path,) = (data / "events").iterdir()
    put_in_place_of(path, what, outside)
    if by == "level":
        assert places(lab, lab.create("Another")) == ["ready"]
        assert os.path.lexists(f"{path}-found")
    lab.projector().rebuild(lambda _: None)
    name = f"events/{path.name}"
    told = f"{name} was no file: it is kept as {name}-found, and a file is made in its place"
    assert (outside.read_text(), lab.warnings) == ("not ours", [told])
    assert os.path.lexists(f"{path}-found")
    assert lab.differences() == []


@proves("FILES-CUT", "FILES-PLACES")
@pytest.mark.parametrize("by", ["next", "sweep"])
@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_the_event_lines_in_whose_place_something_else_stands_are_made_whole_again(
    tmp_path: Path, what: str, by: str
) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    (path,) = (tmp_path / "events").iterdir()
    whole = path.read_bytes()
    put_in_place_of(path, what, Path(f"{path}.bak"))
    assert [*lab.projector().changed_logs()] == [f"events/{path.name}"]
    if by == "sweep":
        lab.sweep()
        assert path.read_bytes() == whole
    lab.create("Another")
    assert not path.is_symlink()
    assert path.read_bytes().startswith(whole)
    assert lab.differences() == []
    assert [*lab.projector().changed_logs()] == []


@proves("FILES-CUT")
@pytest.mark.parametrize("by", ["next", "sweep"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_the_event_lines_that_are_gone_are_made_whole_again(
    tmp_path: Path, what: str, by: str
) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    lab.create("Another")
    (path,) = (tmp_path / "events").iterdir()
    whole = path.read_bytes()
    path.unlink()
    if what == "folder":
        path.parent.rmdir()
    assert [*lab.projector().changed_logs()] == [f"events/{path.name}"]
    if by == "sweep":
        lab.sweep()
        assert path.read_bytes() == whole
    lab.create("One more")
    assert path.read_bytes().startswith(whole)
    assert lab.differences() == []
    assert [*lab.projector().changed_logs()] == []


@proves("FILES-CUT")
def test_the_event_lines_of_a_new_day_begin_with_it(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    (yesterday,) = (tmp_path / "events").iterdir()
    lab.clock.advance(86_400_000)
    yesterday.unlink()
    lab.create("Another")
    assert lab.differences() == [(f"events/{yesterday.name}", "missing")]


@proves("FILES-PLACES")
def test_a_folder_of_somebodys_own_beside_the_event_lines_stays(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    own = tmp_path / "events" / "mine.jsonl"
    own.mkdir()
    assert [*lab.projector().changed_logs()] == []
    lab.create("Another")
    lab.sweep()
    assert (own.is_dir(), lab.warnings) == (True, [])


@proves("FILES-REMOVED")
@pytest.mark.parametrize("at", ["make_folders", "write", "replace"])
def test_a_folder_that_its_agent_removes_at_any_moment_is_made_again(
    tmp_path: Path, at: str
) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))
    home = tmp_path / "tasks" / "ready" / child

    class Removing(MortalDisk):
        """The agent removes the folder just before one operation in it."""

        def __getattr__(self, verb: str) -> Any:
            method = getattr(self._disk, verb)

            def watched(path: str, *more: Any) -> Any:
                if verb == at and path.startswith(f"tasks/ready/{child}") and self.left:
                    self.left = 0
                    shutil.rmtree(home)
                return method(path, *more)

            return watched if verb == at else method

    lab.projector(Removing(Beneath(tmp_path), 1)).level()
    assert lab.warnings == []
    assert (home / "inputs" / "handoff.md").is_file()
    assert lab.differences() == []


@proves("FILES-REMOVED", "FILES-OBSTACLE")
def test_files_that_somebody_removes_every_time_are_told_and_tried_again(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))

    class Removing(Beneath):
        """The agent removes its folder whenever something is about to take its place in it."""

        def replace(self, old: str, new: str) -> None:
            """Rename what is there."""
            if child in new:
                shutil.rmtree(tmp_path / "tasks" / "ready" / child)
            super().replace(old, new)

    lab.projector(Removing(tmp_path)).level()
    assert len(lab.warnings) == 1
    assert "removed by somebody else each time" in lab.warnings[0]
    assert list(lab.projector().lag()[1]) == [f"task:{child}"]
    lab.sweep()
    assert list(lab.projector().lag()[1]) == []
    assert lab.differences() == []


@proves("FILES-BENEATH")
def test_a_task_whose_files_cannot_be_written_does_not_hold_up_the_others(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    lab = FilesLab(data)
    task = lab.create()
    (data / "tasks" / "in-progress" / f".{task}.md.next").mkdir()
    lab.do(HUMAN, CreateTask("Other", ready=True))
    lab.claim(task)
    assert len(lab.warnings) == 1
    assert task in lab.warnings[0]
    assert "dragoman tick" in lab.warnings[0]
    assert any("Other" in path.read_text() for path in data.glob("tasks/ready/*.md"))


@proves("FILES-COMPARE")
def test_what_is_missing_changed_or_surplus_is_found_and_a_rebuild_restores_it(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = busy_life(lab)
    lab.level()
    expected = tree(tmp_path)
    runs = tmp_path / "runs" / task
    (runs / "run.json").write_text("{}")
    (runs / "attempts" / "1" / "run.json").unlink()
    lab.path("done", task).unlink()
    day = next(tmp_path.glob("events/*.jsonl"))
    day.write_bytes(day.read_bytes().replace(b"task.noted", b"task.hated"))
    (tmp_path / "tasks" / "ready" / "TASK-2026-02-09-999.md").write_text("who?")
    (tmp_path / "events" / "1999-01-01.jsonl").write_text("{}\n")
    assert sorted(lab.differences()) == [
        ("events/1999-01-01.jsonl", "surplus"),
        (f"events/{day.name}", "changed"),
        (f"runs/{task}/attempts/1/run.json", "missing"),
        (f"runs/{task}/run.json", "changed"),
        (f"tasks/done/{task}.md", "missing"),
        ("tasks/ready/TASK-2026-02-09-999.md", "surplus"),
    ]
    told: list[int] = []
    assert lab.projector().rebuild(told.append) == 2
    assert sum(told) == 2
    restored = tree(tmp_path)
    surplus = {"tasks/ready/TASK-2026-02-09-999.md", "events/1999-01-01.jsonl"}
    assert {path: data for path, data in restored.items() if path not in surplus} == expected


@proves("FILES-COMPARE")
def test_a_lost_event_file_is_found(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    day = next(tmp_path.glob("events/*.jsonl"))
    day.unlink()
    assert lab.differences() == [(f"events/{day.name}", "missing")]


@proves("FILES-PROJECTION")
@pytest.mark.parametrize("cursor", [b"", b"nonsense", b'{"ledger":"other","position":1}'])
def test_a_lost_or_foreign_cursor_means_looking_at_everything(
    tmp_path: Path, cursor: bytes
) -> None:
    lab = FilesLab(tmp_path)
    busy_life(lab)
    lab.level()
    expected = tree(tmp_path)
    (tmp_path / "projection.json").write_bytes(cursor)
    lab.level()
    assert tree(tmp_path) == expected


@proves("FILES-PROJECTION")
def test_files_that_are_ahead_of_an_older_store_are_put_back(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    expected = tree(tmp_path)
    ahead = b'{"ledger":"lab","position":99}\n'
    (tmp_path / "projection.json").write_bytes(ahead)
    day = next(tmp_path.glob("events/*.jsonl"))
    day.write_bytes(day.read_bytes() + b'{"eventId":990}\n')
    lab.level()
    assert tree(tmp_path) == expected
    assert places(lab, task) == ["ready"]


@proves("FILES-PROJECTION")
def test_any_number_of_entries_is_taken_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projector, "_PAGE", 3)
    lab = FilesLab(tmp_path)
    for number in range(10):
        lab.do(HUMAN, CreateTask(f"Task {number}", ready=True))
    assert lab.projector().level() == 10
    assert lab.projector().level() == 0
    assert lab.projector().rebuild(lambda _: None) == 10
    lab.claim(lab.task("TASK-2026-02-09-001").id)
    assert lab.sweep() == 0
    assert lab.differences() == []


@proves("FILES-PROJECTION")
def test_a_touched_file_that_says_the_same_gets_its_stamp_back(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    path = lab.path("ready", task)
    before = path.stat().st_mtime_ns
    os.utime(path)
    assert lab.sweep() == 0
    assert path.stat().st_mtime_ns == before
