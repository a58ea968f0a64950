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
"""So many letters are named where several are meant."""
SHORTEST = 4
"""So much of an id has to be said."""
LAST = 2**53 - 1
"""Behind every position: a list that is read back from here is read from its end."""
MOST_LOOKED_AT = 5_000
"""Of letters that do not fit a filter, so many are passed over before a page ends early."""
MOST_BYTES = 4 * 1024 * 1024
"""A page ends with the letter with which it becomes as long as this."""


class Letter(Struct, frozen=True):
    """A letter and where it stands in the ledger, which is its place in every box."""

    position: int
    mail: Mail


class Page(Struct, frozen=True):
    """Some letters of a list, and where the next page begins."""

    letters: tuple[Letter, ...]
    cursor: int
    """The position up to which the list was looked at."""
    more: bool = False
    """Whether the list goes on: a page may end early, even before the first letter that fits."""
    gap: Gap | None = None
    """Where the page was asked for, if the ledger does not go so far: `cursor` is its end."""

    @property
    def way_on(self) -> dict[str, Any]:
        """How a reader goes on, and what it may have missed, in the words of streams."""
        told: dict[str, Any] = {"cursor": self.cursor, "more": self.more}
        if self.gap is not None:
            told["gap"] = asdict(self.gap)
        return told


def is_nothing(answer: Mapping[str, Any]) -> bool:
    """Whether a page, as it is told, has nothing for which its reader must not wait."""
    return not (answer["messages"] or answer["more"] or "gap" in answer)


Fits = Callable[[Mail], bool]


def _every(_: Mail) -> bool:
    return True


def find_letter(store: Store, id: str, fits: Fits = _every) -> Mail | Refusal:
    """The letter with this id, or the only one whose id begins so; ids that the hub gives are in
    lower case, and found by capitals too.
    """
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
        return missing.letter(id, f"of the beginning of an id write at least {SHORTEST} characters")
    return missing.letter(id)


def _only_one(store: Store, beginning: str) -> Row | Refusal | None:
    """The letter whose id begins so; a refusal names several, if it is not clear which is meant."""
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
        f"{more}; write more of it",
    )


def page_of(
    store: Store, query: ListQuery, fits: Fits = _every, besides: Iterable[Listed] = ()
) -> Page:
    """A page of a list, of those letters only that fit.

    `besides` are places of other lists, or that this one will have, in its order, from where the
    query begins.
    """
    newest_first = query.before is not None
    merged = merge(walk(store, query), besides, key=_position, reverse=newest_first)
    places = (next(same) for _, same in groupby(merged, key=_position))
    if query.before is not None:
        begin = 0 if query.before == LAST else query.before  # where nothing is, there is no place
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
    """A page of what stands at these places; nothing is read that is behind its end."""
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
    """The letters that are late by now and of which that was not told yet: a hub that is not
    running tells nobody.
    """
    places = list[Listed]()
    for stream in store.overdue(now, MOST_LOOKED_AT):
        row = store.stream(stream) if stream.startswith(mail_stream("")) else None
        first = () if row is None else store.history(stream, 0, 1)
        places += [Listed(entry.position, row) for entry in first if row is not None]
    before = LAST if query.before is None else query.before
    wanted = (place for place in places if query.after < place.position < before)
    return sorted(wanted, key=_position, reverse=query.before is not None)


def refusal_of(store: Store, letter: Letter) -> str:
    """Why what a letter asks for was refused; empty: it was not.

    What is refused besides a letter stands right behind it, with the same cause.
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
    """A page of a thread; that of a bead has all letters about it, wherever they were put
    (S-MAIL-8).
    """
    query = ListQuery(f"thread:{thread}", after, before, limit)
    return page_of(store, query, fits, walk(store, replace(query, list=f"bead:{thread}")))


def last_of(store: Store, thread: str, limit: int, before: int = LAST, fits: Fits = _every) -> Page:
    """The last letters of a thread that fit, or those before a place, in their order."""
    page = thread_page(store, thread, limit, before=before, fits=fits)
    return replace(page, letters=page.letters[::-1])


def whole_list(store: Store, name: str) -> Iterator[Letter]:
    """Every letter of a list, oldest first."""
    for place in walk(store, ListQuery(name, limit=_PAGE)):
        mail = state_of(store, place.row)
        if isinstance(mail, Mail):
            yield Letter(place.position, mail)


def walk(store: Store, query: ListQuery) -> Iterator[Listed]:
    """The places of a list, from where the query begins to its end.

    First no more than a page needs that all of them fit, and the one that shows that it goes on.
    """
    after, before, at_once = query.after, query.before, min(query.limit + 1, _PAGE)
    while listed := store.listed(ListQuery(query.list, after, before, at_once)):
        yield from listed
        if len(listed) < at_once:
            return
        last, at_once = listed[-1].position, _PAGE
        after, before = (last, None) if before is None else (after, last)
