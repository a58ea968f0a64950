"""Branches of tasks over HTTP: what the work has changed, and merging it."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.schemas.task_diff import BranchName, GivenBranch, TaskDiff, TaskMerge
from dragoman.files.task_branches import TaskBranches
from dragoman.surfaces.http.context import Call
from dragoman.surfaces.http.endpoint import Body, Endpoint, Query
from dragoman.system.worktree import BadRepository

T = TypeVar("T")


class DiffQuery(Query, frozen=True):
    """The branch to compare with."""

    into: GivenBranch = ""


class MergeBody(Body, frozen=True):
    """The branch to merge into."""

    into: BranchName = ""


async def show_diff(call: Call) -> TaskDiff:
    """Show what the work on a task has changed in its repository."""
    name, into, actor = call.path_params["name"], call.query.into, call.principal.actor
    return await _with_branches(call, lambda branches: branches.diff(name, into, actor))


async def merge_branch(call: Call) -> TaskMerge:
    """Merge the branch of a task, and record the commit."""
    name, into, actor = call.path_params["name"], call.body.into, call.principal.actor
    return await _with_branches(call, lambda branches: branches.merge(name, into, actor))


async def _with_branches(call: Call, work: Callable[[TaskBranches], T]) -> T:
    """Work on branches in a thread: git takes its time."""
    branches = call.context.deps.task_branches
    if branches is None:
        raise Refused(Refusal("bad_repository", "this hub has no repository"))
    try:
        return await asyncio.to_thread(work, branches)
    except BadRepository as error:
        raise Refused(Refusal(error.code, error.detail)) from None


ENDPOINTS = (
    Endpoint("GET", "/v1/tasks/{name}/diff", show_diff, TaskDiff, query=DiffQuery),
    Endpoint("POST", "/v1/tasks/{name}/merge", merge_branch, TaskMerge, body=MergeBody),
)
