"""Branches of tasks: their differences, and merges that touch no file but in a clean checkout."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from dragoman.system.worktree import (
    BadRepository,
    as_bad_repository,
    find_worktree,
    run_git,
    try_git,
)

_BRANCH_PREFIX: Final = "refs/heads/"
_MAX_SHOWN: Final = 10
_MANY_LINES: Final = 20
_PLAIN_DIFF: Final = ("diff", "--no-color", "--no-ext-diff", "--no-textconv")


class TaskBranch(Struct, frozen=True):
    """The branch on which a task was worked, and its worktree, if that is still there."""

    repository: Path
    name: str
    commit: str
    worktree: Path | None


class Patch(Struct, frozen=True):
    """A difference as text, as far as it was asked for."""

    text: str
    is_complete: bool


class MergeConflict(Exception):
    """The branch cannot be merged; the text says why, and what to do."""


def find_task_branch(
    repository: Path, path: Path, name: str, variables: Mapping[str, str]
) -> TaskBranch:
    """Find what the worktree at this path has checked out, else the branch of this name."""
    with as_bad_repository(repository):
        worktree = _find_worktree(repository, path, variables)
        if worktree is not None:
            ref = run_git(worktree, variables, "rev-parse", "--symbolic-full-name", "HEAD")
            if not ref.startswith(_BRANCH_PREFIX):
                raise BadRepository(
                    f"{worktree} has no branch checked out: check out the one with the work there"
                )
            name = ref.removeprefix(_BRANCH_PREFIX)
        return TaskBranch(repository, name, find_tip(repository, name, variables), worktree)


def _find_worktree(repository: Path, path: Path, variables: Mapping[str, str]) -> Path | None:
    try:
        return find_worktree(repository, path, variables)
    except OSError:  # without a worktree, the branch may still be there
        return None


def find_tip(repository: Path, branch: str, variables: Mapping[str, str]) -> str:
    """Commit of a branch; BadRepository if there is no such branch."""
    code, commit = try_git(
        repository, variables, "rev-parse", "-q", "--verify", f"{_BRANCH_PREFIX}{branch}^{{commit}}"
    )
    if code:
        raise BadRepository(f"{repository} has no branch {branch}")
    return commit


def current_branch(repository: Path, variables: Mapping[str, str]) -> str:
    """Branch that the repository has checked out; empty for none."""
    code, ref = try_git(repository, variables, "symbolic-ref", "-q", "HEAD")
    return "" if code else ref.removeprefix(_BRANCH_PREFIX)


def is_branch(repository: Path, name: str, variables: Mapping[str, str]) -> bool:
    """True for the name of a branch."""
    ref = f"{_BRANCH_PREFIX}{name}"
    return not try_git(repository, variables, "rev-parse", "-q", "--verify", ref)[0]


def find_fork(repository: Path, one: str, other: str, variables: Mapping[str, str]) -> str:
    """The newest commit that two commits have in common."""
    with as_bad_repository(repository):
        return run_git(repository, variables, "merge-base", one, other)


def uncommitted_files(worktree: Path, variables: Mapping[str, str]) -> list[str]:
    """Paths in a worktree that are changed or new, and not committed."""
    with as_bad_repository(worktree):
        listed = run_git(
            worktree, variables, "status", "--porcelain", "--no-renames", "--untracked-files=all"
        )
    # Of a long list only the end is kept, and its first line may be cut.
    lines = listed.splitlines()[listed.count("\n") > _MANY_LINES :]
    return [line[2:].strip() for line in lines]


def make_patch(
    folder: Path, variables: Mapping[str, str], max_bytes: int, *revisions: str
) -> Patch:
    """The difference between two revisions, or of the files in a worktree from one."""
    with as_bad_repository(folder), TemporaryDirectory() as beside:
        file = Path(beside) / "patch"
        run_git(folder, variables, *_PLAIN_DIFF, f"--output={file}", *revisions, "--")
        with file.open("rb") as opened:
            data = opened.read(max_bytes + 1)
    return Patch(data[:max_bytes].decode(errors="replace"), len(data) <= max_bytes)


def merge_branch(
    branch: TaskBranch, into: str, message: str, author: str, variables: Mapping[str, str]
) -> str:
    """Merge into a branch, and return the commit; MergeConflict if it cannot be done as it is.

    The merge is made without files. Then the branch moves on, if it has not moved meanwhile; a
    clean checkout of it is brought along.
    """
    repository = branch.repository
    with as_bad_repository(repository):
        target = find_tip(repository, into, variables)
        if not try_git(repository, variables, "merge-base", "--is-ancestor", branch.commit, target)[
            0
        ]:
            raise MergeConflict(f"{into} has all of {branch.name} already: nothing was merged")
        checkout = _find_checkout(repository, into, variables)
        if checkout is not None:
            _check_clean(checkout, into, variables)
        tree = _merge_trees(branch, into, target, variables)
        person = {
            f"GIT_{role}_{field}": value
            for role in ("AUTHOR", "COMMITTER")
            for field, value in (("NAME", author), ("EMAIL", f"{author}@dragoman.invalid"))
        }
        parents = ("-p", target, "-p", branch.commit)
        merged = run_git(
            repository, {**variables, **person}, "commit-tree", tree, *parents, "-m", message
        )
        if checkout is not None:
            code, said = try_git(checkout, variables, "merge", "--ff-only", "-q", merged)
        else:
            ref = f"{_BRANCH_PREFIX}{into}"
            code, said = try_git(repository, variables, "update-ref", ref, merged, target)
        if code and find_tip(repository, into, variables) != target:
            raise MergeConflict(f"{into} has moved on meanwhile: run the merge again")
        if code:
            raise MergeConflict(f"{into} cannot be moved on: {said.rpartition(chr(10))[2]}")
    return merged


def _find_checkout(repository: Path, branch: str, variables: Mapping[str, str]) -> Path | None:
    """Folder in which a branch is checked out."""
    only = f"{_BRANCH_PREFIX}{branch}"
    folder = run_git(repository, variables, "for-each-ref", "--format=%(worktreepath)", only)
    return Path(folder) if folder else None


def _check_clean(checkout: Path, branch: str, variables: Mapping[str, str]) -> None:
    changed = run_git(checkout, variables, "status", "--porcelain", "--untracked-files=no")
    if changed:
        raise MergeConflict(
            f"{branch} is checked out in {checkout}, with changes that are not committed: commit "
            "or stash them there, or name another branch with --into"
        )


def _merge_trees(branch: TaskBranch, into: str, target: str, variables: Mapping[str, str]) -> str:
    code, output = try_git(
        branch.repository,
        variables,
        *("merge-tree", "--write-tree", "--name-only", "--no-messages", target, branch.commit),
    )
    tree, *conflicting = output.splitlines() or [""]
    if code == 1:
        raise MergeConflict(
            f"{branch.name} does not merge cleanly into {into}: {list_some(conflicting)} changed "
            f"on both sides; merge {into} into {branch.name} first, in its worktree"
        )
    if code:
        raise OSError(f"git merge-tree in {branch.repository}: {output.rpartition(chr(10))[2]}")
    return tree


def list_some(names: list[str]) -> str:
    """List some names, and how many more there are."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - _MAX_SHOWN
    return ", ".join(unique[:_MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")
