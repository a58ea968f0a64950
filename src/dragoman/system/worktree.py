"""Git worktrees and branches for tasks: made beside what is checked out, which is never touched."""

import re
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import DragomanError
from dragoman.system.spawn import Patience, run

_PATIENCE: Final = Patience(120.0)
_ELSEWHERE: Final = frozenset({"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"})
"""Variables by which git would use another repository than the one that is named."""
_MOST_BRANCHES: Final = 100
_MADE_BY: Final = "dragomanHub"
"""Key of a branch in the repository's configuration that names the hub that created it."""
_COMMON: Final = ("rev-parse", "--git-common-dir")
"""Asks for the folder that all worktrees of a repository share."""
_MAKING: Final = Lock()
_COMMIT: Final = re.compile("[0-9a-f]{4,64}", re.IGNORECASE)
# Agents can write to the hooks folder of a repository, so no hook is run. Filters of its
# configuration (as for large files) are run: without them a checkout would be wrong.
_QUIET: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Branch(Struct, frozen=True):
    """Branch of a new worktree."""

    name: str
    base: str
    """Start of the branch; empty for HEAD."""
    hub: str
    """Id of the hub that creates it."""


def open_worktree(
    repository: Path,
    at: Path,
    branch: Branch,
    variables: Mapping[str, str],
    is_over: Callable[[], bool] = _PATIENCE.is_over,
) -> Path:
    """Path of a worktree on a branch of this hub; created when there is none yet.

    A number is appended to the path when a worktree of another repository is there, and to the
    branch name when another hub made that branch: task ids start over in every data directory. A
    new branch starts at its base; if one of ours is checked out elsewhere, as by another hub of the
    same ledger, it starts there. A checkout may take long: when `is_over`, it is broken off with an
    InterruptedError.
    """
    at = _own_place(repository, at, variables)
    if (at / ".git").is_file():
        if not _is_half_made(at, variables):
            return at
        _git(repository, variables, "worktree", "remove", "--force", "--force", str(at))
    at.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _git(repository, variables, "worktree", "prune")
    # Git does not wait for other writers of the configuration.
    with _MAKING:
        own = _own_branch(repository, branch, variables)
    patience = replace(_PATIENCE, is_over=is_over)
    _git(repository, variables, "worktree", "add", str(at), own, patience=patience)
    return at


def _own_place(repository: Path, wanted: Path, variables: Mapping[str, str]) -> Path:
    """Path where this repository has the worktree, or can have it: an agent of another repository
    may have worked on the task before, and the data directory may have been moved."""
    whose = repository / _git(repository, variables, *_COMMON)
    for at in map(Path, _names(str(wanted))):
        if not (at / ".git").is_file():
            return at
        code, common = _try(at, variables, *_COMMON)
        if not code and (at / common).resolve() == whose.resolve():
            return at
    raise OSError(f"there are too many worktrees {wanted}-N: remove some of them")


def _is_half_made(at: Path, variables: Mapping[str, str]) -> bool:
    """True when git was killed during the checkout: it writes the index last. Without an index git
    takes all missing files for deleted, and the next commit would delete them."""
    code, index = _try(at, variables, "rev-parse", "--git-path", "index")
    return not code and not (at / index).exists()


def _own_branch(repository: Path, wanted: Branch, variables: Mapping[str, str]) -> str:
    """Branch that this hub has made, or makes now; its mark is removed when the branch is
    deleted."""
    taken, base = _checked_out(repository, variables), wanted.base
    for name in _names(wanted.name):
        mark = f"branch.{name}.{_MADE_BY}"
        if _try(repository, variables, "rev-parse", "-q", "--verify", f"refs/heads/{name}")[0]:
            _git(repository, variables, "branch", "--", name, base or "HEAD")
            _git(repository, variables, "config", "--local", mark, wanted.hub)
            return name
        if _try(repository, variables, "config", "--local", "--get", mark) == (0, wanted.hub):
            if name not in taken:
                return name
            base = name
    raise OSError(f"{repository} has too many branches {wanted.name}-N: remove some of them")


def _checked_out(repository: Path, variables: Mapping[str, str]) -> frozenset[str]:
    """Branches that some worktree has checked out, which git does not check out twice."""
    _, listed = _try(repository, variables, "worktree", "list", "--porcelain")
    at = "branch refs/heads/"
    return frozenset(line.removeprefix(at) for line in listed.splitlines() if line.startswith(at))


def _names(wanted: str) -> Iterator[str]:
    """Candidate names, the preferred one first."""
    yield wanted
    yield from (f"{wanted}-{number}" for number in range(2, _MOST_BRANCHES))


def find_commit(repository: Path, named: str, variables: Mapping[str, str]) -> str:
    """Full hash of a commit that an agent has named; empty when the repository has none such."""
    if not _COMMIT.fullmatch(named):
        return ""
    code, text = _try(repository, variables, "rev-parse", "--verify", "-q", f"{named}^{{commit}}")
    return "" if code else text


def go_on_from(worktree: Path, commit: str, variables: Mapping[str, str]) -> bool:
    """Fast-forward the worktree to a commit; True when it contains the commit afterwards."""
    code, _ = _try(worktree, variables, "merge-base", "--is-ancestor", commit, "HEAD")
    if code:
        code, _ = _try(worktree, variables, "merge", "--ff-only", "-q", commit)
    return not code


class BadRepository(DragomanError):
    """A repository that cannot do what was requested; the detail says what to do."""

    code = "bad_repository"


class Checkout(Struct, frozen=True):
    """A commit of a repository, and what a person should know before a branch is made there."""

    commit: str
    is_dirty: bool
    """True when the repository has uncommitted changes."""


def look_at_checkout(repository: Path, named: str, variables: Mapping[str, str]) -> Checkout:
    """Find the commit of this hash; BadRepository when it is missing."""
    with _explained(repository):
        changed = _git(repository, variables, "status", "--porcelain", "--no-renames")
        shallow = _git(repository, variables, "rev-parse", "--is-shallow-repository") == "true"
        commit = find_commit(repository, named, variables)
    if commit:
        return Checkout(commit, bool(changed))
    if shallow:
        raise BadRepository(
            f"{repository} is a shallow clone and does not reach back to the commit {named}: run "
            "`git fetch --unshallow` there, or rewind the task alone with --task-only"
        )
    raise BadRepository(
        f"{repository} has no commit {named}: fetch it if another clone has it (`git fetch --all`),"
        " name another repository, or rewind the task alone with --task-only"
    )


def free_branch(
    repository: Path,
    wanted: str,
    commit: str,
    variables: Mapping[str, str],
    *,
    is_checked_out_next: bool = False,
) -> tuple[str, bool]:
    """Name of a branch at this commit, or a free name; and True if that branch exists.

    A branch that has moved on from the commit is left alone: a number is appended to the name. So
    is one that a worktree has checked out, if this one is to be checked out next.
    """
    _refuse_if_in_the_way(repository, wanted, variables)
    taken = _checked_out(repository, variables) if is_checked_out_next else frozenset[str]()
    for name in _names(wanted):
        code, at = _try(repository, variables, "rev-parse", "-q", "--verify", f"refs/heads/{name}")
        if code or (at == commit and name not in taken):
            return name, not code
    raise BadRepository(f"{repository} has too many branches {wanted}-N: remove some of them")


def _refuse_if_in_the_way(repository: Path, wanted: str, variables: Mapping[str, str]) -> None:
    """Raise if a parent of the branch name is a branch: git stores branches as files and
    folders."""
    folder = wanted.rpartition("/")[0]
    code, _ = _try(repository, variables, "rev-parse", "-q", "--verify", f"refs/heads/{folder}")
    if not code:
        raise BadRepository(
            f"{repository} has a branch {folder}, so that none can be called {wanted}: rename it "
            f"(`git branch -m {folder} NAME`), or rewind the task alone with --task-only"
        )


def make_branch(repository: Path, name: str, commit: str, variables: Mapping[str, str]) -> None:
    """Create a branch at a commit, without a checkout."""
    with _explained(repository):
        _git(repository, variables, "branch", "--no-track", name, commit)


def drop_branch(repository: Path, name: str, commit: str, variables: Mapping[str, str]) -> None:
    """Delete a branch that was just created, unless it has moved on from its commit."""
    _try(repository, variables, "update-ref", "-d", f"refs/heads/{name}", commit)


def check_out_beside(repository: Path, at: Path, branch: str, variables: Mapping[str, str]) -> None:
    """Check an existing branch out into a new folder."""
    if at.exists():
        raise BadRepository(f"{at} exists already: name a folder that does not")
    with _explained(repository):
        _git(repository, variables, "worktree", "add", str(at.absolute()), branch)


def take_back_worktree(repository: Path, at: Path, variables: Mapping[str, str]) -> None:
    """Remove a worktree that was just created, unless somebody has put something into it."""
    _try(repository, variables, "worktree", "remove", str(at.absolute()))


@contextmanager
def _explained(repository: Path) -> Generator[None]:
    """Convert errors of git to BadRepository."""
    try:
        yield
    except OSError as error:
        raise BadRepository(_why(repository, error)) from error


def _why(repository: Path, error: OSError) -> str:
    if not repository.is_dir():
        return (
            f"there is no folder {repository}: name the repository with --repository or in [git] "
            "repository, or rewind the task alone with --task-only"
        )
    if isinstance(error, FileNotFoundError):
        return "there is no git on the PATH: install it, or rewind the task alone with --task-only"
    is_one = not _try(repository, {}, "rev-parse", "--git-dir")[0]
    return f"{error}" if is_one else f"{error}; is {repository} a git repository?"


def _git(
    repository: Path, variables: Mapping[str, str], *words: str, patience: Patience = _PATIENCE
) -> str:
    code, text = _try(repository, variables, *words, patience=patience)
    if code:
        raise OSError(f"git {words[0]} {words[1]} in {repository}: {text.rpartition(chr(10))[2]}")
    return text


def _try(
    repository: Path, variables: Mapping[str, str], *words: str, patience: Patience = _PATIENCE
) -> tuple[int, str]:
    here = {name: value for name, value in variables.items() if name not in _ELSEWHERE}
    silent = {**here, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    code, said = run(
        ("git", *_QUIET, "-C", str(repository), *words), b"", silent, repository, patience
    )
    return code, said.decode(errors="replace").strip()
