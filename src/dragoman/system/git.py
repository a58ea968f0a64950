"""Git repositories: hooks, staged files, and the commit of HEAD.

HEAD is read from git's own files, without starting a program: every transition of a task asks
for it, so it is cached until one of those files changes.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

# --- git commands -----------------------------------------------------------------------------

_TIMEOUT_SECONDS: Final = 60.0


class NoRepository(Exception):
    """There is no git repository here, or no git."""


def hooks_folder(folder: Path, variables: Mapping[str, str]) -> Path:
    """Folder of the hooks of the repository that contains a folder."""
    output = _run_git(folder, variables, "rev-parse", "--git-path", "hooks")
    return folder / os.fsdecode(output.removesuffix(b"\n"))


def staged_files(folder: Path, variables: Mapping[str, str]) -> list[str]:
    """Paths that the next commit would change, relative to the root of the repository."""
    # Outside of a repository `git diff` compares other things, and prints its usage.
    _run_git(folder, variables, "rev-parse", "--git-dir")
    output = _run_git(folder, variables, "diff", "--cached", "--name-only", "--no-renames", "-z")
    return [os.fsdecode(path) for path in output.split(b"\0") if path]


def would_commit(path: Path, variables: Mapping[str, str]) -> bool:
    """Tell whether a file is in a repository, or would be with the next `git add`."""
    folder = next(parent for parent in path.parents if parent.is_dir())
    try:
        _run_git(folder, variables, "rev-parse", "--git-dir")
    except NoRepository:
        return False
    try:
        _run_git(folder, variables, "check-ignore", "-q", "--", str(path))
    except NoRepository:
        return True
    return False


def _run_git(folder: Path, variables: Mapping[str, str], *args: str) -> bytes:
    program = shutil.which("git", path=variables.get("PATH"))
    if program is None:
        raise NoRepository("there is no git on the PATH")
    try:
        result = subprocess.run(
            (program, *args),
            cwd=folder,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoRepository(f"git {args[0]} in {folder}: {error}") from error
    if result.returncode:
        reason = result.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise NoRepository(
            f"git {args[0]} in {folder}: {reason or f'it ended {result.returncode}'}"
        )
    return result.stdout


# --- HEAD -------------------------------------------------------------------------------------

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)

_REF_PREFIX: Final = "ref: "

_GITDIR_PREFIX: Final = "gitdir: "

_MAX_SYMBOLIC_REFS: Final = 5
"""Limit of symbolic refs that are followed."""

FileMark = tuple[int, int, int] | None
"""Inode, size and modification time of a file that was read."""


class GitHead:
    """Reads HEAD of a repository or worktree."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository.resolve()
        self._marks: dict[Path, FileMark] = {}
        self._commit = ""

    def __call__(self) -> str:
        """Commit of HEAD; empty when there is no repository, or no commit in it yet."""
        if not self._marks or any(_file_mark(path) != mark for path, mark in self._marks.items()):
            self._marks = {}
            self._commit = self._resolve()
        return self._commit

    def _resolve(self) -> str:
        git_dir = self._git_dir()
        common = (
            git_dir / self._read_text(git_dir / "commondir")
            if (git_dir / "commondir").exists()
            else git_dir
        )
        value = self._read_text(git_dir / "HEAD")
        for _ in range(_MAX_SYMBOLIC_REFS):
            if not value.startswith(_REF_PREFIX):
                break
            ref = value.removeprefix(_REF_PREFIX)
            value = (
                self._read_text(git_dir / ref)
                or self._read_text(common / ref)
                or self._packed_ref(common, ref)
            )
        return value if _COMMIT.fullmatch(value) else ""

    def _git_dir(self) -> Path:
        """The `.git` folder, or the one that a worktree's `.git` file points at.

        As git does, it is looked for in parent folders, too.
        """
        for folder in (self._repository, *self._repository.parents):
            candidate = folder / ".git"
            self._marks[candidate] = _file_mark(candidate)
            if candidate.is_file():
                return folder / self._read_text(candidate).removeprefix(_GITDIR_PREFIX)
            if candidate.is_dir():
                return candidate
            if (folder / "HEAD").is_file() or not folder.is_dir():
                return folder
        return self._repository

    def _packed_ref(self, common: Path, ref: str) -> str:
        for line in self._read_text(common / "packed-refs").splitlines():
            commit, _, name = line.partition(" ")
            if name == ref:
                return commit
        return ""

    def _read_text(self, path: Path) -> str:
        """Text of a file, empty when it is missing; its next change is noticed."""
        # Marked before it is read, so that a change during the read is noticed.
        self._marks.setdefault(path, _file_mark(path))
        try:
            return path.read_text(encoding="utf-8").strip()
        except (OSError, ValueError):
            return ""


def _file_mark(path: Path) -> FileMark:
    try:
        stat = path.stat()
    except (OSError, ValueError):
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
