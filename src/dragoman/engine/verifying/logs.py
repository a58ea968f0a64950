"""Are the rows of the logs what the entries beside them say? A part of `verify`."""

from collections.abc import Iterator
from typing import Final

from dragoman.core.errors import LedgerError
from dragoman.core.events import EVENT_NAMES
from dragoman.engine.ports import Store
from dragoman.ledger.codec import CODEC
from dragoman.ledger.entry import Entry, read_line
from dragoman.ledger.logs import LOG_ROWS, LogRow, log_row

_LOG_PAGE: Final = 1_000
_LAST_POSITION: Final = 2**53
_LOGGED_EVENTS: Final = frozenset(EVENT_NAMES[event] for event in LOG_ROWS)


def wrong_log_rows(store: Store) -> Iterator[tuple[int, str]]:
    """Positions at which a log row differs from its entry, and how."""
    after = 0
    while page := store.entries(after, _LOG_PAGE):
        end = page[-1].position
        rows = dict(store.log_rows(after, end))
        for entry in page:
            expected, stored = _expected_log_row(entry), rows.get(entry.position)
            if expected != stored:
                yield entry.position, _difference(expected, stored)
        after = end
    yield from (
        (at, "a row of the logs has no entry") for at, _ in store.log_rows(after, _LAST_POSITION)
    )


def _expected_log_row(entry: Entry) -> LogRow | None:
    if entry.event not in _LOGGED_EVENTS:
        return None
    try:
        line = read_line(entry.line)
        return log_row(CODEC.decode(line.event, line.v, line.body))
    except LedgerError:
        return None  # the check of the entries reports it


def _difference(expected: LogRow | None, stored: LogRow | None) -> str:
    if stored is None:
        return "its row in the logs is missing"
    return (
        "it has an unexpected row in the logs"
        if expected is None
        else "its row in the logs differs"
    )
