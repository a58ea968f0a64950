"""Git worktrees and branches for tasks; the checked-out files are never touched."""

import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import DragomanError
from dragoman.system.process import Timeouts, run_program

_TIMEOUTS: Final = Timeouts(120.0)
_REPOSITORY_VARIABLES: Final = frozenset(
    {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"}
)
"""Variables by which git would use another repository than the one that is named."""
_MAX_BRANCHES: Final = 100
_HUB_CONFIG_KEY: Final = "dragomanHub"
"""Key of a branch in the repository's configuration that names the hub that created it."""
_COMMON_DIR_ARGS: Final = ("rev-parse", "--git-common-dir")
"""Asks for the folder that all worktrees of a repository share."""
_BRANCH_LOCK: Final = Lock()
_LINKS_OF_WORKTREE: Final = ("commondir", "gitdir", "config.worktree")
"""Files of a worktree by which git finds the repository and its settings."""
_TASK_BRANCHES: Final = "refs/heads/dragoman"
_COMMIT: Final = re.compile("[0-9a-f]{4,64}", re.IGNORECASE)
# Agents can write to the hooks folder of a repository, so no hook is run. Filters of its
# configuration (as for large files) are run: without them a checkout would be wrong.
_NO_HOOKS: Final = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")


class Branch(Struct, frozen=True):
    """Branch of a new worktree."""

    name: str
    base: str
    """Start of the branch; empty for HEAD."""
    hub: str
    """Id of the hub that creates it."""


def open_worktree(
    repository: Path,
    path: Path,
    branch: Branch,
    variables: Mapping[str, str],
    is_over: Callable[[], bool] = _TIMEOUTS.is_over,
) -> Path:
    """Path of a worktree on a branch of this hub; created when there is none yet.

    A number is appended to the path when a worktree of another repository is there, and to the
    branch name when another hub made that branch: task ids start over in every data directory. A
    new branch starts at its base; if one of ours is checked out elsewhere, as by another hub of the
    same ledger, it starts there. A checkout may take long: when `is_over`, it is broken off with an
    InterruptedError.
    """
    path = _find_path(repository, path, variables)
    if (path / ".git").is_file():
        if not _is_incomplete(path, variables):
            return path
        run_git(repository, variables, "worktree", "remove", "--force", "--force", str(path))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    run_git(repository, variables, "worktree", "prune")
    # Git does not wait for other writers of the configuration.
    with _BRANCH_LOCK:
        branch_name = _ensure_branch(repository, branch, variables)
    timeouts = replace(_TIMEOUTS, is_over=is_over)
    run_git(repository, variables, "worktree", "add", str(path), branch_name, timeouts=timeouts)
    return path


def _find_path(repository: Path, path: Path, variables: Mapping[str, str]) -> Path:
    """Path where this repository has the worktree, or can have it: an agent of another repository
    may have worked on the task before, and the data directory may have been moved."""
    common_dir = repository / run_git(repository, variables, *_COMMON_DIR_ARGS)
    for candidate in map(Path, _candidate_names(str(path))):
        if not (candidate / ".git").is_file():
            return candidate
        code, found = try_git(candidate, variables, *_COMMON_DIR_ARGS)
        if not code and (candidate / found).resolve() == common_dir.resolve():
            return candidate
    raise OSError(f"there are too many worktrees {path}-N: remove some of them")


def _is_incomplete(path: Path, variables: Mapping[str, str]) -> bool:
    """True when git was killed during the checkout: it writes the index last. Without an index git
    takes all missing files for deleted, and the next commit would delete them."""
    code, index = try_git(path, variables, "rev-parse", "--git-path", "index")
    return not code and not (path / index).exists()


def _ensure_branch(repository: Path, branch: Branch, variables: Mapping[str, str]) -> str:
    """Branch that this hub has made, or makes now; its mark is removed when the branch is
    deleted."""
    checked_out, base = _checked_out_branches(repository, variables), branch.base
    for name in _candidate_names(branch.name):
        mark = f"branch.{name}.{_HUB_CONFIG_KEY}"
        if try_git(repository, variables, "rev-parse", "-q", "--verify", f"refs/heads/{name}")[0]:
            run_git(repository, variables, "branch", "--", name, base or "HEAD")
            run_git(repository, variables, "config", "--local", mark, branch.hub)
            return name
        if try_git(repository, variables, "config", "--local", "--get", mark) == (0, branch.hub):
            if name not in checked_out:
                return name
            base = name
    raise OSError(f"{repository} has too many branches {branch.name}-N: remove some of them")


def _checked_out_branches(repository: Path, variables: Mapping[str, str]) -> frozenset[str]:
    """Branches that some worktree has checked out, which git does not check out twice."""
    _, listed = try_git(repository, variables, "worktree", "list", "--porcelain")
    prefix = "branch refs/heads/"
    return frozenset(
        line.removeprefix(prefix) for line in listed.splitlines() if line.startswith(prefix)
    )


def _candidate_names(name: str) -> Iterator[str]:
    """Candidate names, the preferred one first."""
    yield name
    yield from (f"{name}-{number}" for number in range(2, _MAX_BRANCHES))


def find_commit(repository: Path, commit: str, variables: Mapping[str, str]) -> str:
    """Full hash of a commit that an agent has named; empty when the repository has none such."""
    if not _COMMIT.fullmatch(commit):
        return ""
    code, text = try_git(
        repository, variables, "rev-parse", "--verify", "-q", f"{commit}^{{commit}}"
    )
    return "" if code else text


def fast_forward(
    worktree: Path,
    commit: str,
    variables: Mapping[str, str],
    wrap: Callable[[Sequence[str]], Sequence[str]] = lambda words: words,
) -> bool:
    """Fast-forward the worktree to a commit; True when it contains the commit afterwards.

    `wrap` has git work where its agent does: git follows links that an agent has made there.
    """
    code, _ = try_git(worktree, variables, "merge-base", "--is-ancestor", commit, "HEAD")
    if code:
        merge = ("merge", "--ff-only", "-q", commit)
        code, _ = try_git(worktree, variables, *merge, wrap=wrap)
    return not code


def find_worktree(repository: Path, path: Path, variables: Mapping[str, str]) -> Path:
    """Path of the worktree that `open_worktree` has made; OSError when there is none."""
    found = _find_path(repository, path, variables)
    if not (found / ".git").is_file():
        raise OSError(f"there is no worktree {path.name} of {repository}")
    return found


def describe_work(
    worktree: Path,
    variables: Mapping[str, str],
    wrap: Callable[[Sequence[str]], Sequence[str]] = lambda words: words,
) -> str:
    """Describe the commit of a worktree and what is changed since, but for files that git does not
    track."""
    _, commit = try_git(worktree, variables, "rev-parse", "HEAD", wrap=wrap)
    status = ("status", "--porcelain", "--untracked-files=no")
    _, changes = try_git(worktree, variables, *status, wrap=wrap)
    _, content = try_git(worktree, variables, "diff", "--numstat", "HEAD", wrap=wrap)
    return f"{commit}\n{changes}\n{content}"


class GitFolders(Struct, frozen=True):
    """Folders of a worktree and its repository, for a program that may commit and nothing else."""

    shown: Sequence[Path]
    """To read: the repository, without its checked-out files."""
    given: Sequence[Path]
    """To write: the worktree, objects, and branches of tasks."""
    locked: Sequence[Path]
    """To read, within `given`: they decide which repository and settings git takes."""


def list_git_folders(repository: Path, worktree: Path, variables: Mapping[str, str]) -> GitFolders:
    """List what a program needs of the repository to commit in its worktree."""
    common = (repository / run_git(repository, variables, *_COMMON_DIR_ARGS)).resolve()
    own = Path(run_git(worktree, variables, "rev-parse", "--absolute-git-dir")).resolve()
    if own.parent != common / "worktrees":
        raise OSError(f"{worktree} is no worktree of {repository}: remove it (git worktree remove)")
    branch = run_git(worktree, variables, "rev-parse", "--symbolic-full-name", "HEAD")
    log, branches = common / "logs" / branch, common / _TASK_BRANCHES
    branches.mkdir(parents=True, exist_ok=True)
    has_log = branch.startswith(f"{_TASK_BRANCHES}/") and log.is_file()
    (own / _LINKS_OF_WORKTREE[-1]).touch()
    return GitFolders(
        shown=(common,),
        given=(worktree, common / "objects", branches, own, *([log] if has_log else [])),
        locked=(worktree / ".git", *(own / name for name in _LINKS_OF_WORKTREE)),
    )


class BadRepository(DragomanError):
    """A repository that cannot do what was requested; the detail says what to do."""

    code = "bad_repository"


class Checkout(Struct, frozen=True):
    """A commit of a repository, and what a person should know before a branch is made there."""

    commit: str
    is_dirty: bool
    """True when the repository has uncommitted changes."""


def inspect_checkout(repository: Path, commit_hash: str, variables: Mapping[str, str]) -> Checkout:
    """Find the commit of this hash; BadRepository when it is missing."""
    with as_bad_repository(repository):
        changed = run_git(repository, variables, "status", "--porcelain", "--no-renames")
        commit = find_commit(repository, commit_hash, variables)
    if commit:
        return Checkout(commit, bool(changed))
    raise BadRepository(
        f"{repository} has no commit {commit_hash}: fetch it (`git fetch --all`, in a shallow "
        "clone `git fetch --unshallow`), name another repository, or rewind the task alone with "
        "--task-only"
    )


def pick_branch(
    repository: Path, base_name: str, commit: str, variables: Mapping[str, str]
) -> tuple[str, bool]:
    """Name of a branch at this commit, or a free name; and True if that branch exists.

    A branch that has moved on from the commit is left alone: a number is appended to the name.
    """
    for name in _candidate_names(base_name):
        code, head = try_git(
            repository, variables, "rev-parse", "-q", "--verify", f"refs/heads/{name}"
        )
        if code or head == commit:
            return name, not code
    raise BadRepository(f"{repository} has too many branches {base_name}-N: remove some of them")


def create_branch(repository: Path, name: str, commit: str, variables: Mapping[str, str]) -> None:
    """Create a branch at a commit, without a checkout."""
    with as_bad_repository(repository):
        run_git(repository, variables, "branch", "--no-track", name, commit)


def undo_branch(repository: Path, name: str, commit: str, variables: Mapping[str, str]) -> None:
    """Delete a branch that was just created, unless it has moved on from its commit."""
    try_git(repository, variables, "update-ref", "-d", f"refs/heads/{name}", commit)


@contextmanager
def as_bad_repository(repository: Path) -> Generator[None]:
    """Convert errors of git to BadRepository."""
    try:
        yield
    except OSError as error:
        raise BadRepository(_explain(repository, error)) from error


def _explain(repository: Path, error: OSError) -> str:
    if not repository.is_dir():
        return (
            f"there is no folder {repository}: name the repository with --repository or in [git] "
            "repository, or rewind the task alone with --task-only"
        )
    if isinstance(error, FileNotFoundError):
        return "there is no git on the PATH: install it, or rewind the task alone with --task-only"
    is_one = not try_git(repository, {}, "rev-parse", "--git-dir")[0]
    return f"{error}" if is_one else f"{error}; is {repository} a git repository?"


def run_git(
    repository: Path, variables: Mapping[str, str], *args: str, timeouts: Timeouts = _TIMEOUTS
) -> str:
    """Run git without hooks, and return its output; OSError if it fails."""
    code, text = try_git(repository, variables, *args, timeouts=timeouts)
    if code:
        raise OSError(f"git {args[0]} {args[1]} in {repository}: {text.rpartition(chr(10))[2]}")
    return text


def try_git(
    repository: Path,
    variables: Mapping[str, str],
    *args: str,
    timeouts: Timeouts = _TIMEOUTS,
    wrap: Callable[[Sequence[str]], Sequence[str]] = lambda words: words,
) -> tuple[int, str]:
    """Run git without hooks; its exit code and output."""
    own = {name: value for name, value in variables.items() if name not in _REPOSITORY_VARIABLES}
    environment = {**own, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    words = wrap(("git", *_NO_HOOKS, "-C", str(repository), *args))
    code, output = run_program(words, b"", environment, repository, timeouts)
    return code, output.decode(errors="replace").strip()
