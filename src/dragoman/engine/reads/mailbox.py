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
from dragoman.engine.ports import Listed, ListQuery, Row, Store
from dragoman.engine.reads.ask import decode, state_of
from dragoman.engine.subscribe import Gap, gap_at
from dragoman.ledger.entry import read_line

_PAGE = 100
_NAMED = 5
"""Limit of letters that a refusal names."""
SHORTEST = 4
"""Shortest prefix of an id that is searched for."""
LAST = 2**53 - 1
"""After every position: a list that is read backwards from here is read from its end."""
MOST_LOOKED_AT = 5_000
"""A page ends early after so many items that do not match."""
MOST_BYTES = 4 * 1024 * 1024
"""A page ends with the item with which it becomes as long as this."""


class Letter(Struct, frozen=True):
    """A letter and its position in the ledger, which is its position in every box."""

    position: int
    mail: Mail


class Page(Struct, frozen=True):
    """Some letters of a list, and the cursor of the next page."""

    letters: tuple[Letter, ...]
    cursor: int
    """The position up to which the list was read."""
    more: bool = False
    """True if the list goes on: a page may end early, even before the first match."""
    gap: Gap | None = None
    """The gap, if the ledger does not reach the requested position: `cursor` is then its end."""

    @property
    def way_on(self) -> dict[str, Any]:
        """Fields of a reply that let a reader go on: cursor, and what it may have missed."""
        told: dict[str, Any] = {"cursor": self.cursor, "more": self.more}
        if self.gap is not None:
            told["gap"] = asdict(self.gap)
        return told


def is_nothing(answer: Mapping[str, Any]) -> bool:
    """True for a page in JSON that a reader may wait on: no letters, no further page, no gap."""
    return not (answer["messages"] or answer["more"] or "gap" in answer)


Fits = Callable[[Mail], bool]


def _every(_: Mail) -> bool:
    return True


def find_letter(store: Store, id: str, fits: Fits = _every) -> Mail | Refusal:
    """The letter with this id, or the only one whose id begins so; ids of the hub are in lower
    case, and are found in upper case too."""
    malformed = check_id(id, "letter id")
    if malformed is not None:
        return malformed
    named = (_named(store, name) for name in dict.fromkeys((id, id.lower())))
    row = next((one for one in named if one is not None), None)
    if isinstance(row, Refusal):
        return row
    mail = None if row is None else state_of(store, row)
    return mail if isinstance(mail, Mail) and fits(mail) else _no_letter(id)


def _named(store: Store, id: str) -> Row | Refusal | None:
    return store.stream(mail_stream(id)) or _only_one(store, id)


def _no_letter(id: str) -> Refusal:
    if len(id) < SHORTEST:
        return missing.letter(id, f"a prefix of an id needs at least {SHORTEST} characters")
    return missing.letter(id)


def _only_one(store: Store, beginning: str) -> Row | Refusal | None:
    """The only letter whose id begins so; a refusal names several, if the prefix is ambiguous."""
    if len(beginning) < SHORTEST:
        return None
    stream = mail_stream(beginning)
    near = store.kind("mail", beginning, _NAMED + 1)
    found = [row for row in near if row.name.startswith(stream)]
    if len(found) < 2:
        return found[0] if found else None
    names = [row.name.partition(":")[2] for row in found]
    more = " and others" if len(names) > _NAMED else ""
    return Refusal(
        "ambiguous_name",
        f"several letters have an id that begins with {beginning}: {', '.join(names[:_NAMED])}"
        f"{more}; write more characters",
    )


def page_of(
    store: Store, query: ListQuery, fits: Fits = _every, besides: Iterable[Listed] = ()
) -> Page:
    """A page of a list, with the letters that match.

    `additional` are items of other lists, or that this one will have, in its order, from where the
    query begins.
    """
    newest_first = query.before is not None
    merged = merge(walk(store, query), besides, key=_position, reverse=newest_first)
    places = (next(same) for _, same in groupby(merged, key=_position))
    if query.before is not None:
        begin = 0 if query.before == LAST else query.before  # 0: no position
        return page_from(store, places, query.limit, begin, fits)
    page = page_from(store, places, query.limit, query.after, fits)
    gap = None if page.letters else gap_at(store, query.after)
    return page if gap is None else Page((), gap.until, gap=gap)


def page_from(
    store: Store,
    places: Iterable[Listed],
    limit: int,
    begin: int,
    fits: Fits = _every,
) -> Page:
    """A page of these items; nothing is read beyond its end."""
    found: list[Letter] = []
    cursor, size = begin, 0
    for looked_at, place in enumerate(places):
        if len(found) == limit or looked_at == MOST_LOOKED_AT or size >= MOST_BYTES:
            return Page(tuple(found), cursor, more=True)
        cursor = place.position
        mail = state_of(store, place.row)
        if isinstance(mail, Mail) and fits(mail):
            found.append(Letter(place.position, mail))
            size += len(place.row.state)
    return Page(tuple(found), cursor)


def _position(place: Listed) -> int:
    return place.position


def late_by(store: Store, query: ListQuery, now: int) -> list[Listed]:
    """The letters that are overdue and not escalated yet: only a running hub escalates."""
    places = list[Listed]()
    for stream in store.overdue(now, MOST_LOOKED_AT):
        row = store.stream(stream) if stream.startswith(mail_stream("")) else None
        first = () if row is None else store.history(stream, 0, 1)
        places += [Listed(entry.position, row) for entry in first if row is not None]
    before = LAST if query.before is None else query.before
    wanted = (place for place in places if query.after < place.position < before)
    return sorted(wanted, key=_position, reverse=query.before is not None)


def refusal_of(store: Store, letter: Letter) -> str:
    """The refusal of what a letter asks for; empty: it was not refused.

    Such a refusal is the next entry after the letter, with the same cause.
    """
    first, *behind = store.entries(letter.position - 1, 2)
    posted = read_line(first.line)
    for entry in behind:
        event = decode(entry)
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
    fits: Fits = _every,
) -> Page:
    """A page of a thread; that of a bead has all letters about it, in any thread
    (S-MAIL-8)."""
    query = ListQuery(f"thread:{thread}", after, before, limit)
    return page_of(store, query, fits, walk(store, replace(query, list=f"bead:{thread}")))


def last_of(store: Store, thread: str, limit: int, before: int = LAST, fits: Fits = _every) -> Page:
    """The last matching letters of a thread, or those before a position, in their order."""
    page = thread_page(store, thread, limit, before=before, fits=fits)
    return replace(page, letters=page.letters[::-1])


def whole_list(store: Store, name: str) -> Iterator[Letter]:
    """Every letter of a list, oldest first."""
    for place in walk(store, ListQuery(name, limit=_PAGE)):
        mail = state_of(store, place.row)
        if isinstance(mail, Mail):
            yield Letter(place.position, mail)


def walk(store: Store, query: ListQuery) -> Iterator[Listed]:
    """The items of a list, from where the query begins to its end.

    First only as many as a page needs if all of them match, and one more that shows that it goes
    on.
    """
    after, before, at_once = query.after, query.before, min(query.limit + 1, _PAGE)
    while listed := store.listed(ListQuery(query.list, after, before, at_once)):
        yield from listed
        if len(listed) < at_once:
            return
        last, at_once = listed[-1].position, _PAGE
        after, before = (last, None) if before is None else (after, last)
