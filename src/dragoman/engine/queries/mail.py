"""Mail: letters by id, boxes, threads, and which letters a reader may see."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core import not_found
from dragoman.core.actor import CommandRefused
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id, is_task_name, mail_stream
from dragoman.core.mail import Mail
from dragoman.core.task_state import BEAD_KIND
from dragoman.engine.ports import Gap, ListItem, ListQuery, Store, find_gap
from dragoman.engine.queries.entries import (
    END_OF_LIST,
    LIST_PAGE,
    MAX_PAGE_BYTES,
    MAX_SCANNED,
    decode_event,
    stream_state,
    walk_list,
)
from dragoman.engine.queries.tasks import find_task
from dragoman.ledger.entry import read_line

# --- letters and pages ------------------------------------------------------------------------


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
    malformed = check_id(id, "letter id")
    if malformed is not None:
        return malformed
    row = store.stream(mail_stream(id))
    mail = None if row is None else stream_state(store, row)
    return mail if isinstance(mail, Mail) and matches(mail) else not_found.letter(id)


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


def all_mail(store: Store, name: str, after: int = 0) -> Iterator[Letter]:
    """Every letter of a list after a position, oldest first."""
    for place in walk_list(store, ListQuery(name, after, limit=LIST_PAGE)):
        mail = stream_state(store, place.row)
        if isinstance(mail, Mail):
            yield Letter(place.position, mail)


# --- names of tasks in letters ----------------------------------------------------------------


def task_name_in_mail(name: str, store: Store) -> str:
    """The name of a task in letters; an unknown one is returned as it is."""
    if not is_task_name(name):
        return name
    own = name.removeprefix(f"{BEAD_KIND}:")
    found = find_task(store, f"{BEAD_KIND}:{own}") if ":" not in own else find_task(store, own)
    if isinstance(found, Refusal):
        found = find_task(store, own)
    return own if isinstance(found, Refusal) else found.task.mail_name


def find_thread(name: str, store: Store) -> str | Refusal:
    """The thread of this name, or else of the task with this name."""
    is_one = check_id(name, "thread") is None
    if is_one and store.list_page(ListQuery(f"thread:{name}", limit=1)):
        return name
    thread = task_name_in_mail(name, store)
    return check_id(thread, "thread") or thread
