"""rewind on real repositories: shown first, then done beside what is checked out, once."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from dragoman.bootstrap.places import open_place
from dragoman.core.actors import SYSTEM
from dragoman.core.commands import ReportOutcome
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("REWIND-FILES", "REWIND-STATE")

TASK = "TASK-2026-02-09-001"
REVIEW = 3
"""The position at which the task came into review."""
ENVIRON = {
    "PATH": os.environ["PATH"],
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder: Path, *words: str) -> str:
    """What git says."""
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, env=ENVIRON
    )
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    """A commit with another text in the one file, and its hash."""
    (folder / "file").write_text(text)
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


class Stage:
    """A task that was done while its repository went on from commit to commit."""

    def __init__(self, folder: Path) -> None:
        self.dragoman = Console(folder / "hub")
        self.repository = folder / "repository"
        self.task = TASK
        self.second = ""

    def play(self) -> None:
        """All that has happened so far."""
        self.repository.mkdir(parents=True)
        git(self.repository, "init", "-q", "-b", "main")
        commit(self.repository, "first")
        self.dragoman("init")
        # Relative to the data directory, so that both can be copied.
        (self.dragoman.data / "dragoman.toml").write_text('[git]\nrepository = "../repository"\n')
        assert self.dragoman.make("Write it", "--ready", "--now", "2026-02-09T10:00:00Z") == TASK
        self.dragoman.ask("task", "claim", TASK, "--agent", "ada")
        commit(self.repository, "second")
        self.dragoman.ask("task", "move", TASK, "review")
        commit(self.repository, "third")
        self.dragoman.ask("task", "move", TASK, "done")

    def rewind(self, to: object, *words: str, code: int = 0) -> Any:
        """What the command says."""
        return self.dragoman.ask("rewind", self.task, "--to", f"{to}", *words, code=code)

    def transitions(self) -> dict[str, dict[str, Any]]:
        """The moves of the task as SAOP tells them, by where they led; the last of each."""
        said = self.dragoman("call", "saop.events", f'{{"task_id":"{self.task}"}}').json
        return {
            event["payload"]["to_state"]: event
            for event in said["events"]
            if event["payload"]["type"] == "TASK_TRANSITION"
        }

    def show(self) -> Any:
        """The task as it is."""
        return self.dragoman.ask("task", "show", self.task)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a task that is done."""
    folder = tmp_path_factory.mktemp("played")
    Stage(folder).play()
    return folder


@pytest.fixture
def stage(played: Path, tmp_path: Path) -> Stage:
    """Give a copy of it."""
    copytree(played, tmp_path / "stage", symlinks=True)
    stage = Stage(tmp_path / "stage")
    stage.second = git(stage.repository, "rev-parse", "main~1")
    return stage


def head_of(stage: Stage) -> tuple[str, str, str]:
    """What is checked out, what is not committed, and what the file says."""
    folder = stage.repository
    status = git(folder, "status", "--porcelain")
    return git(folder, "symbolic-ref", "HEAD"), status, (folder / "file").read_text()


def test_it_is_shown_first_and_changes_nothing(stage: Stage) -> None:
    before = stage.dragoman("events").out
    review = stage.transitions()["review"]
    said = stage.rewind(review["event_id"])
    assert said["applied"] is False
    assert (said["from"], said["status"]) == ("done", "review")
    assert said["commit"] == stage.second == review["payload"]["git_hash"]
    assert said["changes"] == ["status"]
    assert said["branch"] == f"rewind/{stage.task}-{review['position']}"
    assert git(stage.repository, "branch", "--list", "rewind/*") == ""
    assert stage.dragoman("events").out == before
    told = stage.dragoman("rewind", stage.task, "--to", f"{review['position']}").out
    assert "status      done → review" in told
    assert f"commit      {stage.second}" in told
    assert "would be on the branch rewind/" in told
    assert told.endswith("Nothing was changed; add --apply to do it.\n")


def test_the_task_and_its_files_are_as_they_were(stage: Stage) -> None:
    here = head_of(stage)
    review = stage.transitions()["review"]
    said = stage.rewind(review["event_id"].upper(), "--apply", "--reason", "wrong")
    assert said["applied"] is True
    branch = said["branch"]
    assert git(stage.repository, "rev-parse", branch) == stage.second
    assert git(stage.repository, "show", f"{branch}:file") == "second"
    assert head_of(stage) == here
    task = stage.show()
    assert (task["status"], task["title"], task["assignee"]) == ("review", "Write it", "ada")
    last = stage.dragoman.ask("events", "--after", "-1")
    assert (last["type"], last["body"]["commit"]) == ("task.rewound", stage.second)
    assert stage.transitions()["review"]["payload"]["from_state"] == "done"
    assert stage.dragoman.ask("verify")["ok"] is True
    log = stage.dragoman("task", "log", stage.task).out
    assert (
        f"rewound from done to review, as of its entry 3, its files on the branch {branch}" in log
    )


@proves("TASK-UNBLOCK")
def test_what_it_had_let_go_waits_again(stage: Stage) -> None:
    dragoman = stage.dragoman
    dragoman.make("Ship it", "--id", "ship", "--ready")
    dragoman.ask("task", "link", "ship", "--blocked-by", TASK)
    assert dragoman.ask("task", "show", "ship")["waitsFor"] == []

    assert (
        "waiting     again, unless it has ended: ship" in dragoman("rewind", TASK, "--to", "3").out
    )
    stage.rewind(REVIEW, "--apply")

    assert dragoman.ask("task", "show", "ship")["waitsFor"] == [TASK]
    assert dragoman.ask("task", "claim", "--agent", "zed", code=1)["code"] == "nothing_ready"
    assert dragoman.ask("verify")["found"] == 0


def test_work_that_was_under_way_is_ready_again(stage: Stage) -> None:
    told = stage.dragoman("rewind", stage.task, "--to", "2", "--apply").out
    assert "it was in progress then; that work is over, so it becomes ready" in told
    assert stage.show()["status"] == "ready"
    again = stage.dragoman.ask("task", "claim", stage.task, "--agent", "ben")
    assert again["attempt"] == 2
    told = stage.dragoman("rewind", stage.task, "--to", "2").out
    assert "ben works on it (attempt 2) and loses it" in told


def test_a_second_time_there_is_nothing_left_to_do(stage: Stage) -> None:
    stage.rewind(REVIEW, "--apply")
    told = stage.dragoman("rewind", stage.task, "--to", "3", "--apply").out
    assert stage.dragoman.ask("events", "--after", "-1")["position"] == REVIEW + 2
    assert "it is as it was then: nothing is left to change" in told
    assert "(it is there already)" in told


def test_a_branch_that_has_gone_on_is_left_alone(stage: Stage, tmp_path: Path) -> None:
    at = tmp_path / "beside"
    first = stage.rewind(REVIEW, "--apply", "--worktree", str(at))
    assert (at / "file").read_text() == "second"
    further = commit(at, "further")
    stage.dragoman.ask("task", "move", stage.task, "done")
    second = stage.rewind(REVIEW, "--apply")
    assert second["branch"] == f"{first['branch']}-2"
    assert git(stage.repository, "rev-parse", first["branch"]) == further
    assert git(stage.repository, "rev-parse", second["branch"]) == stage.second


def test_what_is_not_committed_stays(stage: Stage) -> None:
    (stage.repository / "file").write_text("half a thought")
    (stage.repository / "new").write_text("never added")
    here = head_of(stage)
    assert stage.rewind(REVIEW)["dirty"] is True
    told = stage.dragoman("rewind", stage.task, "--to", "3", "--apply").out
    assert "what is not committed there stays as it is" in told
    assert head_of(stage) == here
    assert (stage.repository / "new").read_text() == "never added"


def _lost(stage: Stage, tmp_path: Path) -> tuple[str, str]:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    return str(other), "has no commit"


def _shallow(stage: Stage, tmp_path: Path) -> tuple[str, str]:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{stage.repository}", "shallow")
    return str(tmp_path / "shallow"), "git fetch --unshallow"


def _none(stage: Stage, tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path), "is a git repository?"


def _gone(stage: Stage, tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "gone"), f"there is no folder {tmp_path / 'gone'}: name the repository"


def test_a_branch_in_the_way_is_told_before_anything_is_done(stage: Stage) -> None:
    git(stage.repository, "branch", "rewind")
    for words in ((), ("--apply",)):
        said = stage.rewind(REVIEW, *words, code=1)
        assert said["code"] == "bad_repository"
        assert "has a branch rewind, so that none can be called rewind/" in said["detail"]
    assert stage.show()["status"] == "done"


@pytest.mark.parametrize("elsewhere", [_lost, _shallow, _none, _gone])
def test_a_repository_without_the_commit_stops_it_in_words(
    stage: Stage, tmp_path: Path, elsewhere: Callable[[Stage, Path], tuple[str, str]]
) -> None:
    repository, words = elsewhere(stage, tmp_path)
    said = stage.rewind(REVIEW, "--apply", "--repository", repository, code=1)
    assert said["code"] == "bad_repository"
    assert words in said["detail"].replace("is " + repository + " a git", "is a git")
    assert stage.show()["status"] == "done"
    alone = stage.rewind(REVIEW, "--apply", "--repository", repository, "--task-only")
    assert (alone["status"], alone["branch"], alone["commit"]) == ("review", None, stage.second)
    assert stage.show()["status"] == "review"


def test_without_git_it_is_said_what_is_missing(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    said = stage.rewind(REVIEW, code=1)
    assert (said["code"], "there is no git on the PATH" in said["detail"]) == (
        "bad_repository",
        True,
    )


@proves("SAOP-COMMIT")
def test_the_beginning_of_a_task_has_its_commit_too(stage: Stage) -> None:
    said = stage.rewind(1, "--apply")
    assert (said["transition"]["from"], said["transition"]["to"]) == (None, "ready")
    assert said["commit"] == git(stage.repository, "rev-parse", "main~2")
    assert git(stage.repository, "show", f"{said['branch']}:file") == "first"
    assert stage.dragoman.ask("verify")["findings"] == []


def test_what_is_refused_leaves_no_branch(stage: Stage, tmp_path: Path) -> None:
    said = stage.rewind(REVIEW, "--apply", "--as", "ada", code=1)
    assert said["code"] == "not_authorized"
    beside = tmp_path / "beside"
    said = stage.rewind(REVIEW, "--apply", "--worktree", str(beside), "--as", "ada", code=1)
    assert (said["code"], beside.exists()) == ("not_authorized", False)
    said = stage.rewind(REVIEW, "--apply", "--worktree", str(tmp_path), code=1)
    assert (said["code"], "exists already" in said["detail"]) == ("bad_repository", True)
    assert git(stage.repository, "branch", "--list", "rewind/*") == ""
    assert stage.show()["status"] == "done"


def test_the_same_files_can_be_checked_out_twice(stage: Stage, tmp_path: Path) -> None:
    for name in ("one", "two"):
        said = stage.rewind(REVIEW, "--apply", "--worktree", str(tmp_path / name))
        assert git(tmp_path / name, "rev-parse", "HEAD") == said["commit"]


def test_a_repository_is_found_by_a_path_from_here(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stage.repository.parent)
    said = stage.rewind(REVIEW, "--repository", stage.repository.name)
    assert said["repository"] == str(stage.repository.resolve())


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--to", "x"), 1, "name one by its event id or by its position"),
        ((), 2, "--to TRANSITION"),
        (("--to", "1", "--task-only", "--worktree", "x"), 2, "exclude each other"),
    ],
)
def test_what_cannot_be_understood(
    stage: Stage, words: tuple[str, ...], code: int, told: str
) -> None:
    said = stage.dragoman("rewind", stage.task, *words)
    assert (said.code, told in said.err) == (code, True)


def test_without_a_repository_only_the_task_goes_back(dragoman: Console, tmp_path: Path) -> None:
    task = dragoman.make("Write it", "--ready")
    dragoman.ask("task", "move", task, "cancelled")
    said = dragoman("rewind", task, "--to", "1", "--worktree", str(tmp_path / "w"))
    assert (said.code, "no commit is on record" in said.err) == (2, True)
    told = dragoman("rewind", task, "--to", "1", "--apply").out
    assert "created, ready" in told
    assert "files       no commit is on record for this transition" in told
    assert dragoman.ask("task", "show", task)["status"] == "ready"


def test_a_report_is_told_in_words(dragoman: Console) -> None:
    task = dragoman.make("Write it", "--ready")
    dragoman.ask("task", "claim", task, "--agent", "bob")
    report: dict[str, object] = {
        "taskId": task,
        "outcome": "done",
        "summaryRef": "outputs/summary.md",
        "deliverables": [],
        "tests": {"total": 1, "passed": 1, "failed": 0},
        "blockers": [],
        "notes": "dry",
    }
    dragoman.ask("call", "aof_task_complete", json.dumps(report), "--as", "bob")
    told = dragoman("rewind", task, "--to", "1").out
    assert "  report      done by bob: dry → -\n" in told
    assert "reported_at" not in told


@proves("RUN-UNREPORTED")
def test_what_the_hub_has_said_of_an_agent_is_told_as_the_hub_s(dragoman: Console) -> None:
    task = dragoman.make("Write it", "--ready")
    dragoman.ask("task", "claim", task, "--agent", "bob")
    place = open_place(dragoman.data, "", None, create=False)
    with closing(place.hub) as hub:
        hub.do(SYSTEM, ReportOutcome(task, "needs_review", "it ended", apply=True))
    told = dragoman("rewind", task, "--to", "1").out
    assert "  report      needs_review by the hub: it ended → -\n" in told


@proves("REWIND-HANDOFF")
def test_the_handoff_that_ends_is_told_before_it_does(dragoman: Console) -> None:
    task = dragoman.make("Write it", "--ready")
    words = ("--summary", "s", "--next-step", "n", "--criterion", "c", "--id", "h")
    dragoman.ask("handoff", "initiate", "--as", "ada", "--to", "bob", "--task", task, *words)
    dragoman.ask("handoff", "accept", "h", "--as", "bob")
    dragoman.ask("handoff", "activate", "h", "--as", "bob")
    told = "handoff     h (ada → bob) is rejected by the hub and closed"
    assert told in dragoman("rewind", task, "--to", "1").out
    assert dragoman.ask("handoff", "show", "h")["status"] == "activated"
    assert dragoman.ask("rewind", task, "--to", "1", "--apply")["handoff"] == "h"
    assert dragoman.ask("handoff", "show", "h")["status"] == "closed"
    dragoman.ask("task", "claim", task, "--agent", "zoe")
