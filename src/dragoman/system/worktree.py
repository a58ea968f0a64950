"""A git worktree for a task: its own folder and branch of a repository, kept between attempts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dragoman.system.spawn import run

_SECONDS: Final = 120.0
# What a repository says is run by git is not run here: agents can write there.
_QUIET: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


def open_worktree(
    repository: Path, at: Path, branch: str, base: str, variables: Mapping[str, str]
) -> Path:
    """The worktree at this path; made from `base` (else from HEAD) when there is none yet."""
    if (at / ".git").is_file():
        return at
    at.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _git(repository, variables, "worktree", "prune")
    known = _git(repository, variables, "branch", "--list", branch)
    made = (str(at), branch) if known else ("-b", branch, str(at), base or "HEAD")
    _git(repository, variables, "worktree", "add", *made)
    return at


def _git(repository: Path, variables: Mapping[str, str], *words: str) -> str:
    silent = {**variables, "GIT_TERMINAL_PROMPT": "0"}
    code, said = run(
        ("git", *_QUIET, "-C", str(repository), *words), b"", silent, repository, seconds=_SECONDS
    )
    text = said.decode(errors="replace").strip()
    if code:
        raise OSError(f"git {words[0]} {words[1]} in {repository}: {text.rpartition(chr(10))[2]}")
    return text
