"""HEAD of a repository: read from its files, cached, and read again when it changes."""

import subprocess
from pathlib import Path

from dragoman.system.git import GitHead
from tests.requirements import proves

pytestmark = proves("SAOP-COMMIT")

NAME = ("-c", "user.name=t", "-c", "user.email=t@example.org")


def run_git(folder: Path, *words: str) -> str:
    """Run git; returns its output."""
    done = subprocess.run(
        ["git", *NAME, *words], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit(folder: Path, text: str) -> str:
    """Make a commit; returns its hash."""
    (folder / "file").write_text(text)
    run_git(folder, "add", "file")
    run_git(folder, "commit", "-q", "-m", text)
    return run_git(folder, "rev-parse", "HEAD")


def test_head_is_followed_through_branches_packs_and_worktrees(tmp_path: Path) -> None:
    repository = tmp_path / "r"
    repository.mkdir()
    head = GitHead(repository)
    assert head() == "", "there is no repository yet"
    run_git(repository, "init", "-q", "-b", "main")
    assert head() == "", "there is no commit yet"
    first = commit(repository, "one")
    assert head() == head() == first
    run_git(repository, "pack-refs", "--all")
    assert head() == first
    second = commit(repository, "two")
    assert head() == second
    run_git(repository, "checkout", "-q", first)
    assert head() == first, "a commit can be checked out without a branch"
    tree = tmp_path / "tree"
    run_git(repository, "worktree", "add", "-q", "-b", "other", str(tree), second)
    assert GitHead(tree)() == second
    run_git(repository, "clone", "-q", "--bare", ".", str(tmp_path / "bare"))
    assert GitHead(tmp_path / "bare")() == first
    below = repository / "src" / "deep"
    below.mkdir(parents=True)
    assert GitHead(below)() == first, "git looks in the folders above, too"
    assert GitHead(below / "nowhere")() == ""


def test_folder_without_repository_has_no_head(tmp_path: Path) -> None:
    assert GitHead(tmp_path / "nowhere")() == ""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(b"\xff\xfe")
    assert GitHead(tmp_path)() == ""
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/x")
    (tmp_path / ".git" / "refs" / "heads").mkdir(parents=True)
    (tmp_path / ".git" / "refs" / "heads" / "x").write_text("ref: refs/heads/x")
    assert GitHead(tmp_path)() == "", "names that stand for themselves lead nowhere"
