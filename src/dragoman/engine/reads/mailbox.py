"""Reading letters: boxes, threads, and what is still open."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core import missing
from dragoman.core.errors import Refusal
from dragoman.core.events import CommandRefused
from dragoman.core.ids import check_id, mail_stream
from dragoman.core.states.letter import Mail
from dragoman.engine.ports import ListItem, ListQuery, Store, StreamRow
from dragoman.engine.reads.ask import decode_event, stream_state
from dragoman.engine.subscribe import Gap, find_gap
from dragoman.ledger.entry import read_line

_LIST_PAGE = 100
_MAX_NAMED = 5
"""Limit of letters that a refusal names."""
MIN_ID_PREFIX = 4
"""Shortest prefix of an id that is searched for."""
END_OF_LIST = 2**53 - 1
"""After every position: a list that is read backwards from here is read from its end."""
MAX_SCANNED = 5_000
"""A page ends early after so many items that do not match."""
MAX_PAGE_BYTES = 4 * 1024 * 1024
"""A page ends with the item with which it becomes as long as this."""


class Letter(Struct, frozen=True):
    """A letter and its position in the ledger, which is its position in every box."""

    position: int
    mail: Mail


class MailPage(Struct, frozen=True):
    """Some letters of a list, and the cursor of the next page."""

    letters: tuple[Letter, ...]
    cursor: int
    """The position up to which the list was read."""
    more: bool = False
    """True if the list goes on: a page may end early, even before the first match."""
    gap: Gap | None = None
    """The gap, if the ledger does not reach the requested position: `cursor` is then its end."""

    @property
    def continuation(self) -> dict[str, Any]:
        """Fields of a reply that let a reader go on: cursor, and what it may have missed."""
        continuation: dict[str, Any] = {"cursor": self.cursor, "more": self.more}
        if self.gap is not None:
            continuation["gap"] = asdict(self.gap)
        return continuation


def is_empty_page(answer: Mapping[str, Any]) -> bool:
    """True for a page in JSON that a reader may wait on: no letters, no further page, no gap."""
    return not (answer["messages"] or answer["more"] or "gap" in answer)


MailFilter = Callable[[Mail], bool]


def _any_mail(_: Mail) -> bool:
    return True


def find_letter(store: Store, id: str, matches: MailFilter = _any_mail) -> Mail | Refusal:
    """The letter with this id, or the only one whose id begins so; ids of the hub are in lower
    case, and are found in upper case too."""
    malformed = check_id(id, "letter id")
    if malformed is not None:
        return malformed
    named = (_find_mail_row(store, name) for name in dict.fromkeys((id, id.lower())))
    row = next((one for one in named if one is not None), None)
    if isinstance(row, Refusal):
        return row
    mail = None if row is None else stream_state(store, row)
    return mail if isinstance(mail, Mail) and matches(mail) else _letter_not_found(id)


def _find_mail_row(store: Store, id: str) -> StreamRow | Refusal | None:
    return store.stream(mail_stream(id)) or _find_by_prefix(store, id)


def _letter_not_found(id: str) -> Refusal:
    if len(id) < MIN_ID_PREFIX:
        return missing.letter(id, f"a prefix of an id needs at least {MIN_ID_PREFIX} characters")
    return missing.letter(id)


def _find_by_prefix(store: Store, beginning: str) -> StreamRow | Refusal | None:
    """The only letter whose id begins so; a refusal names several, if the prefix is ambiguous."""
    if len(beginning) < MIN_ID_PREFIX:
        return None
    stream = mail_stream(beginning)
    near = store.streams_of_kind("mail", beginning, _MAX_NAMED + 1)
    found = [row for row in near if row.name.startswith(stream)]
    if len(found) < 2:
        return found[0] if found else None
    names = [row.name.partition(":")[2] for row in found]
    more = " and others" if len(names) > _MAX_NAMED else ""
    return Refusal(
        "ambiguous_name",
        f"several letters have an id that begins with {beginning}: {', '.join(names[:_MAX_NAMED])}"
        f"{more}; write more characters",
    )


def mail_page(
    store: Store,
    query: ListQuery,
    matches: MailFilter = _any_mail,
    additional: Iterable[ListItem] = (),
) -> MailPage:
    """A page of a list, with the letters that match.

    `additional` are items of other lists, or that this one will have, in its order, from where the
    query begins.
    """
    newest_first = query.before is not None
    merged = merge(walk_list(store, query), additional, key=_item_position, reverse=newest_first)
    items = (next(same) for _, same in groupby(merged, key=_item_position))
    if query.before is not None:
        begin = 0 if query.before == END_OF_LIST else query.before  # 0: no position
        return page_from_items(store, items, query.limit, begin, matches)
    page = page_from_items(store, items, query.limit, query.after, matches)
    gap = None if page.letters else find_gap(store, query.after)
    return page if gap is None else MailPage((), gap.until, gap=gap)


def page_from_items(
    store: Store,
    items: Iterable[ListItem],
    limit: int,
    begin: int,
    matches: MailFilter = _any_mail,
) -> MailPage:
    """A page of these items; nothing is read beyond its end."""
    found: list[Letter] = []
    cursor, size = begin, 0
    for looked_at, place in enumerate(items):
        if len(found) == limit or looked_at == MAX_SCANNED or size >= MAX_PAGE_BYTES:
            return MailPage(tuple(found), cursor, more=True)
        cursor = place.position
        mail = stream_state(store, place.row)
        if isinstance(mail, Mail) and matches(mail):
            found.append(Letter(place.position, mail))
            size += len(place.row.state)
    return MailPage(tuple(found), cursor)


def _item_position(place: ListItem) -> int:
    return place.position


def late_mail(store: Store, query: ListQuery, now: int) -> list[ListItem]:
    """The letters that are overdue and not escalated yet: only a running hub escalates."""
    items = list[ListItem]()
    for stream in store.overdue_streams(now, MAX_SCANNED):
        row = store.stream(stream) if stream.startswith(mail_stream("")) else None
        first = () if row is None else store.history(stream, 0, 1)
        items += [ListItem(entry.position, row) for entry in first if row is not None]
    before = END_OF_LIST if query.before is None else query.before
    in_range = (place for place in items if query.after < place.position < before)
    return sorted(in_range, key=_item_position, reverse=query.before is not None)


def find_refusal(store: Store, letter: Letter) -> str:
    """The refusal of what a letter asks for; empty: it was not refused.

    Such a refusal is the next entry after the letter, with the same cause.
    """
    first, *behind = store.entries(letter.position - 1, 2)
    posted = read_line(first.line)
    for entry in behind:
        event = decode_event(entry)
        if read_line(entry.line).cause == posted.cause and isinstance(event, CommandRefused):
            return event.detail
    return ""


def thread_page(
    store: Store,
    thread: str,
    limit: int,
    *,
    after: int = 0,
    before: int | None = None,
    matches: MailFilter = _any_mail,
) -> MailPage:
    """A page of a thread; that of a bead has all letters about it, in any thread
    (S-MAIL-8)."""
    query = ListQuery(f"thread:{thread}", after, before, limit)
    return mail_page(store, query, matches, walk_list(store, replace(query, list=f"bead:{thread}")))


def last_in_thread(
    store: Store,
    thread: str,
    limit: int,
    before: int = END_OF_LIST,
    matches: MailFilter = _any_mail,
) -> MailPage:
    """The last matching letters of a thread, or those before a position, in their order."""
    page = thread_page(store, thread, limit, before=before, matches=matches)
    return replace(page, letters=page.letters[::-1])


def all_mail(store: Store, name: str) -> Iterator[Letter]:
    """Every letter of a list, oldest first."""
    for place in walk_list(store, ListQuery(name, limit=_LIST_PAGE)):
        mail = stream_state(store, place.row)
        if isinstance(mail, Mail):
            yield Letter(place.position, mail)


def walk_list(store: Store, query: ListQuery) -> Iterator[ListItem]:
    """The items of a list, from where the query begins to its end.

    First only as many as a page needs if all of them match, and one more that shows that it goes
    on.
    """
    after, before, at_once = query.after, query.before, min(query.limit + 1, _LIST_PAGE)
    while listed := store.list_page(ListQuery(query.list, after, before, at_once)):
        yield from listed
        if len(listed) < at_once:
            return
        last, at_once = listed[-1].position, _LIST_PAGE
        after, before = (last, None) if before is None else (after, last)
