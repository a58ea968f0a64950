"""`dragoman mail inbox`: the letters of a box, sifted, and as they come."""

from functools import partial
from typing import Annotated, Any

import typer

from dragoman.engine.subscribe import Gap
from dragoman.surfaces.cli.call import CommandContext, CommandResult, raise_usage_error
from dragoman.surfaces.cli.following import gap_warning, resolve_start, retry_while_unavailable
from dragoman.surfaces.cli.mail.asking import Letter, call_operation
from dragoman.surfaces.cli.mail.view import print_letter_line, print_letters
from dragoman.surfaces.cli.options import LimitOption, text_option
from dragoman.surfaces.cli.place import DataDirectory
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand

_RECEIVED = "in"
"""Box of received letters, which their owner may have read."""


def _flag_option(name: str, help_text: str) -> Any:
    return typer.Option(f"--{name}", help=help_text)


def inbox(
    context: CommandContext,
    *,
    agent: Annotated[str, text_option("agent", "NAME", "Whose box; else your own.")] = "",
    unread: Annotated[bool, _flag_option("unread", "Only unread ones.")] = False,
    pending: Annotated[bool, _flag_option("pending", "Only those still to be acked.")] = False,
    sent: Annotated[bool, _flag_option("sent", "Those that were sent, not received.")] = False,
    overdue: Annotated[bool, _flag_option("overdue", "All whose ack or answer is late.")] = False,
    waiting: Annotated[
        bool, _flag_option("waiting", "All to recipients who are not registered yet.")
    ] = False,
    type: Annotated[str, text_option("type", "TYPE", "Only of this type, e.g. HELP_REQUEST.")] = "",
    bead: Annotated[str, text_option("bead", "ID", "Only about this bead.")] = "",
    thread: Annotated[str, text_option("thread", "ID", "Only of this thread.")] = "",
    sender: Annotated[str, text_option("from", "NAME", "Only from this sender.")] = "",
    completions: Annotated[bool, _flag_option("completions", "Only those that end work.")] = False,
    successes: Annotated[bool, _flag_option("successes", "Only those that end it well.")] = False,
    checked: Annotated[bool, _flag_option("checked", "Successes whose checks all pass.")] = False,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="`cursor` of the page before.")
    ] = 0,
    newest: Annotated[bool, _flag_option("newest", "The newest first.")] = False,
    limit: LimitOption = 50,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep printing new letters until Ctrl-C.")
    ] = False,
) -> CommandResult | None:
    """List the letters of a box, the oldest first.

    Without --as and --agent it is your own, under your login name. With --watch and --json each
    letter is an object on a line of its own.

    \b
    Examples:
      dragoman mail inbox --as boss --unread
      dragoman mail inbox --agent ada --type HELP_REQUEST --watch
    """
    box = _choose_one(_RECEIVED, sent=sent, overdue=overdue, waiting=waiting)
    only = _choose_one("all", completions=completions, successes=successes, checked=checked)
    filters: dict[str, Any] = {
        "agent": agent,
        "box": box,
        "unread": unread,
        "pending": pending,
        "type": type,
        "bead_id": bead,
        "thread_id": thread,
        "from": sender,
        "only": only,
        "limit": limit,
    }
    if watch and newest:
        raise_usage_error("--watch goes on with new letters: leave out --newest")
    if newest and after:
        raise_usage_error("--after goes on from older to newer: leave out --newest")
    with context.open_for_reading() as directory:
        if watch:
            _watch_inbox(context, directory, filters, after)
            return None
        reply = _fetch_page(
            context, directory, filters, {"before": 0} if newest else {"after": after}
        )

    if gap := reply.get("gap"):
        context.err.line(("warning: ", "yellow"), gap_warning(Gap(**gap)))

    def show(screen: Screen) -> None:
        print_letters(
            reply["messages"], screen, "there are no such letters", is_box=box == _RECEIVED
        )
        if reply["more"]:
            older = "There may be older ones: give a greater --limit, or leave out --newest"
            screen.line(older if newest else f"There may be more: add --after {reply['cursor']}")

    return CommandResult(reply, show)


def _fetch_page(
    context: CommandContext,
    directory: DataDirectory,
    filters: dict[str, Any],
    start: dict[str, int],
) -> Any:
    """Fetch as many letters as are wanted, also where matching letters are far apart."""
    actor, ((direction, cursor),) = context.actor(directory, context.acting_agent()), start.items()
    rows: list[Letter] = []
    while True:
        page = {"limit": filters["limit"] - len(rows), direction: cursor}
        reply = call_operation(directory, "mail.inbox", filters | page, actor).reply
        rows += reply["messages"]
        cursor = reply["cursor"]
        if not reply["more"] or len(rows) == filters["limit"]:
            return reply | {"messages": rows}


def _choose_one(default: str, **flags: bool) -> str:
    chosen = [name for name, is_on in flags.items() if is_on]
    if len(chosen) > 1:
        raise_usage_error(f"--{chosen[0]} and --{chosen[1]} exclude each other: give one of them")
    return chosen[0] if chosen else default


def _watch_inbox(
    context: CommandContext, directory: DataDirectory, filters: dict[str, Any], after: int
) -> None:
    """Print letters that exist and those that come; the box is read again when the ledger has
    grown."""
    actor, store, seen = (
        context.actor(directory, context.acting_agent()),
        directory.hub.store,
        set[str](),
    )
    after = resolve_start(context, store, after)
    # These boxes grow at the end; the others also gain old letters.
    moves_cursor = filters["box"] in ("in", "sent")
    while True:
        head, at = retry_while_unavailable(context, store, store.head), after
        while True:
            fetch = partial(call_operation, directory, "mail.inbox", filters | {"after": at}, actor)
            reply = retry_while_unavailable(context, store, fetch).reply
            for row in reply["messages"]:
                if row["id"] not in seen:
                    _print_new_letter(row, context, is_box=filters["box"] == _RECEIVED)
                if not moves_cursor:
                    seen.add(row["id"])
            at = reply["cursor"]
            if not reply["more"]:
                break
        after = at if moves_cursor else after
        while retry_while_unavailable(context, store, store.head) == head:
            if not context.wait():
                return


def _print_new_letter(row: Letter, context: CommandContext, *, is_box: bool) -> None:
    context.print_result(
        CommandResult(row, lambda screen: print_letter_line(row, screen, is_box=is_box))
    )
    # A follower needs each letter when it comes, not when a buffer is full.
    context.out.flush()


INBOX_COMMANDS = (CliCommand("inbox", inbox),)
