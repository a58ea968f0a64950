"""`dragoman task`: diff, merge."""

from typing import Annotated

import msgspec

from dragoman.files.task_branches import TaskBranches
from dragoman.surfaces.cli.command import CliCommand, TaskArgument, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.data_directory import DataDirectory
from dragoman.surfaces.cli.render import Screen

IntoOption = Annotated[
    str,
    option(
        "--into",
        "BRANCH",
        "The other branch; else the base in the agent's settings, or what is checked out.",
    ),
]


def diff(context: CommandContext, task: TaskArgument, into: IntoOption = "") -> CommandResult:
    """Show what the work on a task has changed in its repository.

    For tasks of agents with a repository: what its branch adds, then what its worktree has that is
    not committed.

    \b
    Examples:
      dragoman task diff TASK-2026-02-09-001
      dragoman task diff TASK-2026-02-09-001 --into main | less
    """
    with context.open_for_reading() as directory:
        actor = context.actor(directory, context.acting_agent())
        found = _branches(directory).diff(task, into, actor)

    def show(screen: Screen) -> None:
        screen.line((found.branch, "bold"), f" from {found.into} at {found.base[:12]}")
        if not found.patch:
            screen.line("nothing is committed since then")
        screen.block(found.patch.rstrip("\n"), "")
        if found.uncommitted:
            screen.line(
                ("not committed: ", "yellow"), ", ".join(found.uncommitted), " in its worktree"
            )
            screen.block(found.uncommitted_patch.rstrip("\n"), "")
        if not found.is_complete:
            screen.line("… and more: look at it with git")

    return CommandResult(msgspec.to_builtins(found), show)


def merge(context: CommandContext, task: TaskArgument, into: IntoOption = "") -> CommandResult:
    """Merge the branch of a task.

    It is refused, with the reason, if it does not apply cleanly, if something in the worktree is
    not committed, or if the other branch is checked out somewhere with changes. A clean checkout of
    it is brought along. The commit of the merge stands in the task's work log.

    \b
    Examples:
      dragoman task merge TASK-2026-02-09-001
      dragoman task merge TASK-2026-02-09-001 --into release
    """
    with context.open_for_writing() as directory:
        actor = context.actor(directory, context.acting_agent())
        merged = _branches(directory).merge(task, into, actor)
    return CommandResult(
        msgspec.to_builtins(merged),
        lambda screen: screen.line(
            f"merged {merged.branch} into {merged.into} as commit {merged.merged}"
        ),
    )


def _branches(directory: DataDirectory) -> TaskBranches:
    return TaskBranches(directory.path, directory.settings, directory.hub)


COMMANDS = (CliCommand("diff", diff), CliCommand("merge", merge))
