"""Ledger entries for people: pages of entries, and entries as they come."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.event_sentences import describe_event
from dragoman.engine.ports import Gap, Store, find_gap
from dragoman.engine.queries.visibility import EntrySource
from dragoman.engine.schemas.tasks import encode, entry_resource, shown_resource
from dragoman.engine.subscribe import follow
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.context import CommandContext, CommandResult
from dragoman.surfaces.cli.data_directory import ReadOnlyDirectory
from dragoman.surfaces.cli.render import Screen, StyledText

# --- entries ----------------------------------------------------------------------------------

Fields = Mapping[str, Any]
"""An entry as streams and `--json` show it."""

_SUBJECT_KINDS = frozenset(
    ("task", "agent", "mail", "wave", "handoff", "workq", "intent", "reputation", "turns")
)
"""Kinds of streams whose name says what an entry is about."""

_POSITION_WIDTH = 6
"""Width of positions, so that lines are aligned."""


def entry_to_dict(entry: Entry) -> dict[str, Any]:
    """JSON object of an entry, with all its fields."""
    return json.loads(encode(entry_resource(entry)))


def shown_entries(
    entries: Iterable[Entry], directory: ReadOnlyDirectory
) -> Iterator[dict[str, Any]]:
    """JSON objects of entries, as far as the caller may read them."""
    source = EntrySource(directory.store, directory.teamspaces)
    reader = CommandContext.bearer_as_reader(directory)
    for entry in entries:
        (readable,) = source.add_audiences((entry,))
        yield json.loads(encode(shown_resource(*readable, reader)))


def print_entry(entry: Fields, screen: Screen, *, names_task: bool = True) -> None:
    """Print position, time, actor, subject and sentence of an entry on one line."""
    # `via` is printed only when it says more than that somebody typed a command.
    via = f" (via {entry['via']})" if entry["via"] not in (None, "cli") else ""
    parts: list[StyledText] = [
        (f"{entry['position']:>{_POSITION_WIDTH}}", "dim"),
        f"  {entry['at']}  ",
        (entry["actor"], "bold"),
        f"{via}  ",
    ]
    kind, _, subject = entry["stream"].partition(":")
    if names_task and kind in _SUBJECT_KINDS:
        parts += [(subject, "cyan"), "  "]
    screen.line(*parts, describe_event(entry["type"], entry["body"]))


def history_result(owner: Mapping[str, str], entries: Sequence[Entry], limit: int) -> CommandResult:
    """Result with at most `limit` entries of one thing; `owner` names it in the JSON object."""
    page = [entry_to_dict(entry) for entry in entries[:limit]]
    next_version = page[-1]["version"] if len(entries) > limit else None

    def print_entries(screen: Screen) -> None:
        for entry in page:
            print_entry(entry, screen, names_task=False)
        if next_version is not None:
            screen.line(f"There are more: add --after {next_version}")

    return CommandResult({**owner, "entries": page, "next": next_version}, print_entries)


# --- entries as they come -----------------------------------------------------------------------

T = TypeVar("T")


def gap_warning(gap: Gap) -> str:
    """Warning for a reader whose position is beyond the end of the ledger."""
    return (
        f"the ledger ends at {gap.until}, before {gap.after}: it may have been restored from a "
        "backup. What comes from now on is shown; look through the rest once without --after"
    )


def resolve_start(context: CommandContext, store: Store, after: int) -> int:
    """Start position of a reader; one beyond the ledger's end is reported and becomes its end."""
    gap = find_gap(store, after)
    if gap is None:
        return after
    warn_of_gap(context, gap)
    return gap.until


def warn_of_gap(context: CommandContext, gap: Gap) -> None:
    """Print the warning that the reader was beyond the ledger's end."""
    context.err.line(("warning: ", "yellow"), gap_warning(gap))


def follow_entries(context: CommandContext, store: Store, after: int) -> Iterator[Entry]:
    """Entries after a position as they are committed, until nobody reads the output."""

    def read(after: int, limit: int) -> list[Entry]:
        return retry_while_unavailable(context, store, lambda: store.entries(after, limit))

    return follow(read, resolve_start(context, store, after), context.wait)


def retry_while_unavailable(context: CommandContext, store: Store, read: Callable[[], T]) -> T:
    """Retry a read until the store is available again, as while its server restarts."""
    while True:
        try:
            return read()
        except StoreUnavailable as error:
            context.err.line(
                ("warning: ", "yellow"), f"{error.detail}. Until it is back nothing is shown"
            )
            if not _wait_until_available(context, store):
                raise


def _wait_until_available(context: CommandContext, store: Store) -> bool:
    while context.wait():
        with suppress(StoreUnavailable):
            store.head()
            return True
    return False
