"""`dragoman rewind`: a task, and the files of its repository, as they were at a transition."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from msgspec import Struct

from dragoman.config import environment
from dragoman.core.commands import RewindTask
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import TaskCheckpointed, TaskReported
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.task import FINAL
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.rewind import Preview, preview
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.options import ReasonOption, TaskArgument
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

_LONGEST = 60


def rewind(
    call: Call,
    task: TaskArgument,
    *,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="TRANSITION",
            show_default=False,
            help="The id of its TASK_TRANSITION event, or its position in the ledger.",
        ),
    ] = "",
    apply: Annotated[
        bool, typer.Option("--apply", help="Apply the change; else it is only shown.")
    ] = False,
    repository: Annotated[
        Path | None,
        typer.Option(
            "--repository",
            metavar="DIR",
            show_default=False,
            help="The git repository; else what [git] repository says.",
        ),
    ] = None,
    worktree: Annotated[
        Path | None,
        typer.Option(
            "--worktree",
            metavar="DIR",
            show_default=False,
            help="Check the files of that moment out into this new folder, too.",
        ),
    ] = None,
    task_only: Annotated[
        bool, typer.Option("--task-only", help="Leave the repository alone.")
    ] = False,
    reason: ReasonOption = "",
) -> Answer:
    """Take a task back to an earlier transition.

    It shows what would change, and does it with --apply.

    A new entry makes the task what it was then: history stays, and what was in progress is ready.
    Its files of that moment are on a new branch at the commit that was checked out then; what is
    checked out now, and whatever is not committed, is not touched. `dragoman events --task ID`
    lists the transitions of a task.

    \b
    Examples:
      dragoman rewind TASK-2026-02-09-001 --to 12
      dragoman rewind TASK-2026-02-09-001 --to 12 --apply --worktree ../as-it-was
    """
    if not to:
        wrong_usage("say where to go back to, with --to TRANSITION")
    if task_only and worktree is not None:
        wrong_usage("--task-only and --worktree exclude each other: give one of them")
    opened = call.writing(makes=False) if apply else call.reading()
    with opened as place:
        seen = _look(place, task, to)
        files = None if task_only else _files(place, seen, repository, worktree)
        if apply:
            _apply(call, place, seen, files, reason)
    return Answer(
        _told(seen, files, applied=apply), lambda screen: _show(seen, files, screen, apply)
    )


class _Files(Struct, frozen=True):
    """Branch that has, or would have, the files of the transition."""

    repository: Path
    commit: str
    branch: str
    is_there: bool
    is_dirty: bool
    worktree: Path | None = None


def _look(place: Place, task: str, to: str) -> Preview:
    found = find_task(place.hub.store, task)
    seen = found if isinstance(found, Refusal) else preview(place.hub.store, found.task, to)
    if isinstance(seen, Refusal):
        raise Refused(seen)
    return seen


def _files(
    place: Place, seen: Preview, repository: Path | None, worktree: Path | None
) -> _Files | None:
    """Plan the branch in the repository; None: no commit or no repository is known."""
    from dragoman.system.worktree import free_branch, look_at_checkout

    configured = place.settings.git.repository
    named_folder = repository or (place.data / configured if configured else None)
    folder = None if named_folder is None else named_folder.resolve()
    named = seen.past.head_hash
    if folder is None or not named:
        if worktree is not None:
            why = "no repository is configured: name one with --repository" if named else _NO_COMMIT
            wrong_usage(f"there are no files to put into {worktree}: {why}")
        return None
    found = look_at_checkout(folder, named, environment())
    wanted = f"rewind/{seen.task.id.replace('..', '-')}-{seen.transition.position}"
    branch, is_there = free_branch(
        folder, wanted, found.commit, environment(), is_checked_out_next=worktree is not None
    )
    return _Files(folder, found.commit, branch, is_there, found.is_dirty, worktree)


def _apply(call: Call, place: Place, seen: Preview, files: _Files | None, reason: str) -> None:
    from dragoman.system.worktree import (
        check_out_beside,
        drop_branch,
        make_branch,
        take_back_worktree,
    )

    variables = environment()
    if files is not None and not files.is_there:
        make_branch(files.repository, files.branch, files.commit, variables)
    command = RewindTask(
        seen.task.id,
        seen.transition.version,
        files.commit if files else "",
        files.branch if files else "",
        reason,
    )
    made = None
    try:
        if files is not None and files.worktree is not None:
            check_out_beside(files.repository, files.worktree, files.branch, variables)
            made = files.worktree
        place.hub.do(call.actor(place, call.speaker()), command)
    except BaseException:
        if files is not None and made is not None:
            take_back_worktree(files.repository, made, variables)
        if files is not None and not files.is_there:
            drop_branch(files.repository, files.branch, files.commit, variables)
        raise


_NO_COMMIT = "no commit is on record for this transition"


def _told(seen: Preview, files: _Files | None, *, applied: bool) -> Mapping[str, Any]:
    at = seen.transition
    return {
        "task": seen.task.id,
        "applied": applied,
        "transition": {
            "position": at.position,
            "eventId": at.id,
            "at": to_rfc3339(at.at),
            "actor": at.actor,
            "from": at.from_,
            "to": at.to,
        },
        "from": seen.task.status,
        "status": seen.wanted.status,
        "changes": sorted(seen.changes),
        "handoff": seen.handoff.id if seen.handoff else None,
        "commit": (files.commit if files else seen.past.head_hash) or None,
        "repository": str(files.repository) if files else None,
        "branch": files.branch if files else None,
        "worktree": str(files.worktree) if files and files.worktree else None,
        "dirty": files.is_dirty if files else None,
    }


def _show(seen: Preview, files: _Files | None, screen: Screen, applied: bool) -> None:
    task, at = seen.task, seen.transition
    came = f"{at.from_} → {at.to}" if at.from_ else f"created, {at.to}"
    screen.line(
        (task.id, "bold"), f"  as of {at.position}: {to_rfc3339(at.at)}, {at.actor}, {came}"
    )
    if not seen.changes:
        screen.line("  it is as it was then: nothing is left to change")
    for name, (now, then) in seen.changes.items():
        if name not in _MOMENTS:
            screen.line(f"  {name:<11} {_short(now)} → {_short(then)}")
    if at.to == "in-progress":
        screen.line("  it was in progress then; that work is over, so it becomes ready")
    if task.status == "in-progress":
        screen.line(f"  {task.assignee} works on it (attempt {task.attempts}) and loses it")
    if seen.handoff is not None:
        ended = f"{seen.handoff.id} ({seen.handoff.owner} → {seen.handoff.recipient})"
        screen.line(f"  handoff     {ended} is rejected by the hub and closed")
    if task.blocks and task.is_final and seen.wanted.status not in FINAL:
        screen.line(f"  waiting     again, unless it has ended: {', '.join(task.blocks)}")
    _show_files(seen, files, screen, applied)
    if not applied:
        screen.line("Nothing was changed; add --apply to do it.")


def _show_files(seen: Preview, files: _Files | None, screen: Screen, applied: bool) -> None:
    if files is None:
        known = seen.past.head_hash
        screen.line(f"  files       {f'commit {known}; left alone' if known else _NO_COMMIT}")
        return
    there = " (it is there already)" if files.is_there else ""
    made = "are" if applied or files.is_there else "would be"
    screen.line(f"  commit      {files.commit}")
    screen.line(f"  files       {made} on the branch {files.branch}{there} of {files.repository}")
    if files.worktree is not None:
        screen.line(f"  worktree    {files.worktree}")
    if files.is_dirty:
        screen.line("  what is not committed there stays as it is")


_MOMENTS = frozenset({"reported_at", "checkpointed_at"})
"""Times that change together with the report and the checkpoint shown beside them."""


def _short(value: object) -> str:
    if isinstance(value, TaskReported):
        whose = f"the {value.by}" if value.by else value.agent
        said = f"{value.outcome} by {whose}{': ' * bool(value.notes)}{value.notes}"
    elif isinstance(value, TaskCheckpointed):
        said = f"left off: {value.reason}"
    else:
        said = "-" if value in ("", None) else f"{value}"
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


VERBS = (Verb("rewind", rewind),)
