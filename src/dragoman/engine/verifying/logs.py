"""Are the rows of the logs what the entries beside them say? A part of `verify`."""

from collections.abc import Iterator
from typing import Final

from dragoman.core.errors import LedgerError
from dragoman.core.events import EVENT_NAMES
from dragoman.engine.ports import Store
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.logs import LOGS, Log, log_of

_PAGE: Final = 1_000
_END: Final = 2**53
_NAMES: Final = frozenset(EVENT_NAMES[event] for event in LOGS)


def wrong_logs(store: Store) -> Iterator[tuple[int, str]]:
    """Positions at which a log row differs from its entry, and how."""
    after = 0
    while page := store.entries(after, _PAGE):
        end = page[-1].position
        rows = dict(store.logs(after, end))
        for entry in page:
            said, kept = _said(entry), rows.get(entry.position)
            if said != kept:
                yield entry.position, _difference(said, kept)
        after = end
    yield from ((at, "a row of the logs has no entry") for at, _ in store.logs(after, _END))


def _said(entry: Entry) -> Log | None:
    if entry.event not in _NAMES:
        return None
    try:
        line = read_line(entry.line)
        return log_of(CODEC.decode(line.event, line.v, line.body))
    except LedgerError:
        return None  # the check of the entries reports it


def _difference(said: Log | None, kept: Log | None) -> str:
    if kept is None:
        return "its row in the logs is missing"
    return "it has an unexpected row in the logs" if said is None else "its row in the logs differs"
