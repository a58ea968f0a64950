"""Reading on as things happen: from a place that there is, and over a time without the store."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Store
from dragoman.engine.subscribe import Gap, follow, gap_at
from dragoman.ledger.entry import Entry
from dragoman.surfaces.cli.call import Call

T = TypeVar("T")


def lost(gap: Gap) -> str:
    """Warning for a reader whose position is beyond the end of the ledger."""
    return (
        f"the ledger ends at {gap.until}, before {gap.after}: it may have been restored from a "
        "backup. What comes from now on is shown; look through the rest once without --after"
    )


def begin_after(call: Call, store: Store, after: int) -> int:
    """Start position of a reader; one beyond the ledger's end is reported and becomes its end."""
    gap = gap_at(store, after)
    if gap is None:
        return after
    tell_gap(call, gap)
    return gap.until


def tell_gap(call: Call, gap: Gap) -> None:
    """Print the warning that the reader was beyond the ledger's end."""
    call.err.line(("warning: ", "yellow"), lost(gap))


def following(call: Call, store: Store, after: int) -> Iterator[Entry]:
    """Entries after a position as they are committed, until nobody reads the output."""

    def read(after: int, limit: int) -> list[Entry]:
        return enduring(call, store, lambda: store.entries(after, limit))

    return follow(read, begin_after(call, store, after), call.wait)


def enduring(call: Call, store: Store, look: Callable[[], T]) -> T:
    """Retry a read until the store is available again, as while its server restarts."""
    while True:
        try:
            return look()
        except StoreUnavailable as error:
            call.err.line(
                ("warning: ", "yellow"), f"{error.detail}. Until it is back nothing is shown"
            )
            if not _is_back(call, store):
                raise


def _is_back(call: Call, store: Store) -> bool:
    while call.wait():
        with suppress(StoreUnavailable):
            store.head()
            return True
    return False
