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
"""Variables by which git would look into another repository than the one that is named."""
_MOST_BRANCHES: Final = 100
_MADE_BY: Final = "dragomanHub"
"""Under which key of a branch the repository's configuration says whose hub has made it."""
_COMMON: Final = ("rev-parse", "--git-common-dir")
"""Asks where a repository keeps what all of its worktrees share."""
_MAKING: Final = Lock()
_COMMIT: Final = re.compile("[0-9a-f]{4,64}", re.IGNORECASE)
# Agents can write where a repository keeps its hooks, so none is run here. Filters that its
# configuration names (as for large files) are: without them a checkout would not be what it says.
_QUIET: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Branch(Struct, frozen=True):
    """The branch that a new worktree is on."""

    name: str
    base: str
    """What it begins at; empty: what is checked out."""
    hub: str
    """Who makes it."""


def open_worktree(
    repository: Path,
    at: Path,
    branch: Branch,
    variables: Mapping[str, str],
    is_over: Callable[[], bool] = _PATIENCE.is_over,
) -> Path:
    """The worktree at this path; when there is none yet, one on this hub's branch of that name.

    Where one of another repository stands, the path has a number behind it. So has the name of the
    branch where there is one that this hub did not make: ids of tasks begin anew in every data
    directory. A new branch begins at its base; but where one of ours is checked out elsewhere, as
    by another hub of the same ledger, at that. A checkout may take long: when `is_over`, it is
    broken off with an InterruptedError.
    """
    at = _own_place(repository, at, variables)
    if (at / ".git").is_file():
        if not _is_half_made(at, variables):
            return at
        _git(repository, variables, "worktree", "remove", "--force", "--force", str(at))
    at.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _git(repository, variables, "worktree", "prune")
    # Git does not wait for whoever else writes the configuration just now.
    with _MAKING:
        own = _own_branch(repository, branch, variables)
    patience = replace(_PATIENCE, is_over=is_over)
    _git(repository, variables, "worktree", "add", str(at), own, patience=patience)
    return at


def _own_place(repository: Path, wanted: Path, variables: Mapping[str, str]) -> Path:
    """Where this repository has the worktree, or can have it: an agent of another repository may
    have been at the task before, and the data directory may have been moved.
    """
    whose = repository / _git(repository, variables, *_COMMON)
    for at in map(Path, _names(str(wanted))):
        if not (at / ".git").is_file():
            return at
        code, common = _try(at, variables, *_COMMON)
        if not code and (at / common).resolve() == whose.resolve():
            return at
    raise OSError(f"there are too many worktrees {wanted}-N: remove some of them")


def _is_half_made(at: Path, variables: Mapping[str, str]) -> bool:
    """Whether git was killed before all was checked out, by a power cut or for its time: it writes
    the index last. For git all that is missing is deleted, and the next commit would make it so.
    """
    code, index = _try(at, variables, "rev-parse", "--git-path", "index")
    return not code and not (at / index).exists()


def _own_branch(repository: Path, wanted: Branch, variables: Mapping[str, str]) -> str:
    """The branch that this hub has made, or makes now; the mark goes with it when it is deleted."""
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
    """The branches that a worktree has, which git gives to no second one."""
    _, listed = _try(repository, variables, "worktree", "list", "--porcelain")
    at = "branch refs/heads/"
    return frozenset(line.removeprefix(at) for line in listed.splitlines() if line.startswith(at))


def _names(wanted: str) -> Iterator[str]:
    """Names for a branch, the best one first."""
    yield wanted
    yield from (f"{wanted}-{number}" for number in range(2, _MOST_BRANCHES))


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


class BadRepository(DragomanError):
    """A repository that does not have what is asked of it; the detail says what to do."""

    code = "bad_repository"


class Checkout(Struct, frozen=True):
    """A commit of a repository, and what a person should know before a branch is made there."""

    commit: str
    is_dirty: bool
    """Whether something in the repository is not committed."""


def look_at_checkout(repository: Path, named: str, variables: Mapping[str, str]) -> Checkout:
    """The commit of this hash; BadRepository when it is not there."""
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
    """The name of a branch that stands at this commit, or that there is none of; and which of both.

    A branch that has gone on from the commit is left alone: the next name has a number behind it.
    So is one that a worktree has checked out, if this one is to be checked out next.
    """
    _refuse_if_in_the_way(repository, wanted, variables)
    taken = _checked_out(repository, variables) if is_checked_out_next else frozenset[str]()
    for name in _names(wanted):
        code, at = _try(repository, variables, "rev-parse", "-q", "--verify", f"refs/heads/{name}")
        if code or (at == commit and name not in taken):
            return name, not code
    raise BadRepository(f"{repository} has too many branches {wanted}-N: remove some of them")


def _refuse_if_in_the_way(repository: Path, wanted: str, variables: Mapping[str, str]) -> None:
    """Git keeps branches as files: where one has the name of a folder, there is no such folder."""
    folder = wanted.rpartition("/")[0]
    code, _ = _try(repository, variables, "rev-parse", "-q", "--verify", f"refs/heads/{folder}")
    if not code:
        raise BadRepository(
            f"{repository} has a branch {folder}, so that none can be called {wanted}: rename it "
            f"(`git branch -m {folder} NAME`), or rewind the task alone with --task-only"
        )


def make_branch(repository: Path, name: str, commit: str, variables: Mapping[str, str]) -> None:
    """A branch at a commit; nothing is checked out."""
    with _explained(repository):
        _git(repository, variables, "branch", "--no-track", name, commit)


def drop_branch(repository: Path, name: str, commit: str, variables: Mapping[str, str]) -> None:
    """Take back a branch that was just made, unless it has gone on from its commit."""
    _try(repository, variables, "update-ref", "-d", f"refs/heads/{name}", commit)


def check_out_beside(repository: Path, at: Path, branch: str, variables: Mapping[str, str]) -> None:
    """A branch that exists, checked out into a folder that does not."""
    if at.exists():
        raise BadRepository(f"{at} exists already: name a folder that does not")
    with _explained(repository):
        _git(repository, variables, "worktree", "add", str(at.absolute()), branch)


def take_back_worktree(repository: Path, at: Path, variables: Mapping[str, str]) -> None:
    """Remove a worktree that was just made, unless somebody has put something into it."""
    _try(repository, variables, "worktree", "remove", str(at.absolute()))


@contextmanager
def _explained(repository: Path) -> Generator[None]:
    """What git could not do, as a fault of the repository."""
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
