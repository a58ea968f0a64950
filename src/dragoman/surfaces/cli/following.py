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
    """What whoever was beyond the ledger's end is told."""
    return (
        f"the ledger ends at {gap.until}, before {gap.after}: it may have been restored from a "
        "backup. What comes from now on is shown; look through the rest once without --after"
    )


def begin_after(call: Call, store: Store, after: int) -> int:
    """The position to begin after; one that the ledger has not is told, and is its end then."""
    gap = gap_at(store, after)
    if gap is None:
        return after
    tell_gap(call, gap)
    return gap.until


def tell_gap(call: Call, gap: Gap) -> None:
    """Tell whoever reads that it was beyond the ledger's end."""
    call.err.line(("warning: ", "yellow"), lost(gap))


def following(call: Call, store: Store, after: int) -> Iterator[Entry]:
    """All entries after a position, as they come, for as long as somebody reads."""

    def read(after: int, limit: int) -> list[Entry]:
        return enduring(call, store, lambda: store.entries(after, limit))

    return follow(read, begin_after(call, store, after), call.wait)


def enduring(call: Call, store: Store, look: Callable[[], T]) -> T:
    """What a look finds. A store that is away, as while its server starts anew, is waited for."""
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
