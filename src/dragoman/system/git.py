"""What git says about the repository that a person stands in: its hooks, and what is staged."""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_TIMEOUT_SECONDS: Final = 60.0


class NoRepository(Exception):
    """There is no git repository here, or no git."""


def hooks_folder(folder: Path, variables: Mapping[str, str]) -> Path:
    """Folder of the hooks of the repository that contains a folder."""
    output = _run_git(folder, variables, "rev-parse", "--git-path", "hooks")
    return folder / os.fsdecode(output.removesuffix(b"\n"))


def main_checkout(folder: Path, variables: Mapping[str, str]) -> Path | None:
    """Main checkout of the repository that a folder is a worktree of; None for a bare
    repository."""
    output = _run_git(folder, variables, "rev-parse", "--git-common-dir")
    common = folder / os.fsdecode(output.removesuffix(b"\n"))
    return common.parent if common.name == ".git" else None


def staged_files(folder: Path, variables: Mapping[str, str]) -> list[str]:
    """Paths that the next commit would change, relative to the root of the repository."""
    # Outside of a repository `git diff` compares other things, and prints its usage.
    _run_git(folder, variables, "rev-parse", "--git-dir")
    output = _run_git(folder, variables, "diff", "--cached", "--name-only", "--no-renames", "-z")
    return [os.fsdecode(path) for path in output.split(b"\0") if path]


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
