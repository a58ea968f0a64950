"""`dragoman handoff list`, `show` and `timeline`: where handoffs stand and how they came there."""

from typing import Annotated

import typer
from msgspec import to_builtins

from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import HandoffStatus
from dragoman.core.ids import handoff_stream
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.handoff.asking import HandoffArgument, closed, found
from dragoman.surfaces.cli.handoff.view import COLUMNS, as_row, print_page
from dragoman.surfaces.cli.history_page import history_page
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb


def list_handoffs(
    call: Call,
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
) -> Answer:
    """List handoffs, newest first, a page at a time.

    Drafts are listed with --status draft, for their author (--as NAME, or --from NAME).

    \b
    Examples:
      dragoman handoff list --status proposed --to bob
      dragoman handoff list --task TASK-2026-02-09-001 --json
    """
    from dragoman.engine.reads.handoffs import LAST, Wanted, page_of
    from dragoman.engine.shown.handoffs import handoff_summary

    with call.reading() as place:
        wanted = Wanted(
            status=status,
            task=task,
            sender=sender,
            recipient=recipient,
            teamspace=teamspace,
            reader=call.speaker(),
            closed=closed(call, place),
            before=LAST if before is None else before,
            limit=limit,
        )
        page, now = page_of(place.hub.store, wanted), place.hub.clock.now()
    if isinstance(page, Refusal):
        raise Refused(page)
    rows = [to_builtins(handoff_summary(one)) for one in page.handoffs]

    def show(screen: Screen) -> None:
        if page.handoffs:
            screen.table(COLUMNS, [as_row(one, now) for one in page.handoffs])
        else:
            screen.line("no handoffs")
        if page.next is not None:
            screen.line(f"There may be more: add --before {page.next}")

    return Answer({"handoffs": rows, "next": page.next}, show)


def show(call: Call, id: HandoffArgument) -> Answer:
    """Show a handoff, and what it waits for.

    Its package, its checks, and the notes on it.

    \b
    Examples:
      dragoman handoff show fix-login-1
      dragoman handoff show fix-login-1 --json
    """
    from dragoman.engine.handoff_diagnosis import look_at
    from dragoman.engine.shown.handoffs import whole_handoff

    with call.reading() as place:
        handoff = found(call, place, id)
        diagnosis = look_at(place.hub.store, handoff, place.hub.clock.now())
    return Answer(
        to_builtins(whole_handoff(handoff)), lambda screen: print_page(handoff, diagnosis, screen)
    )


def timeline(
    call: Call,
    id: HandoffArgument,
    after: Annotated[
        int,
        typer.Option("--after", metavar="N", min=0, help="Begin after the handoff's N-th entry."),
    ] = 0,
    limit: LimitOption = 200,
) -> Answer:
    """Show what happened to a handoff, in order.

    Every entry of it in the ledger.

    \b
    Example:
      dragoman handoff timeline fix-login-1
    """
    with call.reading() as place:
        handoff = found(call, place, id)
        stream = handoff_stream(handoff.id)
        entries = place.hub.store.history(stream, after, limit + 1)
    return history_page({"handoff_id": handoff.id}, entries, limit)


VERBS = (Verb("list", list_handoffs), Verb("show", show), Verb("timeline", timeline))
