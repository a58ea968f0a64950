"""`dragoman events`: what happened, from any position on, and as it happens."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated

import typer

from dragoman.core.errors import Refusal, Refused
from dragoman.core.events import EVENT_NAMES
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import entries, find_stream, history
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.call import Answer, Call
from dragoman.surfaces.cli.entry_view import as_object, print_entry
from dragoman.surfaces.cli.following import begin_after, following
from dragoman.surfaces.cli.verb import Verb

_NAMES = tuple(EVENT_NAMES.values())
_FAMILIES = tuple(dict.fromkeys(name.partition(".")[0] for name in _NAMES))


def read_type(given: str) -> str:
    """Parse the name of an event, or the family before its dot."""
    if given in _NAMES or given in _FAMILIES:
        return given
    raise ValueError(f"{given!a} is not an event; known: {', '.join((*_FAMILIES, *_NAMES))}")


def events(
    call: Call,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Keep printing new entries until Ctrl-C.")
    ] = False,
    task: Annotated[
        str,
        typer.Option(
            "--task",
            metavar="ID",
            show_default=False,
            help="Only its own history, without entries of other streams about it.",
        ),
    ] = "",
    type: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="NAME",
            parser=read_type,
            show_default=False,
            help="Only of this type, e.g. task.claimed, or of a family, e.g. command.",
        ),
    ] = None,
    after: Annotated[
        int,
        typer.Option(
            "--after", metavar="POSITION", help="Begin after this position; -10: with the last ten."
        ),
    ] = 0,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, show_default=False, help="How many at most."),
    ] = None,
) -> Answer | None:
    """Print the ledger: what happened, when, and by whom.

    With --json each line is an object of its own. Refusals are in the stream of the agent or
    person that sent the command (--type command), and letters, handoffs and intents about a task
    have streams of their own: --task shows none of them.

    \b
    Examples:
      dragoman events --task TASK-2026-02-09-001
      dragoman events --follow --after -10 --json
    """
    with call.looking() as look:
        store = look.store
        stream = _stream_of(store, task) if task else ""
        after = after if after >= 0 else max(store.head() + after, 0)
        if follow:
            source = following(call, store, after)
        else:
            source = _kept(store, stream, begin_after(call, store, after))
        for entry in islice(filter(_wanted(stream, type or ""), source), limit):
            _print(entry, call)
    return None


def _stream_of(store: Store, task: str) -> str:
    stream = find_stream(store, task)
    if isinstance(stream, Refusal):
        raise Refused(stream)
    return stream


def _kept(store: Store, stream: str, after: int) -> Iterator[Entry]:
    """Stored entries after a position: all, or those of one stream."""
    if stream:
        # By the stream's own index, however long the ledger is.
        return (entry for entry in history(store, stream) if entry.position > after)
    return entries(store, after)


def _wanted(stream: str, type_: str) -> Callable[[Entry], bool]:
    return lambda entry: (
        stream in ("", entry.stream) and type_ in ("", entry.event, entry.event.partition(".")[0])
    )


def _print(entry: Entry, call: Call) -> None:
    call.tell(Answer(as_object(entry), lambda screen: print_entry(entry, screen)))
    # A follower needs each line when it happens, not when a buffer is full.
    call.out.flush()


VERBS = (Verb("events", events, speaks=False),)
