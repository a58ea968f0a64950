"""Commands that read tasks: list, show, log; log also writes a line when it is given one."""

from typing import Annotated

import typer

from dragoman.core.commands import NoteTask
from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import Status
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_stream
from dragoman.engine.reads.pages import Wanted
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.history_page import history_page
from dragoman.surfaces.cli.options import AsOfOption, FenceOption, LimitOption, TaskArgument
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.task.looking import look_at
from dragoman.surfaces.cli.task.pages import Page, page_as_of, page_now
from dragoman.surfaces.cli.task.view import COLUMNS, as_object, as_row, as_summary, print_page
from dragoman.surfaces.cli.verb import Verb


def list_tasks(
    call: Call,
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
) -> Answer:
    """List tasks, newest first, a page at a time.

    \b
    Examples:
      dragoman task list --status review
      dragoman task list --ready --json
    """
    if ready and status not in (None, "ready"):
        wrong_usage(f"--ready and --status {status} exclude each other: give one of them")
    wanted = Wanted("ready" if ready else status, assignee, ready, before, limit)
    with call.looking() as look:
        page = page_now(look, wanted) if as_of is None else page_as_of(look, wanted, as_of)
        _tell_end(call, look.store, as_of)
    tasks = [as_summary(shown) for shown in page.tasks]
    return Answer({"tasks": tasks, "next": page.next}, lambda screen: _print_list(page, screen))


def show(call: Call, task: TaskArgument, as_of: AsOfOption = None) -> Answer:
    """Show a task, by any of its names.

    \b
    Examples:
      dragoman task show TASK-2026-02-09-001
      dragoman task show bead:ol-527.1 --as-of 42 --json
    """
    with call.looking() as look:
        shown = look_at(look, task, as_of)
        _tell_end(call, look.store, as_of)
    return Answer(as_object(shown), lambda screen: print_page(shown, screen))


def _tell_end(call: Call, store: Store, as_of: int | None) -> None:
    if as_of is not None and as_of > (head := store.head()):
        call.err.line(f"the ledger ends at {head}: this is how things are now")


def log(
    call: Call,
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
) -> Answer:
    """Read a task's history; with a text, add a line to its work log.

    \b
    Examples:
      dragoman task log TASK-2026-02-09-001
      dragoman task log TASK-2026-02-09-001 "half of the tests pass" --as ada --fence 1
    """
    if text is not None:
        return _note(call, NoteTask(task, text, fence))
    if fence is not None:
        wrong_usage("--fence goes with a text: reading needs none")
    return _history(call, task, after, limit)


def _note(call: Call, note: NoteTask) -> Answer:
    with call.writing() as place:
        noted = place.hub.do(call.actor(place, call.speaker()), note).receipts[0].task
        shown = look_at(place.hub, noted)
    return Answer(as_object(shown), lambda screen: screen.line(f"noted in the log of {noted}"))


def _history(call: Call, task: str, after: int, limit: int) -> Answer:
    with call.looking() as look:
        store = look.store
        stream = find_stream(store, task)
        if isinstance(stream, Refusal):
            raise Refused(stream)
        entries = store.history(stream, after, limit + 1)
    return history_page({"id": stream.partition(":")[2]}, entries, limit)


def _print_list(page: Page, screen: Screen) -> None:
    if page.tasks:
        screen.table(COLUMNS, [as_row(shown.task) for shown in page.tasks])
    else:
        screen.line("no tasks")
    if page.next is not None:
        screen.line(f"There are more: add --before {page.next}")


VERBS = (
    Verb("list", list_tasks, speaks=False),
    Verb("show", show, speaks=False),
    Verb("log", log),
)
