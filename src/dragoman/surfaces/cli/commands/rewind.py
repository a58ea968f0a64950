"""`dragoman rewind`: return a task, and the files of its repository, to an earlier transition."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct

from dragoman.config import environment
from dragoman.core.attempt_state import TaskCheckpointed, TaskReported
from dragoman.core.errors import Refusal, Refused
from dragoman.core.task_state import FINAL_STATUSES, RewindTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.tasks import RewindPreview, find_task, preview_rewind
from dragoman.surfaces.cli.command import CliCommand, ReasonOption, TaskArgument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen

_MAX_VALUE = 60


def rewind(
    context: CommandContext,
    task: TaskArgument,
    *,
    to: Annotated[
        str,
        option(
            "--to",
            "TRANSITION",
            "The id of its TASK_TRANSITION event, or its position in the ledger.",
        ),
    ] = "",
    apply: Annotated[
        bool, option("--apply", "", "Apply the change; else it is only shown.")
    ] = False,
    repository: Annotated[
        Path | None,
        option("--repository", "DIR", "The git repository; else what [git] repository says."),
    ] = None,
    task_only: Annotated[bool, option("--task-only", "", "Leave the repository alone.")] = False,
    reason: ReasonOption = "",
) -> CommandResult:
    """Take a task back to an earlier transition.

    It shows what would change, and does it with --apply.

    A new entry makes the task what it was then: history stays, and what was in progress is ready.
    Its files of that moment are on a new branch at the commit that was checked out then; what is
    checked out now, and whatever is not committed, is not touched. `dragoman events --task ID`
    lists the transitions of a task.

    \b
    Examples:
      dragoman rewind TASK-2026-02-09-001 --to 12
      dragoman rewind TASK-2026-02-09-001 --to 12 --apply
    """
    if not to:
        raise_usage_error("say where to go back to, with --to TRANSITION")
    opening = context.open_for_writing() if apply else context.open_for_reading()
    with opening as directory:
        plan = _load_preview(directory, task, to)
        files = None if task_only else _plan_branch(directory, plan, repository)
        if apply:
            _apply(context, directory, plan, files, reason)
    return CommandResult(
        _to_dict(plan, files, applied=apply), lambda screen: _print_plan(plan, files, screen, apply)
    )


class _BranchPlan(Struct, frozen=True):
    """Branch that has, or would have, the files of the transition."""

    repository: Path
    commit: str
    branch: str
    exists: bool
    is_dirty: bool


def _load_preview(directory: DataDirectory, task: str, to: str) -> RewindPreview:
    found = find_task(directory.hub.store, task)
    plan = (
        found if isinstance(found, Refusal) else preview_rewind(directory.hub.store, found.task, to)
    )
    if isinstance(plan, Refusal):
        raise Refused(plan)
    return plan


def _plan_branch(
    directory: DataDirectory, plan: RewindPreview, repository: Path | None
) -> _BranchPlan | None:
    """Plan the branch in the repository; None: no commit or no repository is known."""
    from dragoman.system.worktree import inspect_checkout, pick_branch

    configured = directory.settings.git.repository
    named_folder = repository or (directory.path / configured if configured else None)
    folder = None if named_folder is None else named_folder.resolve()
    commit_name = plan.task_then.head_hash
    if folder is None or not commit_name:
        return None
    checkout = inspect_checkout(folder, commit_name, environment())
    branch_name = f"rewind/{plan.task.id.replace('..', '-')}-{plan.transition.position}"
    branch, is_there = pick_branch(folder, branch_name, checkout.commit, environment())
    return _BranchPlan(folder, checkout.commit, branch, is_there, checkout.is_dirty)


def _apply(
    context: CommandContext,
    directory: DataDirectory,
    plan: RewindPreview,
    files: _BranchPlan | None,
    reason: str,
) -> None:
    from dragoman.system.worktree import create_branch, undo_branch

    variables = environment()
    if files is not None and not files.exists:
        create_branch(files.repository, files.branch, files.commit, variables)
    command = RewindTask(
        plan.task.id,
        plan.transition.version,
        files.commit if files else "",
        files.branch if files else "",
        reason,
    )
    try:
        directory.hub.submit(context.actor(directory, context.acting_agent()), command)
    except BaseException:
        if files is not None and not files.exists:
            undo_branch(files.repository, files.branch, files.commit, variables)
        raise


_NO_COMMIT = "no commit is on record for this transition"


def _to_dict(plan: RewindPreview, files: _BranchPlan | None, *, applied: bool) -> Mapping[str, Any]:
    at = plan.transition
    return {
        "task": plan.task.id,
        "applied": applied,
        "transition": {
            "position": at.position,
            "eventId": at.id,
            "at": to_rfc3339(at.at),
            "actor": at.actor,
            "from": at.from_,
            "to": at.to,
        },
        "from": plan.task.status,
        "status": plan.target.status,
        "changes": sorted(plan.changes),
        "handoff": plan.ended_handoff.id if plan.ended_handoff else None,
        "commit": (files.commit if files else plan.task_then.head_hash) or None,
        "repository": str(files.repository) if files else None,
        "branch": files.branch if files else None,
        "uncommittedChanges": files.is_dirty if files else None,
    }


def _print_plan(
    plan: RewindPreview, files: _BranchPlan | None, screen: Screen, applied: bool
) -> None:
    task, at = plan.task, plan.transition
    transition = f"{at.from_} → {at.to}" if at.from_ else f"created, {at.to}"
    screen.line(
        (task.id, "bold"), f"  as of {at.position}: {to_rfc3339(at.at)}, {at.actor}, {transition}"
    )
    if not plan.changes:
        screen.line("  it is as it was then: nothing is left to change")
    for name, (now, then) in plan.changes.items():
        if name not in _TIME_FIELDS:
            screen.line(f"  {name:<11} {_shorten(now)} → {_shorten(then)}")
    if at.to == "in-progress":
        screen.line("  it was in progress then; that work is over, so it becomes ready")
    if task.status == "in-progress":
        screen.line(f"  {task.assignee} works on it (attempt {task.attempts}) and loses it")
    if plan.ended_handoff is not None:
        ended = (
            f"{plan.ended_handoff.id} ({plan.ended_handoff.owner} → {plan.ended_handoff.recipient})"
        )
        screen.line(f"  handoff     {ended} is rejected by the hub and closed")
    if task.blocks and task.is_final and plan.target.status not in FINAL_STATUSES:
        screen.line(f"  waiting     again, unless it has ended: {', '.join(task.blocks)}")
    _print_branch(plan, files, screen, applied)
    if not applied:
        screen.line("Nothing was changed; add --apply to do it.")


def _print_branch(
    plan: RewindPreview, files: _BranchPlan | None, screen: Screen, applied: bool
) -> None:
    if files is None:
        known = plan.task_then.head_hash
        screen.line(f"  files       {f'commit {known}; left alone' if known else _NO_COMMIT}")
        return
    existing_note = " (it is there already)" if files.exists else ""
    verb = "are" if applied or files.exists else "would be"
    screen.line(f"  commit      {files.commit}")
    screen.line(
        f"  files       {verb} on the branch {files.branch}{existing_note} of {files.repository}"
    )
    if files.is_dirty:
        screen.line("  what is not committed there stays as it is")


_TIME_FIELDS = frozenset({"reported_at", "checkpointed_at"})
"""Times that change together with the report and the checkpoint shown beside them."""


def _shorten(value: object) -> str:
    if isinstance(value, TaskReported):
        reporter = f"the {value.by}" if value.by else value.agent
        text = f"{value.outcome} by {reporter}{': ' * bool(value.notes)}{value.notes}"
    elif isinstance(value, TaskCheckpointed):
        text = f"left off: {value.reason}"
    else:
        text = "-" if value in ("", None) else f"{value}"
    return text if len(text) <= _MAX_VALUE else f"{text[:_MAX_VALUE]}…"


COMMANDS = (CliCommand("rewind", rewind),)
