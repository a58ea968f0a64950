"""Live ledger entries: follows the ledger as it grows, and waits out an unavailable store."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Gap, Store, find_gap
from dragoman.engine.subscribe import follow
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.context import CommandContext

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
