"""Following the ledger from a cursor: every entry once, in order. A hint only shortens the wait."""

from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from dragoman.engine.ports import Store
from dragoman.ledger.entry import Entry

_PAGE = 1_000


class Gap(Struct, frozen=True):
    """A cursor beyond the ledger's end, and the position from which its reader goes on."""

    after: int
    until: int


def find_gap(store: Store, after: int) -> Gap | None:
    """The gap of a cursor beyond the ledger's end, as after the restore of a backup.

    A reader that kept such a cursor would miss every entry up to it.
    """
    end = store.head()
    return Gap(after, end) if after > end else None


def follow(
    read: Callable[[int, int], Sequence[Entry]], after: int, wait: Callable[[], bool]
) -> Iterator[Entry]:
    """Entries after the cursor as they are committed; `read` takes (after, limit), as a store does,
    and `wait` returns False to end.

    Positions are gapless and become visible in order, so the cursor is the last one seen.
    """
    while True:
        page = read(after, _PAGE)
        for entry in page:
            after = entry.position
            yield entry
        if len(page) < _PAGE and not wait():
            return
