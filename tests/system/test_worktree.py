"""Worktrees that continue from a checkpoint: its commit is found, reached, and nothing is lost."""

import os
import subprocess
from pathlib import Path

import pytest

from dragoman.system.worktree import Branch, fast_forward, find_commit, open_worktree
from tests.requirements import proves

pytestmark = proves("RUN-WORKTREE", "MAIL-CHECKPOINT")

ENVIRON = {
    "PATH": os.environ["PATH"],
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


def run_git(folder: Path, *words: str) -> str:
    """Run git; returns its output."""
    done = subprocess.run(
        ["git", "-C", str(folder), *words], check=True, capture_output=True, text=True, env=ENVIRON
    )
    return done.stdout.strip()


def commit(folder: Path, name: str) -> str:
    """Commit a new file; returns the hash."""
    (folder / name).write_text(name)
    run_git(folder, "add", name)
    run_git(folder, "commit", "-q", "-m", name)
    return run_git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Repository with one commit on main and one beside it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    run_git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    run_git(folder, "switch", "-q", "-c", "beside")
    commit(folder, "half")
    run_git(folder, "switch", "-q", "main")
    return folder


def open_branch(repository: Path, base: str, hub: str = "one") -> Path:
    folder = repository.parent / hub
    return open_worktree(repository, folder, Branch("dragoman/T", base, hub), ENVIRON)


def test_branch_of_another_hub_is_left_alone(repository: Path) -> None:
    first = open_branch(repository, "beside", "one")
    second, third = open_branch(repository, "main", "two"), open_branch(repository, "main", "three")

    branches = [run_git(folder, "branch", "--show-current") for folder in (first, second, third)]
    assert branches == ["dragoman/T", "dragoman/T-2", "dragoman/T-3"]
    assert run_git(second, "rev-parse", "HEAD") == run_git(repository, "rev-parse", "main")


def test_branch_checked_out_elsewhere_is_continued(
    repository: Path,
) -> None:
    later = commit(open_branch(repository, "main"), "later")
    other_folder = repository.parent / "elsewhere"
    open_worktree(repository, other_folder, Branch("dragoman/T", "main", "one"), ENVIRON)
    assert run_git(other_folder, "branch", "--show-current") == "dragoman/T-2"
    assert run_git(other_folder, "rev-parse", "HEAD") == later


@pytest.mark.parametrize("hub", ["one", "two"])
def test_later_attempt_continues_its_branch(repository: Path, hub: str) -> None:
    open_branch(repository, "main", "one")
    worktree = open_branch(repository, "main", hub)
    later = commit(worktree, "later")
    run_git(repository, "worktree", "remove", str(worktree))

    assert run_git(open_branch(repository, "main", hub), "rev-parse", "HEAD") == later


def test_removed_worktree_and_branch_restart_at_base(
    repository: Path,
) -> None:
    worktree = open_branch(repository, "main")
    commit(worktree, "later")
    run_git(repository, "worktree", "remove", str(worktree))
    run_git(repository, "branch", "-D", "dragoman/T")

    again = open_branch(repository, "main")
    assert run_git(again, "rev-parse", "HEAD") == run_git(repository, "rev-parse", "main")
    assert run_git(again, "branch", "--show-current") == "dragoman/T"


def test_interrupted_checkout_is_remade(repository: Path, tmp_path: Path) -> None:
    for name in ("second", "third"):
        commit(repository, name)
    # The checkout dies before the last file, with no time to clean up.
    cut = tmp_path / "cut"
    cut.write_text('#!/bin/sh\ntest -e "$1" && kill -9 0\n: > "$1"; cat\n')
    cut.chmod(0o755)
    run_git(repository, "config", "filter.cut.smudge", f"{cut} {tmp_path / 'was'}")
    (repository / ".git/info/attributes").write_text("* filter=cut\n")
    with pytest.raises(OSError, match="git worktree add"):
        open_branch(repository, "main")
    half = repository.parent / "one"
    assert (half / ".git").is_file()
    run_git(repository, "config", "--unset", "filter.cut.smudge")

    worktree = open_branch(repository, "main")
    assert run_git(worktree, "status", "--porcelain") == ""
    assert sorted(path.name for path in worktree.iterdir()) == [".git", "first", "second", "third"]
    assert run_git(worktree, "branch", "--show-current") == "dragoman/T"
    run_git(repository, "worktree", "remove", str(worktree))


def test_worktree_of_another_repository_is_left_alone(repository: Path) -> None:
    other = repository.parent / "other"
    run_git(repository, "clone", "-q", str(repository), str(other))
    run_git(other, "switch", "-q", "-c", "elsewhere")
    base_commit = commit(other, "elsewhere")
    first = open_branch(repository, "main")
    branch = Branch("dragoman/T", "elsewhere", "one")

    second, again = (open_worktree(other, first, branch, ENVIRON) for _ in range(2))
    assert (second, again) == (first.with_name("one-2"), second)
    assert run_git(second, "rev-parse", "HEAD") == base_commit
    assert open_branch(repository, "main") == first


def test_worktree_without_repository_is_replaced_beside_it(repository: Path) -> None:
    worktree = open_branch(repository, "main")
    later = commit(worktree, "later")
    (worktree / ".git").write_text(f"gitdir: {repository.parent}/gone\n")

    again = open_branch(repository, "main")
    assert (again, run_git(again, "rev-parse", "HEAD")) == (worktree.with_name("one-2"), later)


def test_base_is_never_parsed_as_option(repository: Path) -> None:
    with pytest.raises(OSError, match="--detach"):
        open_branch(repository, "--detach")
    assert not (repository.parent / "one").exists()


def test_branch_numbers_are_limited(repository: Path) -> None:
    for name in ("dragoman/T", *(f"dragoman/T-{number}" for number in range(2, 100))):
        run_git(repository, "update-ref", f"refs/heads/{name}", "main")
    with pytest.raises(OSError, match="too many branches dragoman/T-N"):
        open_branch(repository, "main")


def test_commit_is_found_only_by_hash(repository: Path) -> None:
    half = run_git(repository, "rev-parse", "beside")
    for named in (half, half[:7], half.upper()):
        assert find_commit(repository, named, ENVIRON) == half
    tree = run_git(repository, "rev-parse", "beside^{tree}")
    for named in ("", "beside", "HEAD", "--all", "0" * 40, half[:3], f"{half}\n", tree):
        assert find_commit(repository, named, ENVIRON) == ""


def test_new_worktree_begins_at_checkpoint_commit(repository: Path) -> None:
    half = run_git(repository, "rev-parse", "beside")
    worktree = open_branch(repository, half)
    assert fast_forward(worktree, half, ENVIRON)
    assert run_git(worktree, "rev-parse", "HEAD") == half
    assert run_git(worktree, "branch", "--show-current") == "dragoman/T"


def test_existing_worktree_is_fast_forwarded(repository: Path) -> None:
    worktree = open_branch(repository, "main")
    (worktree / "unsaved").write_text("x")
    half = run_git(repository, "rev-parse", "beside")
    assert fast_forward(worktree, half, ENVIRON)
    assert run_git(worktree, "rev-parse", "HEAD") == half
    assert (worktree / "unsaved").exists()


def test_worktree_ahead_of_checkpoint_stays(repository: Path) -> None:
    half = run_git(repository, "rev-parse", "beside")
    worktree = open_branch(repository, half)
    later = commit(worktree, "later")
    assert fast_forward(worktree, half, ENVIRON)
    assert run_git(worktree, "rev-parse", "HEAD") == later


def test_diverged_worktree_stays(repository: Path) -> None:
    worktree = open_branch(repository, "main")
    other = commit(worktree, "other")
    assert not fast_forward(worktree, run_git(repository, "rev-parse", "beside"), ENVIRON)
    assert run_git(worktree, "rev-parse", "HEAD") == other


def test_uncommitted_edit_prevents_fast_forward(repository: Path) -> None:
    worktree = open_branch(repository, "main")
    (worktree / "half").write_text("mine, not in any commit")
    assert not fast_forward(worktree, run_git(repository, "rev-parse", "beside"), ENVIRON)
    assert (worktree / "half").read_text() == "mine, not in any commit"
