"""`dragoman mail inbox`: the letters of a box, sifted, and as they come."""

from functools import partial
from typing import Annotated, Any

import typer

from dragoman.engine.subscribe import Gap
from dragoman.surfaces.cli.call import Answer, Call, wrong_usage
from dragoman.surfaces.cli.following import begin_after, enduring, lost
from dragoman.surfaces.cli.mail.asking import Row, asked
from dragoman.surfaces.cli.mail.view import print_list, print_one_line
from dragoman.surfaces.cli.options import LimitOption, text_option
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.screen import Screen
from dragoman.surfaces.cli.verb import Verb

_OWN = "in"
"""Box of received letters, which their owner may have read."""


def _flag(name: str, about: str) -> Any:
    return typer.Option(f"--{name}", help=about)


def inbox(
    call: Call,
    *,
    agent: Annotated[str, text_option("agent", "NAME", "Whose box; else your own.")] = "",
    unread: Annotated[bool, _flag("unread", "Only unread ones.")] = False,
    pending: Annotated[bool, _flag("pending", "Only those still to be acked.")] = False,
    sent: Annotated[bool, _flag("sent", "Those that were sent, not received.")] = False,
    overdue: Annotated[bool, _flag("overdue", "All whose ack or answer is late.")] = False,
    waiting: Annotated[
        bool, _flag("waiting", "All to recipients who are not registered yet.")
    ] = False,
    type: Annotated[str, text_option("type", "TYPE", "Only of this type, e.g. HELP_REQUEST.")] = "",
    bead: Annotated[str, text_option("bead", "ID", "Only about this bead.")] = "",
    thread: Annotated[str, text_option("thread", "ID", "Only of this thread.")] = "",
    sender: Annotated[str, text_option("from", "NAME", "Only from this sender.")] = "",
    completions: Annotated[bool, _flag("completions", "Only those that end work.")] = False,
    successes: Annotated[bool, _flag("successes", "Only those that end it well.")] = False,
    checked: Annotated[bool, _flag("checked", "Successes whose checks all pass.")] = False,
    after: Annotated[
        int, typer.Option("--after", metavar="N", min=0, help="`cursor` of the page before.")
    ] = 0,
    newest: Annotated[bool, _flag("newest", "The newest first.")] = False,
    limit: LimitOption = 50,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Keep printing new letters until Ctrl-C.")
    ] = False,
) -> Answer | None:
    """List the letters of a box, the oldest first.

    Without --as and --agent it is your own, under your login name. With --watch and --json each
    letter is an object on a line of its own.

    \b
    Examples:
      dragoman mail inbox --as boss --unread
      dragoman mail inbox --agent ada --type HELP_REQUEST --watch
    """
    box = _one_of(_OWN, sent=sent, overdue=overdue, waiting=waiting)
    only = _one_of("all", completions=completions, successes=successes, checked=checked)
    wanted: dict[str, Any] = {
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
        wrong_usage("--watch goes on with new letters: leave out --newest")
    if newest and after:
        wrong_usage("--after goes on from older to newer: leave out --newest")
    with call.reading() as place:
        if watch:
            _follow(call, place, wanted, after)
            return None
        reply = _page(call, place, wanted, {"before": 0} if newest else {"after": after})

    if gap := reply.get("gap"):
        call.err.line(("warning: ", "yellow"), lost(Gap(**gap)))

    def show(screen: Screen) -> None:
        print_list(reply["messages"], screen, "there are no such letters", is_box=box == _OWN)
        if reply["more"]:
            older = "There may be older ones: give a greater --limit, or leave out --newest"
            screen.line(older if newest else f"There may be more: add --after {reply['cursor']}")

    return Answer(reply, show)


def _page(call: Call, place: Place, wanted: dict[str, Any], begin: dict[str, int]) -> Any:
    """Fetch as many letters as are wanted, also where matching letters are far apart."""
    actor, ((way, at),) = call.actor(place, call.speaker()), begin.items()
    rows: list[Row] = []
    while True:
        left = {"limit": wanted["limit"] - len(rows), way: at}
        reply = asked(place, "mail.inbox", wanted | left, actor).reply
        rows += reply["messages"]
        at = reply["cursor"]
        if not reply["more"] or len(rows) == wanted["limit"]:
            return reply | {"messages": rows}


def _one_of(usual: str, **flags: bool) -> str:
    chosen = [name for name, is_on in flags.items() if is_on]
    if len(chosen) > 1:
        wrong_usage(f"--{chosen[0]} and --{chosen[1]} exclude each other: give one of them")
    return chosen[0] if chosen else usual


def _follow(call: Call, place: Place, wanted: dict[str, Any], after: int) -> None:
    """Print letters that exist and those that come; the box is read again when the ledger has
    grown."""
    actor, store, seen = call.actor(place, call.speaker()), place.hub.store, set[str]()
    after = begin_after(call, store, after)
    # These boxes grow at the end; the others also gain old letters.
    goes_on = wanted["box"] in ("in", "sent")
    while True:
        head, at = enduring(call, store, store.head), after
        while True:
            asking = partial(asked, place, "mail.inbox", wanted | {"after": at}, actor)
            reply = enduring(call, store, asking).reply
            for row in reply["messages"]:
                if row["id"] not in seen:
                    _print(row, call, is_box=wanted["box"] == _OWN)
                if not goes_on:
                    seen.add(row["id"])
            at = reply["cursor"]
            if not reply["more"]:
                break
        after = at if goes_on else after
        while enduring(call, store, store.head) == head:
            if not call.wait():
                return


def _print(row: Row, call: Call, *, is_box: bool) -> None:
    call.tell(Answer(row, lambda screen: print_one_line(row, screen, is_box=is_box)))
    # A follower needs each letter when it comes, not when a buffer is full.
    call.out.flush()


VERBS = (Verb("inbox", inbox),)
