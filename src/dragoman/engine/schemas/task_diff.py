"""JSON shapes of the branch on which a task was worked: its difference, and a merge of it."""

from typing import Annotated

from msgspec import Struct

from dragoman.engine.schemas.name_formats import pattern_meta

BRANCH_PATTERN = r"[^\x00-\x20\x7f~^:?*\[\\]+"
"""Names that a branch can have at all."""

BranchName = Annotated[
    str,
    pattern_meta(
        f"(?:{BRANCH_PATTERN})?",
        200,
        "The other branch; empty: the base in the agent's settings, or what is checked out.",
    ),
]

GivenBranch = Annotated[
    str,
    pattern_meta(
        BRANCH_PATTERN, 200, "The other branch; else the agent's base, or what is checked out."
    ),
]


class TaskDiff(Struct, frozen=True, rename="camel"):
    """Difference of a task's branch from another one, and the uncommitted rest in its worktree."""

    task: str
    branch: str
    commit: str
    into: str
    base: str
    """The newest commit that both branches have."""
    patch: str
    """Committed changes since then."""
    uncommitted_patch: str
    """Changes of tracked files in the worktree that are not committed."""
    uncommitted: tuple[str, ...]
    """Files of the worktree that are changed or new, and not committed."""
    is_complete: bool
    """False if a patch was longer than is shown."""


class TaskMerge(Struct, frozen=True, rename="camel"):
    """A merge of the branch of a task."""

    task: str
    branch: str
    commit: str
    """The newest commit of the branch."""
    into: str
    merged: str
    """The commit of the merge."""
