"""Branches of tasks, on which agents with a repository work: their differences, and merges.

The repository is that of the settings of whoever worked on the task last. A merge is recorded with
its commit in the work log of the task.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dragoman.config import AgentSettings, Settings, environment
from dragoman.core.actor import Actor
from dragoman.core.errors import Refusal, Refused, StoreUnavailable
from dragoman.core.ids import safe_name
from dragoman.core.task_state import NoteTask, Task
from dragoman.engine.hub import Hub
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.schemas.task_diff import BRANCH_PATTERN, TaskDiff, TaskMerge
from dragoman.system.branch_merge import (
    MergeConflict,
    Patch,
    TaskBranch,
    current_branch,
    find_fork,
    find_task_branch,
    find_tip,
    is_branch,
    list_some,
    make_patch,
    merge_branch,
    uncommitted_files,
)
from dragoman.system.worktree import BadRepository

_MAX_PATCH_BYTES: Final = 1_048_576
_MAY_READ: Final = ("human", "orchestrator", "coordinator")
_MAY_MERGE: Final = ("human", "orchestrator")


class TaskBranches:
    """The branches of the tasks of a data directory."""

    def __init__(self, data: Path, settings: Settings, hub: Hub) -> None:
        self._data = data
        self._settings = settings
        self._hub = hub

    def diff(self, name: str, into: str, actor: Actor) -> TaskDiff:
        """The difference of a task's branch and worktree; `into` empty: from where it began."""
        task = self._find_task(name)
        if actor.role not in _MAY_READ and actor.name not in (*task.agents, task.assignee):
            raise Refused(
                Refusal("not_authorized", f"{actor.label} may not read what others do on {task.id}")
            )
        branch, into = self._find_branch(task, into)
        variables, worktree = environment(), branch.worktree
        tip = find_tip(branch.repository, into, variables)
        base = find_fork(branch.repository, tip, branch.commit, variables)
        committed = make_patch(branch.repository, variables, _MAX_PATCH_BYTES, base, branch.commit)
        files, uncommitted = list[str](), Patch("", is_complete=True)
        if worktree is not None and (files := uncommitted_files(worktree, variables)):
            uncommitted = make_patch(worktree, variables, _MAX_PATCH_BYTES, "HEAD")
        return TaskDiff(
            task=task.id,
            branch=branch.name,
            commit=branch.commit,
            into=into,
            base=base,
            patch=self._mask(committed.text),
            uncommitted_patch=self._mask(uncommitted.text),
            uncommitted=tuple(files),
            is_complete=committed.is_complete and uncommitted.is_complete,
        )

    def merge(self, name: str, into: str, actor: Actor) -> TaskMerge:
        """Merge a task's branch; `into` empty: the branch from which it began."""
        task = self._find_task(name)
        if actor.role not in _MAY_MERGE or actor.task:
            raise Refused(
                Refusal(
                    "not_authorized",
                    f"{actor.label} may not merge; that is for people and orchestrators",
                )
            )
        if task.status == "in-progress":
            raise Refused(
                Refusal(
                    "already_claimed",
                    f"{task.assignee} works on {task.id}: merge when the attempt has ended",
                )
            )
        branch, into = self._find_branch(task, into)
        if branch.worktree is not None:
            _check_committed(task, branch.worktree)
        message = f"Merge {branch.name}: {task.title}\n\nTask {task.id}"
        try:
            merged = merge_branch(branch, into, message, actor.name, environment())
        except MergeConflict as conflict:
            raise Refused(Refusal("conflict_retry", f"{conflict}")) from None
        note = f"merged {branch.name} ({branch.commit}) into {into} as commit {merged}"
        try:
            self._hub.submit(actor, NoteTask(task.id, note))
        except (Refused, StoreUnavailable) as error:
            raise StoreUnavailable(f"{note}, but that could not be recorded: {error}") from error
        return TaskMerge(task.id, branch.name, branch.commit, into, merged)

    def _find_task(self, name: str) -> Task:
        view = find_task(self._hub.store, name)
        if isinstance(view, Refusal):
            raise Refused(view)
        return view.task

    def _find_branch(self, task: Task, into: str) -> tuple[TaskBranch, str]:
        """The branch of a task, and the one that it is compared with or merged into."""
        if into and re.fullmatch(BRANCH_PATTERN, into) is None:
            detail = f"into: {safe_name(into)} cannot be the name of a branch"
            raise Refused(Refusal("invalid_field", detail, path="into"))
        settings, variables = self._find_agent(task), environment()
        repository = self._data / settings.repository
        path = self._data.absolute() / "worktrees" / task.aof_id
        branch = find_task_branch(repository, path, f"dragoman/{task.aof_id}", variables)
        if not into and settings.base and is_branch(repository, settings.base, variables):
            into = settings.base
        into = into or current_branch(repository, variables)
        if not into:
            raise BadRepository(
                f"{repository} has no branch checked out: name the one to merge into with --into"
            )
        find_tip(repository, into, variables)
        return branch, into

    def _find_agent(self, task: Task) -> AgentSettings:
        """Settings of the agent with a repository that worked on the task last."""
        agents: Mapping[str, AgentSettings] = self._settings.agents
        for name in (task.assignee, *reversed(task.agents)):
            if name in agents and agents[name].repository:
                return agents[name]
        raise BadRepository(
            f"nobody with a repository in the settings has worked on {task.id}: [agents.NAME] "
            "repository gives the tasks of an agent a worktree"
        )

    def _mask(self, text: str) -> str:
        return self._hub.redaction.redactor.text(text).text


def _check_committed(task: Task, worktree: Path) -> None:
    changed = uncommitted_files(worktree, environment())
    if changed:
        raise Refused(
            Refusal(
                "conflict_retry",
                f"the worktree of {task.id} has changes that are not committed "
                f"({list_some(changed)} in {worktree}): commit or remove them there, or send the "
                "task back",
            )
        )
