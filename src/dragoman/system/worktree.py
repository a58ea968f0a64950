"""A git worktree for a task: its own folder and branch of a repository, kept between attempts."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dragoman.system.spawn import run

_SECONDS: Final = 120.0
_COMMIT: Final = re.compile("[0-9a-f]{4,64}", re.IGNORECASE)
# Agents can write where a repository keeps its hooks, so none is run here. Filters that its
# configuration names (as for large files) are: without them a checkout would not be what it says.
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


def find_commit(repository: Path, named: str, variables: Mapping[str, str]) -> str:
    """The commit that an agent has named by its hash; empty: the repository has none such."""
    if not _COMMIT.fullmatch(named):
        return ""
    code, text = _try(repository, variables, "rev-parse", "--verify", "-q", f"{named}^{{commit}}")
    return "" if code else text


def go_on_from(worktree: Path, commit: str, variables: Mapping[str, str]) -> bool:
    """Whether the worktree has this commit, once it was brought forward where nothing is lost."""
    code, _ = _try(worktree, variables, "merge-base", "--is-ancestor", commit, "HEAD")
    if code:
        code, _ = _try(worktree, variables, "merge", "--ff-only", "-q", commit)
    return not code


def _git(repository: Path, variables: Mapping[str, str], *words: str) -> str:
    code, text = _try(repository, variables, *words)
    if code:
        raise OSError(f"git {words[0]} {words[1]} in {repository}: {text.rpartition(chr(10))[2]}")
    return text


def _try(repository: Path, variables: Mapping[str, str], *words: str) -> tuple[int, str]:
    silent = {**variables, "GIT_TERMINAL_PROMPT": "0"}
    code, said = run(
        ("git", *_QUIET, "-C", str(repository), *words), b"", silent, repository, seconds=_SECONDS
    )
    return code, said.decode(errors="replace").strip()
