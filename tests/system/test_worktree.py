"""Worktrees that go on from a checkpoint: its commit is found, reached, and nothing is lost."""

import os
import subprocess
from pathlib import Path

import pytest

from dragoman.system.worktree import Branch, find_commit, go_on_from, open_worktree
from tests.requirements import proves

pytestmark = proves("RUN-WORKTREE", "MAIL-CHECKPOINT")

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


def commit(folder: Path, name: str) -> str:
    """A commit that adds a file, and its hash."""
    (folder / name).write_text(name)
    git(folder, "add", name)
    git(folder, "commit", "-q", "-m", name)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Give a repository with one commit on main and one beside it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first")
    git(folder, "switch", "-q", "-c", "beside")
    commit(folder, "half")
    git(folder, "switch", "-q", "main")
    return folder


def opened(repository: Path, base: str, hub: str = "one") -> Path:
    at = repository.parent / hub
    return open_worktree(repository, at, Branch("dragoman/T", base, hub), ENVIRON)


def test_a_branch_that_another_hub_has_made_is_left_alone(repository: Path) -> None:
    first = opened(repository, "beside", "one")
    second, third = opened(repository, "main", "two"), opened(repository, "main", "three")

    branches = [git(folder, "branch", "--show-current") for folder in (first, second, third)]
    assert branches == ["dragoman/T", "dragoman/T-2", "dragoman/T-3"]
    assert git(second, "rev-parse", "HEAD") == git(repository, "rev-parse", "main")


def test_what_another_hub_of_the_same_ledger_has_checked_out_is_gone_on_from(
    repository: Path,
) -> None:
    later = commit(opened(repository, "main"), "later")
    beside = repository.parent / "elsewhere"
    open_worktree(repository, beside, Branch("dragoman/T", "main", "one"), ENVIRON)
    assert git(beside, "branch", "--show-current") == "dragoman/T-2"
    assert git(beside, "rev-parse", "HEAD") == later


@pytest.mark.parametrize("hub", ["one", "two"])
def test_a_later_attempt_goes_on_with_its_own_branch(repository: Path, hub: str) -> None:
    opened(repository, "main", "one")
    worktree = opened(repository, "main", hub)
    later = commit(worktree, "later")
    git(repository, "worktree", "remove", str(worktree))

    assert git(opened(repository, "main", hub), "rev-parse", "HEAD") == later


def test_who_removes_worktree_and_branch_has_the_next_attempt_begin_at_the_base(
    repository: Path,
) -> None:
    worktree = opened(repository, "main")
    commit(worktree, "later")
    git(repository, "worktree", "remove", str(worktree))
    git(repository, "branch", "-D", "dragoman/T")

    again = opened(repository, "main")
    assert git(again, "rev-parse", "HEAD") == git(repository, "rev-parse", "main")
    assert git(again, "branch", "--show-current") == "dragoman/T"


def test_one_whose_checkout_was_cut_off_is_made_anew(repository: Path, tmp_path: Path) -> None:
    for name in ("second", "third"):
        commit(repository, name)
    # Whoever checks out dies before the last file, with no time to clean up.
    cut = tmp_path / "cut"
    cut.write_text('#!/bin/sh\ntest -e "$1" && kill -9 0\n: > "$1"; cat\n')
    cut.chmod(0o755)
    git(repository, "config", "filter.cut.smudge", f"{cut} {tmp_path / 'was'}")
    (repository / ".git/info/attributes").write_text("* filter=cut\n")
    with pytest.raises(OSError, match="git worktree add"):
        opened(repository, "main")
    half = repository.parent / "one"
    assert (half / ".git").is_file()
    git(repository, "config", "--unset", "filter.cut.smudge")

    worktree = opened(repository, "main")
    assert git(worktree, "status", "--porcelain") == ""
    assert sorted(path.name for path in worktree.iterdir()) == [".git", "first", "second", "third"]
    assert git(worktree, "branch", "--show-current") == "dragoman/T"
    git(repository, "worktree", "remove", str(worktree))


def test_one_of_another_repository_is_left_alone(repository: Path) -> None:
    other = repository.parent / "other"
    git(repository, "clone", "-q", str(repository), str(other))
    git(other, "switch", "-q", "-c", "elsewhere")
    begun = commit(other, "elsewhere")
    first = opened(repository, "main")
    branch = Branch("dragoman/T", "elsewhere", "one")

    second, again = (open_worktree(other, first, branch, ENVIRON) for _ in range(2))
    assert (second, again) == (first.with_name("one-2"), second)
    assert git(second, "rev-parse", "HEAD") == begun
    assert opened(repository, "main") == first


def test_one_that_has_lost_its_repository_is_made_beside_it(repository: Path) -> None:
    worktree = opened(repository, "main")
    later = commit(worktree, "later")
    (worktree / ".git").write_text(f"gitdir: {repository.parent}/gone\n")

    again = opened(repository, "main")
    assert (again, git(again, "rev-parse", "HEAD")) == (worktree.with_name("one-2"), later)


def test_a_base_is_never_an_option(repository: Path) -> None:
    with pytest.raises(OSError, match="--detach"):
        opened(repository, "--detach")
    assert not (repository.parent / "one").exists()


def test_names_of_branches_come_to_an_end(repository: Path) -> None:
    for name in ("dragoman/T", *(f"dragoman/T-{number}" for number in range(2, 100))):
        git(repository, "update-ref", f"refs/heads/{name}", "main")
    with pytest.raises(OSError, match="too many branches dragoman/T-N"):
        opened(repository, "main")


def test_a_commit_is_found_by_its_hash_and_by_nothing_else(repository: Path) -> None:
    half = git(repository, "rev-parse", "beside")
    for named in (half, half[:7], half.upper()):
        assert find_commit(repository, named, ENVIRON) == half
    tree = git(repository, "rev-parse", "beside^{tree}")
    for named in ("", "beside", "HEAD", "--all", "0" * 40, half[:3], f"{half}\n", tree):
        assert find_commit(repository, named, ENVIRON) == ""


def test_a_new_worktree_begins_at_the_commit(repository: Path) -> None:
    half = git(repository, "rev-parse", "beside")
    worktree = opened(repository, half)
    assert go_on_from(worktree, half, ENVIRON)
    assert git(worktree, "rev-parse", "HEAD") == half
    assert git(worktree, "branch", "--show-current") == "dragoman/T"


def test_one_that_was_kept_is_brought_forward(repository: Path) -> None:
    worktree = opened(repository, "main")
    (worktree / "unsaved").write_text("x")
    half = git(repository, "rev-parse", "beside")
    assert go_on_from(worktree, half, ENVIRON)
    assert git(worktree, "rev-parse", "HEAD") == half
    assert (worktree / "unsaved").exists()


def test_one_that_has_gone_on_stays_where_it_is(repository: Path) -> None:
    half = git(repository, "rev-parse", "beside")
    worktree = opened(repository, half)
    later = commit(worktree, "later")
    assert go_on_from(worktree, half, ENVIRON)
    assert git(worktree, "rev-parse", "HEAD") == later


def test_and_so_does_one_that_went_another_way(repository: Path) -> None:
    worktree = opened(repository, "main")
    other = commit(worktree, "other")
    assert not go_on_from(worktree, git(repository, "rev-parse", "beside"), ENVIRON)
    assert git(worktree, "rev-parse", "HEAD") == other


def test_an_edit_that_would_be_lost_stops_it(repository: Path) -> None:
    worktree = opened(repository, "main")
    (worktree / "half").write_text("mine, not in any commit")
    assert not go_on_from(worktree, git(repository, "rev-parse", "beside"), ENVIRON)
    assert (worktree / "half").read_text() == "mine, not in any commit"
