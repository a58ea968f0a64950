"""`dragoman events`: the ledger from any position on, and as it grows."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Annotated

from dragoman.core.errors import Refusal, Refused
from dragoman.core.event_table import EVENT_NAMES
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import all_entries, stream_entries
from dragoman.engine.queries.tasks import find_task_stream
from dragoman.engine.schemas.tasks import WITHHELD
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.command import CliCommand, option
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.event_text import (
    Fields,
    follow_entries,
    print_entry,
    resolve_start,
    shown_entries,
)

_EVENT_NAMES = tuple(EVENT_NAMES.values())
_EVENT_FAMILIES = tuple(dict.fromkeys(name.partition(".")[0] for name in _EVENT_NAMES))


def parse_event_type(text: str) -> str:
    """Parse the name of an event, or the family before its dot."""
    if text in _EVENT_NAMES or text in _EVENT_FAMILIES:
        return text
    raise ValueError(
        f"{text!a} is not an event; known: {', '.join((*_EVENT_FAMILIES, *_EVENT_NAMES))}"
    )


def events(
    context: CommandContext,
    follow: Annotated[
        bool, option("--follow -f", "", "Keep printing new entries until Ctrl-C.")
    ] = False,
    task: Annotated[
        str,
        option("--task", "ID", "Only its own history, without entries of other streams about it."),
    ] = "",
    type: Annotated[
        str | None,
        option(
            "--type",
            "NAME",
            "Only of this type, e.g. task.claimed, or of a family, e.g. command.",
            parser=parse_event_type,
        ),
    ] = None,
    after: Annotated[
        int,
        option(
            "--after",
            "POSITION",
            "Begin after this position; -10: with the last ten.",
            show_default=True,
        ),
    ] = 0,
    limit: Annotated[int | None, option("--limit", "N", "How many at most.", min=1)] = None,
) -> CommandResult | None:
    """Print the ledger: what happened, when, and by whom.

    With --json each line is an object of its own. Refusals are in the stream of the agent or
    person that sent the command (--type command), and letters, handoffs and intents about a task
    have streams of their own: --task shows none of them.

    \b
    Examples:
      dragoman events --task TASK-2026-02-09-001
      dragoman events --follow --after -10 --json
    """
    with context.open_readonly() as directory:
        store = directory.store
        stream = _find_stream(store, task) if task else ""
        after = after if after >= 0 else max(store.head() + after, 0)
        if follow:
            source = follow_entries(context, store, after)
        else:
            source = _stored_entries(store, stream, resolve_start(context, store, after))
        matching = filter(_entry_filter(stream, type or ""), source)
        shown = shown_entries(matching, directory)
        # What is withheld matches no type: that would tell what it is.
        known = (entry for entry in shown if type is None or entry["type"] != WITHHELD)
        for entry in islice(known, limit):
            _print_now(entry, context)
    return None


def _find_stream(store: Store, task: str) -> str:
    stream = find_task_stream(store, task)
    if isinstance(stream, Refusal):
        raise Refused(stream)
    return stream


def _stored_entries(store: Store, stream: str, after: int) -> Iterator[Entry]:
    """Stored entries after a position: all, or those of one stream."""
    if stream:
        # By the stream's own index, however long the ledger is.
        return (entry for entry in stream_entries(store, stream) if entry.position > after)
    return all_entries(store, after)


def _entry_filter(stream: str, type_: str) -> Callable[[Entry], bool]:
    return lambda entry: (
        stream in ("", entry.stream) and type_ in ("", entry.event, entry.event.partition(".")[0])
    )


def _print_now(entry: Fields, context: CommandContext) -> None:
    context.print_result(CommandResult(entry, lambda screen: print_entry(entry, screen)))
    # A follower needs each line when it happens, not when a buffer is full.
    context.out.flush()


COMMANDS = (CliCommand("events", events, takes_as=False),)
