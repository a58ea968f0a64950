"""`dragoman handoff list`, `show` and `timeline`: where handoffs stand and how they came there."""

from typing import Annotated

import typer
from msgspec import to_builtins

from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import HandoffStatus
from dragoman.core.ids import handoff_stream
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, closed_teamspaces, load_handoff
from dragoman.surfaces.cli.handoff.view import HANDOFF_COLUMNS, handoff_row, print_handoff
from dragoman.surfaces.cli.history_page import history_result
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand


def list_handoffs(
    context: CommandContext,
    *,
    status: Annotated[
        HandoffStatus | None,
        typer.Option("--status", show_default=False, help="Only in this state."),
    ] = None,
    task: Annotated[
        str,
        typer.Option(
            "--task", metavar="TASK", show_default=False, help="Only of this task, by any name."
        ),
    ] = "",
    sender: Annotated[
        str, typer.Option("--from", metavar="NAME", show_default=False, help="Only from this one.")
    ] = "",
    recipient: Annotated[
        str, typer.Option("--to", metavar="NAME", show_default=False, help="Only to this one.")
    ] = "",
    teamspace: Annotated[
        str,
        typer.Option("--teamspace", metavar="NAME", show_default=False, help="Only of this one."),
    ] = "",
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
    limit: LimitOption = 50,
) -> CommandResult:
    """List handoffs, newest first, a page at a time.

    Drafts are listed with --status draft, for their author (--as NAME, or --from NAME).

    \b
    Examples:
      dragoman handoff list --status proposed --to bob
      dragoman handoff list --task TASK-2026-02-09-001 --json
    """
    from dragoman.engine.reads.handoffs import END_OF_LIST, HandoffFilter, handoff_page
    from dragoman.engine.shown.handoffs import handoff_summary

    with context.open_for_reading() as directory:
        filters = HandoffFilter(
            status=status,
            task=task,
            sender=sender,
            recipient=recipient,
            teamspace=teamspace,
            reader=context.acting_agent(),
            hidden_teamspaces=closed_teamspaces(context, directory),
            before=END_OF_LIST if before is None else before,
            limit=limit,
        )
        page, now = handoff_page(directory.hub.store, filters), directory.hub.clock.now()
    if isinstance(page, Refusal):
        raise Refused(page)
    rows = [to_builtins(handoff_summary(one)) for one in page.handoffs]

    def show(screen: Screen) -> None:
        if page.handoffs:
            screen.table(HANDOFF_COLUMNS, [handoff_row(one, now) for one in page.handoffs])
        else:
            screen.line("no handoffs")
        if page.next is not None:
            screen.line(f"There may be more: add --before {page.next}")

    return CommandResult({"handoffs": rows, "next": page.next}, show)


def show(context: CommandContext, id: HandoffArgument) -> CommandResult:
    """Show a handoff, and what it waits for.

    Its package, its checks, and the notes on it.

    \b
    Examples:
      dragoman handoff show fix-login-1
      dragoman handoff show fix-login-1 --json
    """
    from dragoman.engine.handoff_diagnosis import diagnose_handoff
    from dragoman.engine.shown.handoffs import handoff_detail

    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        diagnosis = diagnose_handoff(directory.hub.store, handoff, directory.hub.clock.now())
    return CommandResult(
        to_builtins(handoff_detail(handoff)),
        lambda screen: print_handoff(handoff, diagnosis, screen),
    )


def timeline(
    context: CommandContext,
    id: HandoffArgument,
    after: Annotated[
        int,
        typer.Option("--after", metavar="N", min=0, help="Begin after the handoff's N-th entry."),
    ] = 0,
    limit: LimitOption = 200,
) -> CommandResult:
    """Show what happened to a handoff, in order.

    Every entry of it in the ledger.

    \b
    Example:
      dragoman handoff timeline fix-login-1
    """
    with context.open_for_reading() as directory:
        handoff = load_handoff(context, directory, id)
        stream = handoff_stream(handoff.id)
        entries = directory.hub.store.history(stream, after, limit + 1)
    return history_result({"handoff_id": handoff.id}, entries, limit)


LIST_COMMANDS = (
    CliCommand("list", list_handoffs),
    CliCommand("show", show),
    CliCommand("timeline", timeline),
)
