"""`dragoman mail show`, `thread`, `search` and `summarize`: letters and what they come to."""

from typing import Annotated, Any

import typer

from dragoman.core.limits import PAGE
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.mail.asking import (
    LetterArgument,
    Row,
    ThreadArgument,
    asked,
    looked_up,
)
from dragoman.surfaces.cli.mail.view import print_list, print_whole
from dragoman.surfaces.cli.options import LimitOption
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb


def show(
    call: Call,
    id: LetterArgument,
    peek: Annotated[bool, typer.Option("--peek", help="Do not mark it as read.")] = False,
) -> Answer:
    """Show a letter as a whole; one in your box is marked as read.

    No letter is private: every reader may read every letter. --as NAME says in whose box it is
    marked as read.

    \b
    Examples:
      dragoman mail show 019c4b3e-7a10
      dragoman mail show 019c4b3e-7a10 --as boss --peek
    """
    if peek:
        row = looked_up(call, "mail.show", id=id)
    else:
        with call.writing(makes=False) as place:
            actor = call.actor(place, call.speaker())
            row = asked(place, "mail.show", {"id": id}, actor).reply
            if actor.name in (*row["to"], *row["cc"], *row["copied"]) and not row["read"]:
                asked(place, "mail.read", {"id": row["id"]}, actor)
                row = asked(place, "mail.show", {"id": row["id"]}, actor).reply
    return Answer(row, lambda screen: print_whole(row, screen))


def thread(call: Call, thread: ThreadArgument) -> Answer:
    """Show all letters of a thread, from its beginning.

    That of a bead has every letter about it, wherever its sender put it.

    \b
    Example:
      dragoman mail thread ol-527.1
    """
    rows: list[Row] = []
    reply: dict[str, Any] = {"cursor": 0, "more": True}
    while reply["more"]:
        reply = looked_up(call, "mail.thread", thread_id=thread, after=reply["cursor"], limit=PAGE)
        rows += reply["messages"]

    def print_thread(screen: Screen) -> None:
        for number, row in enumerate(rows):
            if number:
                screen.line("")
            print_whole(row, screen)
        if not rows:
            screen.line(f"there are no letters in the thread {thread}")

    return Answer(reply | {"messages": rows}, print_thread)


def search(
    call: Call,
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
) -> Answer:
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
    reply = looked_up(call, "mail.search", query=query, limit=limit, **more)
    nothing = "no letter has these words"

    def show_found(screen: Screen) -> None:
        print_list(reply["messages"], screen, nothing)
        if reply["more"]:
            screen.line(f"There may be more: add --before {reply['cursor']}")

    return Answer(reply, show_found)


def summarize(
    call: Call,
    thread: ThreadArgument,
    model: Annotated[
        bool,
        typer.Option(
            "--model", help="Add a summary by the program of [agentmail] summarize_command."
        ),
    ] = False,
) -> Answer:
    """Summarize a thread.

    Counts, last status, open questions and acks, files, commits.

    \b
    Examples:
      dragoman mail summarize ol-527.1
      dragoman mail summarize ol-527.1 --model
    """
    summary = looked_up(call, "mail.summary", thread_id=thread, model=model)
    return Answer(summary, lambda screen: _print_summary(summary, screen))


def _print_summary(summary: dict[str, Any], screen: Screen) -> None:
    counts = ", ".join(f"{count} {kind}" for kind, count in summary["counts"].items())
    many = summary["messages"]
    letters = "1 letter" if many == 1 else f"{many} letters"
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
    if said := summary.get("model"):
        screen.line(("summary by the model", "bold"), f": {said['trouble']}".rstrip(": "))
        screen.block(said["text"], "  ")


VERBS = (
    Verb("show", show),
    Verb("thread", thread),
    Verb("search", search),
    Verb("summarize", summarize),
)
