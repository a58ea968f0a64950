"""Commands that read tasks: list, show, log; log also writes a line when it is given one."""

from typing import Annotated

import typer

from dragoman.core.commands import NoteTask
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import Status
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task_stream
from dragoman.engine.reads.pages import TaskFilter
from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.history_page import history_result
from dragoman.surfaces.cli.options import AsOfOption, FenceOption, LimitOption, TaskArgument
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.task.looking import load_task
from dragoman.surfaces.cli.task.pages import TaskPage, current_page, past_page
from dragoman.surfaces.cli.task.view import (
    TASK_COLUMNS,
    print_task,
    task_row,
    task_to_dict,
    task_to_summary,
)
from dragoman.surfaces.cli.verb import CliCommand


def list_tasks(
    context: CommandContext,
    *,
    status: Annotated[
        Status | None, typer.Option("--status", show_default=False, help="Only in this status.")
    ] = None,
    assignee: Annotated[
        str,
        typer.Option("--assignee", metavar="NAME", show_default=False, help="Only this agent's."),
    ] = "",
    ready: Annotated[
        bool, typer.Option("--ready", help="Only what can be claimed now: ready, due, not waiting.")
    ] = False,
    limit: LimitOption = 50,
    before: Annotated[
        int | None,
        typer.Option(
            "--before",
            metavar="CURSOR",
            min=0,
            show_default=False,
            help="Go on with the next page, from where the last one says.",
        ),
    ] = None,
    as_of: AsOfOption = None,
) -> CommandResult:
    """List tasks, newest first, a page at a time.

    \b
    Examples:
      dragoman task list --status review
      dragoman task list --ready --json
    """
    if ready and status not in (None, "ready"):
        raise_usage_error(f"--ready and --status {status} exclude each other: give one of them")
    filters = TaskFilter("ready" if ready else status, assignee, ready, before, limit)
    with context.open_readonly() as directory:
        page = (
            current_page(directory, filters)
            if as_of is None
            else past_page(directory, filters, as_of)
        )
        _note_ledger_end(context, directory.store, as_of)
    tasks = [task_to_summary(shown) for shown in page.tasks]
    return CommandResult(
        {"tasks": tasks, "next": page.next}, lambda screen: _print_tasks(page, screen)
    )


def show(context: CommandContext, task: TaskArgument, as_of: AsOfOption = None) -> CommandResult:
    """Show a task, by any of its names.

    \b
    Examples:
      dragoman task show TASK-2026-02-09-001
      dragoman task show bead:ol-527.1 --as-of 42 --json
    """
    with context.open_readonly() as directory:
        shown = load_task(directory, task, as_of)
        _note_ledger_end(context, directory.store, as_of)
    return CommandResult(task_to_dict(shown), lambda screen: print_task(shown, screen))


def _note_ledger_end(context: CommandContext, store: Store, as_of: int | None) -> None:
    if as_of is not None and as_of > (head := store.head()):
        context.err.line(f"the ledger ends at {head}: this is how things are now")


def log(
    context: CommandContext,
    task: TaskArgument,
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", show_default=False, help="A line for the work log."),
    ] = None,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="Begin after the task's N-th entry.")
    ] = 0,
    limit: LimitOption = 200,
    fence: FenceOption = None,
) -> CommandResult:
    """Read a task's history; with a text, add a line to its work log.

    \b
    Examples:
      dragoman task log TASK-2026-02-09-001
      dragoman task log TASK-2026-02-09-001 "half of the tests pass" --as ada --fence 1
    """
    if text is not None:
        return _add_note(context, NoteTask(task, text, fence))
    if fence is not None:
        raise_usage_error("--fence goes with a text: reading needs none")
    return _read_history(context, task, after, limit)


def _add_note(context: CommandContext, note: NoteTask) -> CommandResult:
    with context.open_for_writing() as directory:
        noted = (
            directory.hub.submit(context.actor(directory, context.acting_agent()), note)
            .receipts[0]
            .task
        )
        shown = load_task(directory.hub, noted)
    return CommandResult(
        task_to_dict(shown), lambda screen: screen.line(f"noted in the log of {noted}")
    )


def _read_history(context: CommandContext, task: str, after: int, limit: int) -> CommandResult:
    with context.open_readonly() as directory:
        store = directory.store
        stream = find_task_stream(store, task)
        if isinstance(stream, Refusal):
            raise Refused(stream)
        entries = store.history(stream, after, limit + 1)
    return history_result({"id": stream.partition(":")[2]}, entries, limit)


def _print_tasks(page: TaskPage, screen: Screen) -> None:
    if page.tasks:
        screen.table(TASK_COLUMNS, [task_row(shown.task) for shown in page.tasks])
    else:
        screen.line("no tasks")
    if page.next is not None:
        screen.line(f"There are more: add --before {page.next}")


READ_COMMANDS = (
    CliCommand("list", list_tasks, takes_as=False),
    CliCommand("show", show, takes_as=False),
    CliCommand("log", log),
)
