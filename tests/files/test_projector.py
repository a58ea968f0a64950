"""Projection: every file at its path, up to date whatever happened before, each event line once."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.attempt import EndAttempt, ExpireLease, RenewLease, ReportOutcome
from dragoman.core.delegation import RequestDelegation
from dragoman.core.intent.candidate import Candidate, ScoreParts
from dragoman.core.intent.state import DelegateIntent, ReceiveResult, UpdateIntent
from dragoman.core.question_state import AnswerQuestion, AskQuestion
from dragoman.core.task_state import CreateTask, MoveTask, NoteTask, SendBackTask, UpdateTask
from dragoman.core.timestamps import parse_rfc3339, to_rfc3339
from dragoman.files import projector
from dragoman.files.layout import has_mtime_stamp, mtime_stamp
from dragoman.files.task_file import WORK_LOG, parse_task_file
from dragoman.system.safe_fs import SafeDisk
from tests.engine.lab import ALICE, HUMAN, START, TTL
from tests.files.lab import CrashingDisk, FilesLab, Killed, list_statuses, read_tree
from tests.requirements import proves

TOP_FOLDERS = ("tasks", "runs", "events", "inbox")


def read_event_ids(lab: FilesLab) -> list[int]:
    """Ids of all event lines, in the order of the files."""
    return [
        json.loads(line)["eventId"]
        for path in sorted(lab.data.glob("events/*.jsonl"))
        for line in path.read_text().splitlines()
    ]


def run_full_task(lab: FilesLab) -> str:
    """Run a task through everything that leaves a file, with one that is handed over."""
    lab.do(HUMAN, CreateTask("Parent", "ol-527.1", ready=True, aliases=("bead:ol-527.1",)))
    task = lab.task("ol-527.1").aof_id
    lab.do(HUMAN, CreateTask("Child", ready=True, parent="ol-527.1"))
    child = next(name for name in lab.task("ol-527.1").children)
    lab.claim_only(task)
    lab.do(ALICE, NoteTask(task, "begun"))
    lab.clock.advance(TTL)
    lab.do(HUB_ACTOR, ExpireLease(task))
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


@proves("BRIEFING", "FILES-TASK-FILE")
def test_task_file_has_the_briefing_of_the_next_attempt(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create(body="Paint it.\n## Briefing\nof the body")
    lab.claim_only(task)
    lab.do(ALICE, AskQuestion(task, "red or <b>blue</b>?"))
    lab.do(HUMAN, AnswerQuestion(task, "blue\n## Work Log\n- forged"))
    lab.do(ALICE, ReportOutcome(task, "partial", "one half is dry"))
    lab.do(ALICE, EndAttempt(task))
    lab.do(HUMAN, SendBackTask(task, "both halves"))
    lab.catch_up()
    text = lab.path("ready", task).read_text()
    briefing = text.partition("\n## Briefing\n")[2].partition("\n## Work Log\n")[0]
    assert "### Answered questions\n" in briefing
    assert "> red or &lt;b>blue&lt;/b>?\n" in briefing
    assert "> blue\n> ## Work Log\n> - forged\n" in briefing
    assert "> both halves\n" in briefing
    assert "reported partial" in briefing
    file = parse_task_file(text.encode())
    assert file.body == "Paint it.\n## Briefing\nof the body"
    lab.edit("ready", task, "Paint it.", "Paint all of it.")
    assert lab.scan() == 1
    assert lab.task(task).body.startswith("Paint all of it.")
    lab.edit("ready", task, "> both halves", "> one half will do")
    lab.scan()
    reasons = "".join(path.read_text() for path in lab.data.glob("tasks/*/*.reason.txt"))
    assert "the briefing is no field of a task, or is written by the hub" in reasons


@proves("FILES-PROJECTION")
def test_new_task_has_file_and_folder(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create("Fix it", body="Do this.", priority="high")
    file = parse_task_file(lab.path("ready", task).read_bytes())
    assert (file.hub_parts["id"], file.title, file.body) == (task, "Fix it", "Do this.")
    assert (file.status, file.priority) == ("ready", "high")
    assert file.hub_parts["createdAt"] == to_rfc3339(START)
    folder = tmp_path / "tasks" / "ready" / task
    assert sorted(path.name for path in folder.iterdir()) == ["inputs", "outputs", "work"]
    assert not (tmp_path / "runs" / task).exists()


@proves("FILES-PROJECTION", "FILES-ARTIFACTS")
def test_full_task_history_is_projected_to_its_paths(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = run_full_task(lab)
    lab.catch_up()
    assert list_statuses(lab, task) == ["done"]
    file = parse_task_file(lab.path("done", task).read_bytes())
    assert file.hub_parts["primaryId"] == "ol-527.1"
    assert file.hub_parts[WORK_LOG] == [
        f"- {to_rfc3339(START)} Notes: begun",
        f"- {to_rfc3339(START + 1)} Progress: half | Blockers: key",
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
    handed = parse_task_file(lab.path("ready", child.aof_id).read_bytes())
    assert handed.hub_parts["parentId"] == task
    assert handed.hub_parts["metadata.delegationDepth"] == "1"
    assert lab.differences() == []
    assert lab.warnings == []


@proves("CCOS-PROMPT", "FILES-PROJECTION")
def test_folder_of_intent_task_has_request_document(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, CreateTask("Hull", "old", ready=True))
    beside = {"new": {"meta": {"trace": "t-7"}}, "old": dict[str, Any]()}
    for name, more in beside.items():
        goal = DelegateIntent("weld\x1b[2J", name, {"thickness": 5}, ("gently",))
        lab.do(HUMAN, replace(goal, extra_fields=more))
        lab.catch_up()
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
    lab.catch_up()
    assert lab.differences() == []


@proves("FILES-PROJECTION")
def test_second_projection_changes_nothing(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    run_full_task(lab)
    lab.catch_up()
    before = read_tree(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    lab.catch_up()
    assert lab.scan() == 0
    assert read_tree(tmp_path) == before
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps


@proves("FILES-CRASH")
def test_crash_between_operations_is_repaired_by_next_run(tmp_path: Path) -> None:
    clean = FilesLab(tmp_path / "clean")
    clean.data.mkdir()
    task = run_full_task(clean)
    clean.catch_up()
    expected = read_tree(clean.data)
    operations = 0
    while True:
        lab = FilesLab(tmp_path / f"crash{operations}")
        lab.data.mkdir()
        run_full_task(lab)
        try:
            lab.projector(CrashingDisk(SafeDisk(lab.data), operations)).catch_up()
        except Killed:
            assert len(list_statuses(lab, task)) <= 1
            lab.catch_up()
            assert read_tree(lab.data) == expected, f"after {operations} operations"
            operations += 1
        else:
            break
    assert operations > 40


@proves("FILES-CRASH", "FILES-FOLDER")
def test_repeated_crashes_lose_no_file_of_an_agent(tmp_path: Path) -> None:
    """Every change of the task is projected by a process that is killed a little later than the
    last."""
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
            disk = CrashingDisk(SafeDisk(lab.data), stride * (number + 1) % 13)
            try:
                lab.projector(disk).catch_up()
            except Killed:
                assert len(list_statuses(lab, task)) <= 1
        lab.catch_up()
        assert lab.scan() == 0
        assert list_statuses(lab, task) == ["backlog"]
        kept = list(lab.data.glob(f"tasks/*/{task}/work/draft"))
        assert [path.read_text() for path in kept] == ["mine"]
        assert kept[0].parts[-4] == "backlog"
        assert read_event_ids(lab) == sorted(set(read_event_ids(lab)))
        assert lab.differences() == []
        assert not list(lab.data.glob("tasks/*/*reason*")), "a move of ours is no wish"


@proves("FILES-CRASH")
@pytest.mark.parametrize("torn", [b'{"eventId":', b"\xff\xfe", b'{"eventId":999999999999999'])
def test_torn_event_line_is_rewritten(tmp_path: Path, torn: bytes) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    expected = read_tree(tmp_path)
    day = next(tmp_path.glob("events/*.jsonl"))
    whole = day.read_bytes()
    day.write_bytes(whole[: whole.index(b"\n") + 1] + torn)
    (tmp_path / "projection.json").unlink()
    lab.catch_up()
    assert read_tree(tmp_path) == expected


@proves("FILES-CRASH")
def test_foreign_line_does_not_stop_event_log(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    day = next(tmp_path.glob("events/*.jsonl"))
    day.write_bytes(day.read_bytes() + b"hello\n")
    lab.claim(task)
    assert day.read_text().count("eventId") == 4
    assert (f"events/{day.name}", "changed") in lab.differences()


@proves("FILES-PROJECTION")
def test_event_lines_are_filed_by_day(tmp_path: Path) -> None:
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
    assert len(read_event_ids(lab)) == 6
    assert lab.differences() == []


@proves("FILES-PROJECTION")
def test_concurrent_projections_converge(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)

    def work(number: int) -> None:
        lab.do(HUMAN, CreateTask(f"Task {number}", ready=True))
        lab.projector().catch_up()
        assert any(f'"Task {number}"' in p.read_text() for p in tmp_path.glob("tasks/ready/*.md"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(40)))
    assert lab.differences() == []
    assert read_event_ids(lab) == sorted(set(read_event_ids(lab)))


@proves("FILES-PROJECTION", "FILES-ARTIFACTS")
def test_heartbeat_is_projected_without_an_entry(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    beat = tmp_path / "runs" / task / "run_heartbeat.json"
    lab.clock.advance(1_000)
    lab.do(ALICE, RenewLease(task))
    lab.projector().catch_up(renewed=[f"task:{task}"])
    assert json.loads(beat.read_text())["beatCount"] == 2
    lab.do(ALICE, RenewLease(task))
    lab.scan()
    assert json.loads(beat.read_text())["beatCount"] == 3


@proves("FILES-ARTIFACTS")
def test_ended_attempt_keeps_its_last_heartbeat(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    lab.do(ALICE, RenewLease(task))
    lab.scan()
    lab.clock.advance(TTL)
    lab.do(HUB_ACTOR, ExpireLease(task))
    lab.clock.advance(60_000)
    lab.claim(task)
    runs = tmp_path / "runs" / task
    old = json.loads((runs / "attempts" / "1" / "run_heartbeat.json").read_text())
    assert (old["beatCount"], old["lastHeartbeat"]) == (2, "2026-02-09T14:30:00.000Z")
    assert json.loads((runs / "run_heartbeat.json").read_text())["beatCount"] == 1


@proves("FILES-FOLDER")
def test_open_file_follows_moved_folder(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    lab.claim(task)
    folder = tmp_path / "tasks" / "in-progress" / task
    with (folder / "outputs" / "summary.md").open("w") as file:
        file.write("first ")
        lab.do(ALICE, MoveTask(task, "review"))
        lab.catch_up()
        file.write("second")
    moved = tmp_path / "tasks" / "review" / task / "outputs" / "summary.md"
    assert moved.read_text() == "first second"
    assert not folder.exists()


@proves("FILES-FOLDER")
def test_files_written_to_old_folder_are_merged(tmp_path: Path) -> None:
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
    lab.scan()
    folder = tmp_path / "tasks" / "in-progress" / task
    assert (folder / "outputs" / "a.md").read_text() == "one"
    assert (folder / "outputs" / "a-2.md").read_text() == "another"
    assert (folder / "outputs" / "c.md").read_text() == "late"
    assert (folder / "work" / "deep" / "b").read_text() == "old b"
    assert (folder / "work" / "deep" / "b-2").read_text() == "new b"
    assert (folder / "stray").is_symlink()
    assert not ready.exists()


@proves("FILES-FOLDER", "FILES-BENEATH")
def test_symlink_in_place_of_folder_is_set_aside(tmp_path: Path) -> None:
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
    lab.catch_up()
    assert list(outside.iterdir()) == []
    assert (inputs / "handoff.json").is_file()
    assert (inputs.parent / "inputs-found").is_symlink()
    assert (data / "runs" / parent / "run.json").is_file()
    assert lab.warnings == []


@proves("FILES-PLACES", "FILES-BENEATH")
@pytest.mark.parametrize("what", ["link", "file", "pipe"])
@pytest.mark.parametrize("folder", [*TOP_FOLDERS, "tasks/ready", "tasks/deadletter"])
def test_obstacle_in_place_of_folder_is_set_aside(tmp_path: Path, folder: str, what: str) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.mkdir()
    lab = FilesLab(data)
    lab.claim(lab.create())
    (data / folder).rename(tmp_path / "before")
    if what == "link":
        (data / folder).symlink_to(outside)
    elif what == "file":
        (data / folder).write_text("in the way")
    else:
        os.mkfifo(data / folder)
    assert list(lab.projector().list_blocked_paths()) == [folder]
    task = lab.create("Another")
    lab.scan()
    assert (data / folder).is_dir()
    assert os.path.lexists(data / f"{folder}-found")
    assert list_statuses(lab, task) == ["ready"]
    warning = (
        f"{folder} was no folder: it is kept as {folder}-found, and a folder is made in its place"
    )
    assert (list(outside.iterdir()), lab.warnings) == ([], [warning])
    assert list(lab.projector().list_blocked_paths()) == []
    lab.projector().rebuild(lambda _: None)
    assert lab.differences() == []


@proves("FILES-PLACES")
def test_folder_in_place_of_cursor_is_set_aside_with_warning(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    cursor = tmp_path / "projection.json"
    cursor.unlink()
    cursor.mkdir()
    assert list(lab.projector().list_blocked_paths()) == ["projection.json"]
    lab.scan()
    assert (cursor.is_file(), (tmp_path / "projection.json-found").is_dir()) == (True, True)
    (warning,) = lab.warnings
    assert warning.startswith("projection.json was no file: it is kept as projection.json-found")
    assert list(lab.projector().list_blocked_paths()) == []
    assert lab.differences() == []


@proves("DOCTOR-AGREES")
@pytest.mark.parametrize("moment", ["1969-12-31T23:00:00Z", "9999-12-31T23:00:00Z"])
def test_stamp_of_extreme_clock_is_a_valid_mtime(moment: str) -> None:
    mark = mtime_stamp("events/day.jsonl", 7, parse_rfc3339(moment))
    assert 0 <= mark < 2**63
    assert has_mtime_stamp("events/day.jsonl", 7, mark)


def replace_with_irregular(path: Path, what: str, outside: Path) -> None:
    """Replace a file by something that is no file."""
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
def test_obstacle_in_place_of_event_log_is_set_aside_with_warning(
    tmp_path: Path, what: str, by: str
) -> None:
    data, outside = tmp_path / "data", tmp_path / "outside"
    data.mkdir()
    outside.write_text("not ours")
    lab = FilesLab(data)
    lab.create()
    (path,) = (data / "events").iterdir()
    replace_with_irregular(path, what, outside)
    if by == "level":
        assert list_statuses(lab, lab.create("Another")) == ["ready"]
        assert os.path.lexists(f"{path}-found")
    lab.projector().rebuild(lambda _: None)
    name = f"events/{path.name}"
    warning = f"{name} was no file: it is kept as {name}-found, and a file is made in its place"
    assert (outside.read_text(), lab.warnings) == ("not ours", [warning])
    assert os.path.lexists(f"{path}-found")
    assert lab.differences() == []


@proves("FILES-CUT", "FILES-PLACES")
@pytest.mark.parametrize("by", ["next", "sweep"])
@pytest.mark.parametrize("what", ["link", "folder", "pipe"])
def test_event_log_behind_obstacle_is_rewritten(tmp_path: Path, what: str, by: str) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    (path,) = (tmp_path / "events").iterdir()
    whole = path.read_bytes()
    replace_with_irregular(path, what, Path(f"{path}.bak"))
    assert [*lab.projector().list_changed_logs()] == [f"events/{path.name}"]
    if by == "sweep":
        lab.scan()
        assert path.read_bytes() == whole
    lab.create("Another")
    assert not path.is_symlink()
    assert path.read_bytes().startswith(whole)
    assert lab.differences() == []
    assert [*lab.projector().list_changed_logs()] == []


@proves("FILES-CUT")
@pytest.mark.parametrize("by", ["next", "sweep"])
@pytest.mark.parametrize("what", ["file", "folder"])
def test_removed_event_log_is_rewritten(tmp_path: Path, what: str, by: str) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    lab.create("Another")
    (path,) = (tmp_path / "events").iterdir()
    whole = path.read_bytes()
    path.unlink()
    if what == "folder":
        path.parent.rmdir()
    assert [*lab.projector().list_changed_logs()] == [f"events/{path.name}"]
    if by == "sweep":
        lab.scan()
        assert path.read_bytes() == whole
    lab.create("One more")
    assert path.read_bytes().startswith(whole)
    assert lab.differences() == []
    assert [*lab.projector().list_changed_logs()] == []


@proves("FILES-CUT")
def test_event_log_of_new_day_has_only_its_lines(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    (yesterday,) = (tmp_path / "events").iterdir()
    lab.clock.advance(86_400_000)
    yesterday.unlink()
    lab.create("Another")
    assert lab.differences() == [(f"events/{yesterday.name}", "missing")]


@proves("FILES-PLACES")
def test_foreign_folder_beside_event_logs_stays(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    own = tmp_path / "events" / "mine.jsonl"
    own.mkdir()
    assert [*lab.projector().list_changed_logs()] == []
    lab.create("Another")
    lab.scan()
    assert (own.is_dir(), lab.warnings) == (True, [])


@proves("FILES-REMOVED")
@pytest.mark.parametrize("at", ["make_folders", "write", "replace"])
def test_folder_removed_at_any_moment_is_recreated(tmp_path: Path, at: str) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))
    folder = tmp_path / "tasks" / "ready" / child

    class RemovingDisk(CrashingDisk):
        """Disk on which the agent removes the folder just before one operation in it."""

        def __getattr__(self, verb: str) -> Any:
            method = getattr(self._disk, verb)

            def watched(path: str, *more: Any) -> Any:
                if verb == at and path.startswith(f"tasks/ready/{child}") and self.operations_left:
                    self.operations_left = 0
                    shutil.rmtree(folder)
                return method(path, *more)

            return watched if verb == at else method

    lab.projector(RemovingDisk(SafeDisk(tmp_path), 1)).catch_up()
    assert lab.warnings == []
    assert (folder / "inputs" / "handoff.md").is_file()
    assert lab.differences() == []


@proves("FILES-REMOVED", "FILES-OBSTACLE")
def test_repeatedly_removed_files_are_reported_and_retried(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    parent, child = lab.create("Parent"), lab.create("Child")
    lab.claim(parent)
    lab.do(ALICE, RequestDelegation(child, parent, "bob", START + 10**8))

    class RemovingDisk(SafeDisk):
        """Disk on which the agent removes its folder before every rename in it."""

        def replace(self, old: str, new: str) -> None:
            """Remove the folder, then rename."""
            if child in new:
                shutil.rmtree(tmp_path / "tasks" / "ready" / child)
            super().replace(old, new)

    lab.projector(RemovingDisk(tmp_path)).catch_up()
    assert len(lab.warnings) == 1
    assert "removed by somebody else each time" in lab.warnings[0]
    assert list(lab.projector().lag()[1]) == [f"task:{child}"]
    lab.scan()
    assert list(lab.projector().lag()[1]) == []
    assert lab.differences() == []


@proves("FILES-BENEATH")
def test_unwritable_task_does_not_block_others(tmp_path: Path) -> None:
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
def test_compare_finds_differences_and_rebuild_restores_them(
    tmp_path: Path,
) -> None:
    lab = FilesLab(tmp_path)
    task = run_full_task(lab)
    lab.catch_up()
    expected = read_tree(tmp_path)
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
    progress: list[int] = []
    assert lab.projector().rebuild(progress.append) == 2
    assert sum(progress) == 2
    restored = read_tree(tmp_path)
    surplus = {"tasks/ready/TASK-2026-02-09-999.md", "events/1999-01-01.jsonl"}
    assert {path: data for path, data in restored.items() if path not in surplus} == expected


@proves("FILES-COMPARE")
def test_compare_finds_lost_event_log(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.create()
    day = next(tmp_path.glob("events/*.jsonl"))
    day.unlink()
    assert lab.differences() == [(f"events/{day.name}", "missing")]


@proves("FILES-PROJECTION")
@pytest.mark.parametrize("cursor", [b"", b"nonsense", b'{"ledger":"other","position":1}'])
def test_lost_or_foreign_cursor_projects_everything(tmp_path: Path, cursor: bytes) -> None:
    lab = FilesLab(tmp_path)
    run_full_task(lab)
    lab.catch_up()
    expected = read_tree(tmp_path)
    (tmp_path / "projection.json").write_bytes(cursor)
    lab.catch_up()
    assert read_tree(tmp_path) == expected


@proves("FILES-PROJECTION")
def test_files_ahead_of_older_store_are_reset(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    expected = read_tree(tmp_path)
    ahead = b'{"ledger":"lab","position":99}\n'
    (tmp_path / "projection.json").write_bytes(ahead)
    day = next(tmp_path.glob("events/*.jsonl"))
    day.write_bytes(day.read_bytes() + b'{"eventId":990}\n')
    lab.catch_up()
    assert read_tree(tmp_path) == expected
    assert list_statuses(lab, task) == ["ready"]


@proves("FILES-PROJECTION")
def test_entries_are_projected_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projector, "_PAGE", 3)
    lab = FilesLab(tmp_path)
    for number in range(10):
        lab.do(HUMAN, CreateTask(f"Task {number}", ready=True))
    assert lab.projector().catch_up() == 10
    assert lab.projector().catch_up() == 0
    assert lab.projector().rebuild(lambda _: None) == 10
    lab.claim(lab.task("TASK-2026-02-09-001").id)
    assert lab.scan() == 0
    assert lab.differences() == []


@proves("FILES-PROJECTION")
def test_touched_file_gets_its_stamp_back(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    task = lab.create()
    path = lab.path("ready", task)
    before = path.stat().st_mtime_ns
    os.utime(path)
    assert lab.scan() == 0
    assert path.stat().st_mtime_ns == before


@proves("DIALECTS-MEET", "FILES-PROJECTION")
def test_work_log_of_an_intent_has_each_update_once(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, RegisterAgent("alice"), DescribeAgent("alice", ("weld",)))
    named = (Candidate("alice", 0.7, ScoreParts(0.7), 0.3, ("weld",)),)
    lab.do(HUMAN, DelegateIntent("weld", "hull", candidates=named))
    for update in (
        UpdateIntent("hull", "alice", 50, "half\n## Forged", sequence=1),
        UpdateIntent("hull", "alice", 50, "half\n## Forged", sequence=1),
        UpdateIntent("hull", "alice", sequence=2, partial={"n": 3}),
        UpdateTask("hull", notes="nearly"),
    ):
        lab.do(ALICE, update)
    lab.catch_up()
    log = lab.path("ready", lab.task("hull").aof_id).read_text().partition("## Work Log\n")[2]
    lines = [line.partition("Z ")[2] for line in log.splitlines() if line.startswith("- ")]
    assert lines == ["Progress: 50 % | Notes: half\\n## Forged", "Notes: nearly"]
    assert lab.differences() == []


@proves("DIALECTS-MEET", "FILES-PROJECTION")
def test_run_result_of_an_intent_has_the_output_of_its_result(tmp_path: Path) -> None:
    lab = FilesLab(tmp_path)
    lab.do(HUMAN, RegisterAgent("alice"), DescribeAgent("alice", ("weld",)))
    named = (Candidate("alice", 0.7, ScoreParts(0.7), 0.3, ("weld",)),)
    for name, output in (("hull", {"n": 3}), ("keel", None)):
        lab.do(HUMAN, DelegateIntent("weld", name, candidates=named))
        lab.do(ALICE, ReceiveResult(name, "alice", success=True, output=output))
        lab.catch_up()
        folder = tmp_path / "runs" / lab.task(name).aof_id
        notes = json.loads((folder / "run_result.json").read_text())["notes"]
        assert notes == ('{"n": 3}' if output else "")
    assert lab.differences() == []
