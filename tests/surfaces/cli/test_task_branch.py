"""`task diff` and `task merge`: branches of tasks, with a real repository."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.files import task_branches
from dragoman.system import branch_merge
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("TASK-MERGE")

TASK = "TASK-2026-02-09-001"
BRANCH = f"dragoman/{TASK}"


class Repository:
    """A repository with a checkout of main, and a worktree for the task."""

    def __init__(self, folder: Path, worktree: Path) -> None:
        self.folder = folder
        self.worktree = worktree

    def git(self, *args: str, at: Path | None = None) -> str:
        """Run git; its output."""
        done = subprocess.run(
            ("git", "-c", "user.name=mia", "-c", "user.email=mia@example.invalid", *args),
            cwd=at or self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.strip()

    def commit(self, name: str, text: str, *, at: Path | None = None) -> str:
        """Commit a file; the commit."""
        ((at or self.folder) / name).write_text(text)
        self.git("add", name, at=at)
        self.git("commit", "-qm", f"write {name}", at=at)
        return self.git("rev-parse", "HEAD", at=at)


@pytest.fixture
def repository(dragoman: Console, tmp_path: Path) -> Repository:
    """Give a repository in which ada has worked on a task, which is in review."""
    folder = tmp_path / "repository"
    folder.mkdir()
    found = Repository(folder, dragoman.data / "worktrees" / TASK)
    found.git("init", "-q", "-b", "main")
    found.commit("a.txt", "one\n")
    dragoman.make("Write it", "--id", TASK, "--ready", "--assignee", "ada")
    settings = f'[agents.ada]\ncommand = ["true"]\nrepository = "{folder}"\n'
    (dragoman.data / "dragoman.toml").write_text(settings)
    dragoman.ask("task", "claim", TASK, "--agent", "ada")
    found.git("worktree", "add", "-q", "-b", BRANCH, str(found.worktree))
    found.commit("b.txt", "from ada\n", at=found.worktree)
    dragoman.ask("task", "move", TASK, "review", "--as", "ada")
    return found


def test_diff_shows_what_is_committed_and_what_is_not(
    dragoman: Console, repository: Repository
) -> None:
    base = repository.git("rev-parse", "main")
    repository.commit("c.txt", "meanwhile\n")
    (repository.worktree / "a.txt").write_text("two\n")
    (repository.worktree / "new.txt").write_text("new\n")
    found = dragoman.ask("task", "diff", TASK)
    assert (found["branch"], found["into"], found["base"]) == (BRANCH, "main", base)
    assert "+from ada" in found["patch"]
    assert "meanwhile" not in found["patch"]
    assert "+two" in found["uncommittedPatch"]
    assert sorted(found["uncommitted"]) == ["a.txt", "new.txt"]
    shown = dragoman("task", "diff", TASK).out
    assert "+from ada" in shown
    assert "not committed: a.txt, new.txt in its worktree" in shown


def test_secret_in_a_difference_is_masked_and_a_long_one_is_cut(
    dragoman: Console, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit("s.txt", "key = AKIAIOSFODNN7EXAMPLE\n", at=repository.worktree)
    found = dragoman.ask("task", "diff", TASK)
    assert ("AKIAIOSFODNN7EXAMPLE" in found["patch"], found["isComplete"]) == (False, True)
    monkeypatch.setattr(task_branches, "_MAX_PATCH_BYTES", 20)
    assert dragoman.ask("task", "diff", TASK)["isComplete"] is False
    assert "… and more: look at it with git" in dragoman("task", "diff", TASK).out


def test_merge_brings_the_checkout_along_and_is_recorded(
    dragoman: Console, repository: Repository
) -> None:
    repository.commit("c.txt", "meanwhile\n")
    (repository.folder / "untracked.txt").write_text("mine\n")
    merged = dragoman.ask("task", "merge", TASK)
    assert (merged["branch"], merged["into"]) == (BRANCH, "main")
    assert repository.git("rev-parse", "main") == merged["merged"]
    assert (repository.folder / "b.txt").read_text() == "from ada\n"
    assert repository.git("status", "--porcelain") == "?? untracked.txt"
    parents = repository.git("rev-list", "--parents", "-1", "main").split()
    assert len(parents) == 3, "the work of both sides stays"
    note = f"merged {BRANCH} ({merged['commit']}) into main as commit {merged['merged']}"
    assert note in dragoman("events", "--task", TASK).out
    again = dragoman.ask("task", "merge", TASK, code=1)
    assert "has all of" in again["detail"]


def test_merge_into_a_branch_that_nobody_has_checked_out(
    dragoman: Console, repository: Repository
) -> None:
    repository.git("branch", "release")
    main = repository.git("rev-parse", "main")
    merged = dragoman.ask("task", "merge", TASK, "--into", "release")
    assert repository.git("rev-parse", "release") == merged["merged"]
    assert repository.git("rev-parse", "main") == main
    assert not (repository.folder / "b.txt").exists()


def _conflict(repository: Repository) -> None:
    repository.commit("b.txt", "from mia\n")


def _uncommitted(repository: Repository) -> None:
    (repository.worktree / "new.txt").write_text("new\n")


def _dirty_checkout(repository: Repository) -> None:
    (repository.folder / "a.txt").write_text("mine\n")


def _file_in_the_way(repository: Repository) -> None:
    (repository.folder / "b.txt").write_text("mine\n")


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (_conflict, "does not merge cleanly into main: b.txt changed on both sides"),
        (_uncommitted, "has changes that are not committed (new.txt in "),
        (_dirty_checkout, "main is checked out in "),
        (_file_in_the_way, "main cannot be moved on: "),
    ],
    ids=["conflict", "uncommitted", "dirty", "in the way"],
)
def test_merge_that_cannot_be_done_changes_nothing(
    dragoman: Console,
    repository: Repository,
    prepare: Callable[[Repository], None],
    reason: str,
) -> None:
    prepare(repository)
    before = repository.git("rev-parse", "main"), repository.git("status", "--porcelain")
    refused = dragoman.ask("task", "merge", TASK, code=1)
    assert refused["code"] == "conflict_retry"
    assert reason in refused["detail"]
    assert (repository.git("rev-parse", "main"), repository.git("status", "--porcelain")) == before
    assert "merged " not in dragoman("events", "--task", TASK).out


@pytest.mark.parametrize("branch", ["main", "release"])
def test_branch_that_moves_during_the_merge_is_left_as_it_is(
    dragoman: Console, repository: Repository, monkeypatch: pytest.MonkeyPatch, branch: str
) -> None:
    repository.git("branch", "release")
    run_git = branch_merge.run_git

    def move_first(*args: object) -> str:
        if "commit-tree" in args:
            tree = repository.git("rev-parse", "main^{tree}")
            moved = repository.git("commit-tree", tree, "-p", branch, "-m", "faster")
            if branch == "main":
                repository.git("reset", "-q", "--hard", moved)
            else:
                repository.git("update-ref", f"refs/heads/{branch}", moved)
        return run_git(*args)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(branch_merge, "run_git", move_first)
    refused = dragoman.ask("task", "merge", TASK, "--into", branch, code=1)
    assert f"{branch} has moved on meanwhile: run the merge again" in refused["detail"]
    assert repository.git("log", "-1", "--format=%s", branch) == "faster"


def test_worktree_that_is_gone_leaves_the_branch(dragoman: Console, repository: Repository) -> None:
    repository.git("worktree", "remove", str(repository.worktree))
    assert "+from ada" in dragoman.ask("task", "diff", TASK)["patch"]
    assert dragoman.ask("task", "merge", TASK)["branch"] == BRANCH


@pytest.mark.parametrize(
    ("args", "code", "reason"),
    [
        (("merge", TASK, "--as", "ada"), "not_authorized", "is for people and orchestrators"),
        (("diff", TASK, "--as", "eve"), "not_authorized", "may not read what others do"),
        (("merge", TASK, "--into", "nowhere"), "bad_repository", "has no branch nowhere"),
        (("diff", TASK, "--into", "--output=x"), "bad_repository", "has no branch --output=x"),
        (("diff", "T-404"), "task_not_found", "T-404"),
        (("merge", "T-other"), "bad_repository", "nobody with a repository in the settings"),
    ],
    ids=range(6),
)
@pytest.mark.usefixtures("repository")
def test_wrong_callers_branches_and_tasks_are_refused(
    dragoman: Console, args: tuple[str, ...], code: str, reason: str
) -> None:
    dragoman.make("Other", "--id", "T-other", "--ready")
    refused = dragoman.ask("task", *args, code=1)
    assert (refused["code"], reason in refused["detail"]) == (code, True), refused


def test_work_in_progress_is_not_merged(dragoman: Console, repository: Repository) -> None:
    dragoman.ask("task", "move", TASK, "ready")
    dragoman.ask("task", "claim", TASK, "--agent", "ada")
    assert dragoman.ask("task", "merge", TASK, code=1)["code"] == "already_claimed"
    assert "+from ada" in dragoman.ask("task", "diff", TASK, "--as", "ada")["patch"]
    assert repository.git("log", "--oneline", "main").count("\n") == 0
