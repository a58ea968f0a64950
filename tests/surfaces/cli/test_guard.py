"""`guard`: a real git repository, its hook, and commits that pass or are blocked."""

import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest

from dragoman.bootstrap.cli_wiring import CLI_WIRING
from dragoman.surfaces.cli.app import main
from tests.requirements import proves
from tests.surfaces.cli.console import Console

pytestmark = proves("GUARD-COMMIT")


class Repository:
    """Git repository with a committing user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.variables = {
            "PATH": path,
            "HOME": str(folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "t",
            "GIT_AUTHOR_EMAIL": "t@example.org",
            "GIT_COMMITTER_NAME": "t",
            "GIT_COMMITTER_EMAIL": "t@example.org",
        }
        self.git("init", "-q")

    def git(self, *args: str, **extra: str) -> subprocess.CompletedProcess[str]:
        """Run git in the repository."""
        variables = {**self.variables, **extra}
        return subprocess.run(
            ("git", *args),
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    def stage(self, *names: str) -> None:
        """Write files and stage them."""
        for name in names:
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        self.git("add", *names)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Give a new repository as the working directory."""
    folder = tmp_path / "repository"
    folder.mkdir()
    made = Repository(folder)
    monkeypatch.chdir(folder)
    return made


@proves("RESERVE-TAKE")
def test_commit_of_a_reserved_file_is_blocked(dragoman: Console, repository: Repository) -> None:
    dragoman.ask("reserve", "take", "src/", "--as", "ada")
    wrote = dragoman("guard", "install")
    assert wrote.out == f"wrote {repository.folder}/.git/hooks/pre-commit\n"
    repository.stage("src/x.py", "free.py")

    stopped = repository.git("commit", "-m", "one", DRAGOMAN_AGENT="bob")
    assert stopped.returncode == 1
    assert "src/x.py is reserved by ada until " in stopped.stderr
    assert "free.py" not in stopped.stderr
    assert "You are bob. Unstage them" in stopped.stderr

    assert repository.git("commit", "-m", "one", DRAGOMAN_AGENT="ada").returncode == 0
    repository.stage("src/y.py")
    assert repository.git("commit", "-m", "two", DRAGOMAN_AGENT="bob").returncode == 1
    assert repository.git("commit", "--no-verify", "-m", "two").returncode == 0


def test_check_names_files_and_holders(dragoman: Console, repository: Repository) -> None:
    dragoman.ask("wave", "start", "a=src/x y.py", "--parallel", "1", "--id", "w")
    repository.stage("src/x y.py", "free")
    reply = dragoman.ask("guard", "check", "--as", "bob", code=1)
    assert reply["code"] == "files_reserved"
    assert [one["file"] for one in reply["reserved"]] == ["src/x y.py"]
    assert "src/x y.py is reserved by bead a of wave w until it has ended" in reply["detail"]
    dragoman.ask("task", "claim", "a", "--agent", "bob")
    assert dragoman.ask("guard", "check", "--as", "bob") == {"ok": True, "staged": 2}


def test_reserved_pattern_blocks_only_matching_files(
    dragoman: Console, repository: Repository
) -> None:
    dragoman.ask("reserve", "take", "**/*.py", "--as", "eve")
    repository.stage("Makefile", "src/a.md", "src/a.py")
    reply = dragoman.ask("guard", "check", "--as", "bob", code=1)
    assert [one["file"] for one in reply["reserved"]] == ["src/a.py"]


def test_install_keeps_a_foreign_hook_and_updates_its_own(
    dragoman: Console, repository: Repository
) -> None:
    hook = repository.folder / ".git/hooks/pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    refused = dragoman.ask("guard", "install", code=1)
    assert refused["code"] == "already_exists"
    assert f"add this line to it: {sys.executable} -m dragoman --data " in refused["detail"]
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"
    hook.unlink()
    for _ in range(2):
        assert dragoman.ask("guard", "install")["hook"] == str(hook)
    assert hook.stat().st_mode & 0o111


def test_missing_hub_or_program_lets_commits_pass_with_a_warning(
    dragoman: Console, repository: Repository
) -> None:
    repository.stage("x")
    reply = dragoman.ask("guard", "check")
    assert reply == {"ok": True, "staged": 1, "unchecked": "store_unavailable"}
    assert "nothing was checked: there is no data directory" in dragoman("guard", "check").err
    assert not dragoman.data.exists()
    hook = Path(dragoman.ask("guard", "install")["hook"])
    hook.write_text(hook.read_text().replace(sys.executable, "/gone/python"))
    passed = repository.git("commit", "-m", "one")
    assert passed.returncode == 0
    assert "/gone/python is gone, so nothing was checked" in passed.stderr


@proves("RESERVE-TAKE")
def test_hook_needs_nothing_on_the_path(dragoman: Console, repository: Repository) -> None:
    dragoman.ask("reserve", "take", "src/", "--as", "ada")
    dragoman("guard", "install")
    repository.stage("src/a")
    stopped = repository.git("commit", "-m", "one", PATH="/usr/bin:/bin")
    assert stopped.returncode == 1
    assert "ada" in stopped.stderr


def test_guard_outside_of_a_repository_is_a_usage_error(
    dragoman: Console, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    for command in ("install", "check"):
        result = dragoman("guard", command)
        assert result.code == 2
        assert "not a git repository" in result.err
        assert "go to a git repository first" in result.err
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "there is no git on the PATH" in dragoman("guard", "check").err


def _worktree(repository: Repository, at: Path) -> Repository:
    """Create a linked worktree with staged files beside the repository."""
    repository.stage("first")
    assert repository.git("commit", "-m", "first", "--no-verify").returncode == 0
    assert repository.git("worktree", "add", "-q", str(at)).returncode == 0
    linked = Repository(at)
    linked.stage("src/x.py", "free.py")
    return linked


@proves("GUARD-WORKTREES")
def test_linked_worktree_uses_the_data_directory_of_its_repository(
    dragoman: Console, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DRAGOMAN_URL", raising=False)
    console = Console(repository.folder / ".dragoman")
    console.ask("reserve", "take", "src/", "--as", "ada")
    assert main(CLI_WIRING, ["guard", "install"], StringIO(), StringIO(), lambda: False) == 0
    linked = _worktree(repository, tmp_path / "linked")

    stopped = linked.git("commit", "-m", "one", DRAGOMAN_AGENT="bob")
    assert (stopped.returncode, "src/x.py is reserved by ada" in stopped.stderr) == (1, True)
    assert linked.git("commit", "-m", "one", DRAGOMAN_AGENT="ada").returncode == 0
    assert not (linked.folder / ".dragoman").exists()
