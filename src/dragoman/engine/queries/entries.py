"""Streams and lists: entries, decoded events, folded states, and records found by their id."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

from dragoman.core.base import Event
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff
from dragoman.core.ids import check_id, handoff_stream, intent_stream, wave_stream, workq_stream
from dragoman.core.intent.state import Intent
from dragoman.core.not_found import handoff, intent, wave, work_item
from dragoman.core.wave import Wave
from dragoman.core.work_queue import WorkItem
from dragoman.engine.ports import ListItem, ListQuery, Store, StreamRow
from dragoman.ledger.entry import CODEC, Entry, read_line
from dragoman.ledger.stream_state import FOLD_VERSION, State, load_state, replay

# --- entries ----------------------------------------------------------------------------------

ENTRY_PAGE = 1_000


def all_entries(store: Store, after: int = 0, *, until: int | None = None) -> Iterator[Entry]:
    """Every entry after a position, in order."""
    while page := store.entries(after, ENTRY_PAGE, until=until):
        yield from page
        after = page[-1].position


def stream_entries(
    store: Store, stream: str, after: int = 0, *, until: int | None = None, page: int = ENTRY_PAGE
) -> Iterator[Entry]:
    """Every entry of one stream after a version, in order; so many are read at once."""
    while entries := store.history(stream, after, page, until=until):
        yield from entries
        after = entries[-1].version


def version_at(store: Store, stream: str, position: int) -> int:
    """The version of a stream's last entry up to a position; 0: it has none. Both rise together."""
    row = store.stream(stream)
    low, high = 0, 0 if row is None else row.version
    while low < high:
        middle = (low + high + 1) // 2
        if store.history(stream, middle - 1, 1)[0].position <= position:
            low = middle
        else:
            high = middle - 1
    return low


def decode_event(entry: Entry) -> Event:
    """The event that an entry holds."""
    line = read_line(entry.line)
    return CODEC.decode(line.event, line.v, line.body)


# --- states -----------------------------------------------------------------------------------


def stream_state(store: Store, row: StreamRow, version: int = 0) -> State | None:
    """The state of a stored row, as it is now or was after this entry."""
    if version not in (0, row.version):
        return replay(entry.line for entry in islice(stream_entries(store, row.name), version))
    lines = (
        ()
        if row.fold_version == FOLD_VERSION
        else (entry.line for entry in stream_entries(store, row.name))
    )
    return load_state(row.name, row.fold_version, row.state, lines)


Found = TypeVar("Found")

_FOUND_BY_ID: Mapping[type, tuple[str, Callable[[str], str], Callable[[str], Refusal]]] = {
    Handoff: ("handoff id", handoff_stream, handoff),
    Intent: ("intent id", intent_stream, intent),
    Wave: ("wave id", wave_stream, wave),
    WorkItem: ("item id", workq_stream, work_item),
}
"""Kind of record -> what its id is called, its stream, and the refusal if there is none."""


def find_by_id(store: Store, id: str, kind: type[Found], version: int = 0) -> Found | Refusal:
    """The record of this kind with this id, as it is now or was after this entry of its stream."""
    what, stream, not_found = _FOUND_BY_ID[kind]
    malformed = check_id(id, what)
    if malformed is not None:
        return malformed
    row = store.stream(stream(id))
    state = None if row is None else stream_state(store, row, version)
    return state if isinstance(state, kind) else not_found(id)


# --- lists ------------------------------------------------------------------------------------

LIST_PAGE = 100

END_OF_LIST = 2**53 - 1
"""After every position: a list that is read backwards from here is read from its end."""

MAX_SCANNED = 5_000
"""A page ends early after so many items that do not match."""

MAX_PAGE_BYTES = 4 * 1024 * 1024
"""A page ends with the item with which it becomes as long as this."""


def walk_list(store: Store, query: ListQuery, page: int = LIST_PAGE) -> Iterator[ListItem]:
    """The items of a list, from where the query begins to its end.

    First only as many as a page needs if all of them match, and one more that shows that it goes
    on.
    """
    after, before, at_once = query.after, query.before, min(query.limit + 1, page)
    while listed := store.list_page(ListQuery(query.list, after, before, at_once)):
        yield from listed
        if len(listed) < at_once:
            return
        last, at_once = listed[-1].position, page
        after, before = (last, None) if before is None else (after, last)
