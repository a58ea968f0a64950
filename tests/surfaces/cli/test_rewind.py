"""`rewind` on real repositories: a preview, then one change beside the checked-out branch."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from dragoman.bootstrap.data_directory import open_directory
from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import ReportOutcome
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("REWIND-FILES", "REWIND-STATE")

TASK = "TASK-2026-02-09-001"
REVIEW_POSITION = 3
"""Position at which the task came into review."""
GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def git(folder: Path, *args: str) -> str:
    """Run git and return its output."""
    done = subprocess.run(
        ["git", "-C", str(folder), *args],
        check=True,
        capture_output=True,
        text=True,
        env=GIT_ENVIRONMENT,
    )
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    """Commit another text in the only file and return the hash."""
    (folder / "file").write_text(text)
    git(folder, "add", "file")
    git(folder, "commit", "-q", "-m", text)
    return git(folder, "rev-parse", "HEAD")


class Scenario:
    """Task that was done while its repository went from commit to commit."""

    def __init__(self, folder: Path) -> None:
        self.dragoman = Console(folder / "hub")
        self.repository = folder / "repository"
        self.task = TASK
        self.second_commit = ""

    def prepare(self) -> None:
        """Create the repository, the task and its transitions."""
        self.repository.mkdir(parents=True)
        git(self.repository, "init", "-q", "-b", "main")
        commit(self.repository, "first")
        self.dragoman("init")
        # A relative path, so that the directory and the repository can be copied together.
        (self.dragoman.data / "dragoman.toml").write_text('[git]\nrepository = "../repository"\n')
        assert self.dragoman.make("Write it", "--ready", "--now", "2026-02-09T10:00:00Z") == TASK
        self.dragoman.ask("task", "claim", TASK, "--agent", "ada")
        commit(self.repository, "second")
        self.dragoman.ask("task", "move", TASK, "review")
        commit(self.repository, "third")
        self.dragoman.ask("task", "move", TASK, "done")

    def rewind(self, to: object, *args: str, code: int = 0) -> Any:
        """Run `rewind` and return its reply."""
        return self.dragoman.ask("rewind", self.task, "--to", f"{to}", *args, code=code)

    def transitions(self) -> dict[str, dict[str, Any]]:
        """SAOP transitions of the task by target state; the last of each."""
        reply = self.dragoman("call", "saop.events", f'{{"task_id":"{self.task}"}}').json
        return {
            event["payload"]["to_state"]: event
            for event in reply["events"]
            if event["payload"]["type"] == "TASK_TRANSITION"
        }

    def show(self) -> Any:
        """Return the task."""
        return self.dragoman.ask("task", "show", self.task)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a folder with a done task."""
    folder = tmp_path_factory.mktemp("played")
    Scenario(folder).prepare()
    return folder


@pytest.fixture
def scenario(template: Path, tmp_path: Path) -> Scenario:
    """Give a copy of the template."""
    copytree(template, tmp_path / "stage", symlinks=True)
    scenario = Scenario(tmp_path / "stage")
    scenario.second_commit = git(scenario.repository, "rev-parse", "main~1")
    return scenario


def checkout_state(scenario: Scenario) -> tuple[str, str, str]:
    """Checked-out branch, uncommitted changes and content of the file."""
    folder = scenario.repository
    status = git(folder, "status", "--porcelain")
    return git(folder, "symbolic-ref", "HEAD"), status, (folder / "file").read_text()


def test_preview_changes_nothing(scenario: Scenario) -> None:
    before = scenario.dragoman("events").out
    review = scenario.transitions()["review"]
    reply = scenario.rewind(review["event_id"])
    assert reply["applied"] is False
    assert (reply["from"], reply["status"]) == ("done", "review")
    assert reply["commit"] == scenario.second_commit == review["payload"]["git_hash"]
    assert reply["changes"] == ["status"]
    assert reply["branch"] == f"rewind/{scenario.task}-{review['position']}"
    assert git(scenario.repository, "branch", "--list", "rewind/*") == ""
    assert scenario.dragoman("events").out == before
    output = scenario.dragoman("rewind", scenario.task, "--to", f"{review['position']}").out
    assert "status      done → review" in output
    assert f"commit      {scenario.second_commit}" in output
    assert "would be on the branch rewind/" in output
    assert output.endswith("Nothing was changed; add --apply to do it.\n")


def test_apply_restores_task_and_files(scenario: Scenario) -> None:
    before = checkout_state(scenario)
    review = scenario.transitions()["review"]
    reply = scenario.rewind(review["event_id"].upper(), "--apply", "--reason", "wrong")
    assert reply["applied"] is True
    branch = reply["branch"]
    assert git(scenario.repository, "rev-parse", branch) == scenario.second_commit
    assert git(scenario.repository, "show", f"{branch}:file") == "second"
    assert checkout_state(scenario) == before
    task = scenario.show()
    assert (task["status"], task["title"], task["assignee"]) == ("review", "Write it", "ada")
    last = scenario.dragoman.ask("events", "--after", "-1")
    assert (last["type"], last["body"]["commit"]) == ("task.rewound", scenario.second_commit)
    assert scenario.transitions()["review"]["payload"]["from_state"] == "done"
    assert scenario.dragoman.ask("verify")["ok"] is True
    log = scenario.dragoman("task", "log", scenario.task).out
    assert (
        f"rewound from done to review, as of its entry 3, its files on the branch {branch}" in log
    )


@proves("TASK-UNBLOCK")
def test_rewind_blocks_dependents_again(scenario: Scenario) -> None:
    dragoman = scenario.dragoman
    dragoman.make("Ship it", "--id", "ship", "--ready")
    dragoman.ask("task", "link", "ship", "--blocked-by", TASK)
    assert dragoman.ask("task", "show", "ship")["waitsFor"] == []

    assert (
        "waiting     again, unless it has ended: ship" in dragoman("rewind", TASK, "--to", "3").out
    )
    scenario.rewind(REVIEW_POSITION, "--apply")

    assert dragoman.ask("task", "show", "ship")["waitsFor"] == [TASK]
    assert dragoman.ask("task", "claim", "--agent", "zed", code=1)["code"] == "nothing_ready"
    assert dragoman.ask("verify")["found"] == 0


def test_work_in_progress_becomes_ready(scenario: Scenario) -> None:
    output = scenario.dragoman("rewind", scenario.task, "--to", "2", "--apply").out
    assert "it was in progress then; that work is over, so it becomes ready" in output
    assert scenario.show()["status"] == "ready"
    again = scenario.dragoman.ask("task", "claim", scenario.task, "--agent", "ben")
    assert again["attempt"] == 2
    output = scenario.dragoman("rewind", scenario.task, "--to", "2").out
    assert "ben works on it (attempt 2) and loses it" in output


def test_second_rewind_changes_nothing(scenario: Scenario) -> None:
    scenario.rewind(REVIEW_POSITION, "--apply")
    output = scenario.dragoman("rewind", scenario.task, "--to", "3", "--apply").out
    assert scenario.dragoman.ask("events", "--after", "-1")["position"] == REVIEW_POSITION + 2
    assert "it is as it was then: nothing is left to change" in output
    assert "(it is there already)" in output


def test_branch_with_new_commits_is_left_alone(scenario: Scenario, tmp_path: Path) -> None:
    at = tmp_path / "beside"
    first = scenario.rewind(REVIEW_POSITION, "--apply")
    git(scenario.repository, "worktree", "add", "-q", str(at), first["branch"])
    assert (at / "file").read_text() == "second"
    newer_commit = commit(at, "further")
    scenario.dragoman.ask("task", "move", scenario.task, "done")
    second = scenario.rewind(REVIEW_POSITION, "--apply")
    assert second["branch"] == f"{first['branch']}-2"
    assert git(scenario.repository, "rev-parse", first["branch"]) == newer_commit
    assert git(scenario.repository, "rev-parse", second["branch"]) == scenario.second_commit


def test_uncommitted_changes_stay(scenario: Scenario) -> None:
    (scenario.repository / "file").write_text("half a thought")
    (scenario.repository / "new").write_text("never added")
    before = checkout_state(scenario)
    assert scenario.rewind(REVIEW_POSITION)["uncommittedChanges"] is True
    output = scenario.dragoman("rewind", scenario.task, "--to", "3", "--apply").out
    assert "what is not committed there stays as it is" in output
    assert checkout_state(scenario) == before
    assert (scenario.repository / "new").read_text() == "never added"


def _without_commit(scenario: Scenario, tmp_path: Path) -> tuple[str, str]:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q")
    return str(other), "has no commit"


def _shallow(scenario: Scenario, tmp_path: Path) -> tuple[str, str]:
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{scenario.repository}", "shallow")
    return str(tmp_path / "shallow"), "git fetch --unshallow"


def _not_a_repository(scenario: Scenario, tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path), "is a git repository?"


def _missing_folder(scenario: Scenario, tmp_path: Path) -> tuple[str, str]:
    return str(tmp_path / "gone"), f"there is no folder {tmp_path / 'gone'}: name the repository"


def test_conflicting_branch_name_is_reported(scenario: Scenario) -> None:
    git(scenario.repository, "branch", "rewind")
    reply = scenario.rewind(REVIEW_POSITION, "--apply", code=1)
    assert reply["code"] == "bad_repository"
    assert "'refs/heads/rewind' exists" in reply["detail"]
    assert scenario.show()["status"] == "done"


@pytest.mark.parametrize(
    "make_repository", [_without_commit, _shallow, _not_a_repository, _missing_folder]
)
def test_repository_without_the_commit_is_refused(
    scenario: Scenario, tmp_path: Path, make_repository: Callable[[Scenario, Path], tuple[str, str]]
) -> None:
    repository, expected = make_repository(scenario, tmp_path)
    reply = scenario.rewind(REVIEW_POSITION, "--apply", "--repository", repository, code=1)
    assert reply["code"] == "bad_repository"
    assert expected in reply["detail"].replace("is " + repository + " a git", "is a git")
    assert scenario.show()["status"] == "done"
    task_only = scenario.rewind(
        REVIEW_POSITION, "--apply", "--repository", repository, "--task-only"
    )
    assert (task_only["status"], task_only["branch"], task_only["commit"]) == (
        "review",
        None,
        scenario.second_commit,
    )
    assert scenario.show()["status"] == "review"


def test_missing_git_is_reported(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    reply = scenario.rewind(REVIEW_POSITION, code=1)
    assert (reply["code"], "there is no git on the PATH" in reply["detail"]) == (
        "bad_repository",
        True,
    )


@proves("SAOP-COMMIT")
def test_creation_of_a_task_has_a_commit_too(scenario: Scenario) -> None:
    reply = scenario.rewind(1, "--apply")
    assert (reply["transition"]["from"], reply["transition"]["to"]) == (None, "ready")
    assert reply["commit"] == git(scenario.repository, "rev-parse", "main~2")
    assert git(scenario.repository, "show", f"{reply['branch']}:file") == "first"
    assert scenario.dragoman.ask("verify")["findings"] == []


def test_refused_rewind_leaves_no_branch(scenario: Scenario) -> None:
    reply = scenario.rewind(REVIEW_POSITION, "--apply", "--as", "ada", code=1)
    assert reply["code"] == "not_authorized"
    assert git(scenario.repository, "branch", "--list", "rewind/*") == ""
    assert scenario.show()["status"] == "done"


def test_repository_option_takes_a_relative_path(
    scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scenario.repository.parent)
    reply = scenario.rewind(REVIEW_POSITION, "--repository", scenario.repository.name)
    assert reply["repository"] == str(scenario.repository.resolve())


@pytest.mark.parametrize(
    ("args", "code", "expected"),
    [
        (("--to", "x"), 1, "name one by its event id or by its position"),
        ((), 2, "--to TRANSITION"),
    ],
)
def test_invalid_arguments_are_refused(
    scenario: Scenario, args: tuple[str, ...], code: int, expected: str
) -> None:
    result = scenario.dragoman("rewind", scenario.task, *args)
    assert (result.code, expected in result.err) == (code, True)


def test_rewind_without_repository_restores_only_the_task(dragoman: Console) -> None:
    task = dragoman.make("Write it", "--ready")
    dragoman.ask("task", "move", task, "cancelled")
    output = dragoman("rewind", task, "--to", "1", "--apply").out
    assert "created, ready" in output
    assert "files       no commit is on record for this transition" in output
    assert dragoman.ask("task", "show", task)["status"] == "ready"


def test_preview_describes_a_report(dragoman: Console) -> None:
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
    output = dragoman("rewind", task, "--to", "1").out
    assert "  report      done by bob: dry → -\n" in output
    assert "reported_at" not in output


@proves("RUN-UNREPORTED")
def test_preview_attributes_a_report_by_the_hub(dragoman: Console) -> None:
    task = dragoman.make("Write it", "--ready")
    dragoman.ask("task", "claim", task, "--agent", "bob")
    place = open_directory(dragoman.data, "", None, create=False)
    with closing(place.hub) as hub:
        hub.submit(HUB_ACTOR, ReportOutcome(task, "needs_review", "it ended", apply=True))
    output = dragoman("rewind", task, "--to", "1").out
    assert "  report      needs_review by the hub: it ended → -\n" in output


@proves("REWIND-HANDOFF")
def test_preview_names_the_handoff_that_ends(dragoman: Console) -> None:
    task = dragoman.make("Write it", "--ready")
    args = ("--summary", "s", "--next-step", "n", "--criterion", "c", "--id", "h")
    dragoman.ask("handoff", "initiate", "--as", "ada", "--to", "bob", "--task", task, *args)
    dragoman.ask("handoff", "accept", "h", "--as", "bob")
    dragoman.ask("handoff", "activate", "h", "--as", "bob")
    expected = "handoff     h (ada → bob) is rejected by the hub and closed"
    assert expected in dragoman("rewind", task, "--to", "1").out
    assert dragoman.ask("handoff", "show", "h")["status"] == "activated"
    assert dragoman.ask("rewind", task, "--to", "1", "--apply")["handoff"] == "h"
    assert dragoman.ask("handoff", "show", "h")["status"] == "closed"
    dragoman.ask("task", "claim", task, "--agent", "zoe")
