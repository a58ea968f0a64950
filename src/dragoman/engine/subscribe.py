"""Following the ledger from a cursor: every entry once, in order. A hint only shortens the wait."""

from collections.abc import Callable, Iterator

from dragoman.engine.ports import Store
from dragoman.ledger.entry import Entry

_PAGE = 1_000


def follow(store: Store, after: int, wait: Callable[[], bool]) -> Iterator[Entry]:
    """Entries after the cursor as they are committed; `wait` returns False to end.

    Positions are gapless and become visible in order, so the cursor is the last one seen.
    """
    while True:
        page = store.entries(after, _PAGE)
        for entry in page:
            after = entry.position
            yield entry
        if len(page) < _PAGE and not wait():
            return
