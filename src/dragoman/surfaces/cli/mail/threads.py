"""`dragoman mail show`, `thread`, `search` and `summarize`: letters and what they come to."""

from typing import Annotated, Any

import typer

from dragoman.core.limits import MAX_PAGE
from dragoman.surfaces.cli.call import CommandContext, CommandResult
from dragoman.surfaces.cli.mail.asking import (
    Letter,
    LetterArgument,
    ThreadArgument,
    call_operation,
    query_operation,
)
from dragoman.surfaces.cli.mail.view import print_letter, print_letters
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import CliCommand


def show(
    context: CommandContext,
    id: LetterArgument,
    peek: Annotated[bool, typer.Option("--peek", help="Do not mark it as read.")] = False,
) -> CommandResult:
    """Show a letter as a whole; one in your box is marked as read.

    No letter is private: every reader may read every letter. --as NAME says in whose box it is
    marked as read.

    \b
    Examples:
      dragoman mail show 019c4b3e-7a10
      dragoman mail show 019c4b3e-7a10 --as boss --peek
    """
    if peek:
        row = query_operation(context, "mail.show", id=id)
    else:
        with context.open_for_writing(create_missing=False) as directory:
            actor = context.actor(directory, context.acting_agent())
            row = call_operation(directory, "mail.show", {"id": id}, actor).reply
            if actor.name in (*row["to"], *row["cc"], *row["copied"]) and not row["read"]:
                call_operation(directory, "mail.read", {"id": row["id"]}, actor)
                row = call_operation(directory, "mail.show", {"id": row["id"]}, actor).reply
    return CommandResult(row, lambda screen: print_letter(row, screen))


def thread(context: CommandContext, thread: ThreadArgument) -> CommandResult:
    """Show all letters of a thread, from its beginning.

    That of a bead has every letter about it, wherever its sender put it.

    \b
    Example:
      dragoman mail thread ol-527.1
    """
    rows: list[Letter] = []
    reply: dict[str, Any] = {"cursor": 0, "more": True}
    while reply["more"]:
        reply = query_operation(
            context, "mail.thread", thread_id=thread, after=reply["cursor"], limit=MAX_PAGE
        )
        rows += reply["messages"]

    def print_thread(screen: Screen) -> None:
        for number, row in enumerate(rows):
            if number:
                screen.line("")
            print_letter(row, screen)
        if not rows:
            screen.line(f"there are no letters in the thread {thread}")

    return CommandResult(reply | {"messages": rows}, print_thread)


def search(
    context: CommandContext,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="WORDS",
            show_default=False,
            help='All of them: auth, dep*, -draft, "a phrase", OR between alternatives.',
        ),
    ],
    before: Annotated[
        int | None,
        typer.Option(
            "--before", metavar="N", min=1, show_default=False, help="`cursor` of the page before."
        ),
    ] = None,
    limit: LimitOption = 50,
) -> CommandResult:
    """Find letters by their words, the newest first.

    A phrase stands in double quotes, which have to be quoted for the shell. All arguments together
    are one query, as mail.search takes it. Options stand before a word that begins with a dash.

    \b
    Examples:
      dragoman mail search 'auth "token expired" OR login'
      dragoman mail search --limit 5 -- deploy -draft
    """
    query = " ".join(words)
    more = {} if before is None else {"before": before}
    reply = query_operation(context, "mail.search", query=query, limit=limit, **more)
    nothing = "no letter has these words"

    def show_found(screen: Screen) -> None:
        print_letters(reply["messages"], screen, nothing)
        if reply["more"]:
            screen.line(f"There may be more: add --before {reply['cursor']}")

    return CommandResult(reply, show_found)


def summarize(
    context: CommandContext,
    thread: ThreadArgument,
    model: Annotated[
        bool,
        typer.Option(
            "--model", help="Add a summary by the program of [agentmail] summarize_command."
        ),
    ] = False,
) -> CommandResult:
    """Summarize a thread.

    Counts, last status, open questions and acks, files, commits.

    \b
    Examples:
      dragoman mail summarize ol-527.1
      dragoman mail summarize ol-527.1 --model
    """
    summary = query_operation(context, "mail.summary", thread_id=thread, model=model)
    return CommandResult(summary, lambda screen: _print_summary(summary, screen))


def _print_summary(summary: dict[str, Any], screen: Screen) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in summary["counts"].items())
    letter_count = summary["messages"]
    letters = "1 letter" if letter_count == 1 else f"{letter_count} letters"
    screen.line((letters, "bold"), f": {counts}" if counts else "")
    if summary["more"]:
        screen.line("older ones are left out of this: `dragoman mail thread` shows them all")
    if summary["last_type"]:
        last = dict.fromkeys((summary["last_type"], summary["last_status"]))
        screen.line(f"last: {', '.join(last)}")
    for one in summary["open_questions"]:
        screen.line(("open question ", "yellow"), f"{one['id']} of {one['sender']}:")
        screen.block(one["question"] or "(it says no more)", "  ")
    for one in summary["open_acks"]:
        screen.line(("no ack yet ", "yellow"), f"for {one['id']}, {one['type']} of {one['sender']}")
    for name in ("files", "commits"):
        if summary[name]:
            screen.line(f"{name}: {', '.join(summary[name])}")
    if model_summary := summary.get("model"):
        screen.line(("summary by the model", "bold"), f": {model_summary['trouble']}".rstrip(": "))
        screen.block(model_summary["text"], "  ")


THREAD_COMMANDS = (
    CliCommand("show", show),
    CliCommand("thread", thread),
    CliCommand("search", search),
    CliCommand("summarize", summarize),
)
