"""The ledger over HTTP in pages, with a wait for what comes next: for clients without streams."""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dragoman.core.events import EVENT_NAMES
from dragoman.core.limits import PAGE_BYTES
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_stream
from dragoman.engine.shown.tasks import ShownEntry, shown_entry, told_of
from dragoman.engine.subscribe import Gap, gap_at
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.feed import EVERYTHING, Feed, Filter
from dragoman.surfaces.http.history import After, Limit
from dragoman.surfaces.http.names import HistoryOf
from dragoman.surfaces.http.office import Call
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.http.waiting import MOST_WAIT_MS, waiting

NAMES = tuple(EVENT_NAMES.values())
FAMILIES = tuple(dict.fromkeys(name.partition(".")[0] for name in NAMES))
_LOOKS = 200
"""Pages of the ledger that are searched for one response."""
_PAGE = 50
"""Few at a time: each entry may have sixteen megabytes."""


class WantedQuery(Query, frozen=True):
    """Filters for entries of the ledger."""

    task: HistoryOf = ""
    type: Annotated[
        str,
        Meta(
            max_length=100,
            description="Only of this type (task.claimed) or family (task).",
            extra_json_schema={"enum": [*FAMILIES, *NAMES]},
        ),
    ] = ""
    agent: Annotated[
        str, Meta(max_length=300, description="Only what this agent did, or mail to it.")
    ] = ""
    dialect: Annotated[
        str, Meta(max_length=100, description="Only events that this dialect knows.")
    ] = ""


class EventsQuery(WantedQuery, frozen=True):
    """Filters for entries, the position to begin after, and how long to wait."""

    after: After = 0
    limit: Limit = 100
    wait: Annotated[
        int,
        Meta(ge=0, le=MOST_WAIT_MS, description="How long to wait for the first one, in ms."),
    ] = 0


class EventPage(Struct, frozen=True):
    """Entries, oldest first; `next` is the `after` of the next request, at the end too.

    With a `gap` the ledger does not go as far as `after`: `next` is its end.
    """

    events: list[ShownEntry]
    next: int
    gap: Gap | UnsetType = UNSET


class _WrittenPage(Struct, frozen=True):
    """A page of entries that are encoded already."""

    events: list[Raw]
    next: int
    gap: UnsetType = UNSET


async def wanted(call: Call, query: WantedQuery) -> Filter:
    """Parse the filters of a query."""
    if query.type and query.type not in NAMES and query.type not in FAMILIES:
        known = ", ".join((*FAMILIES, *NAMES))
        raise stop("invalid_request", f"{query.type!a} is not an event; known: {known}", "type")
    stream = await call.office.found(find_stream, query.task) if query.task else ""
    chosen = Filter(stream, query.type, query.agent, _spoken(call, query.dialect))
    return EVERYTHING if chosen == EVERYTHING else chosen


def _spoken(call: Call, name: str) -> frozenset[str] | None:
    if not name:
        return None
    render = call.office.dialect(name, "dialect").render
    return frozenset(EVENT_NAMES[event] for event in render if render[event] is not None)


async def list_events(call: Call) -> "EventPage | _WrittenPage":
    """List entries after a position; if there is none yet, those that come within the wait."""
    query: EventsQuery = call.query
    chosen = await wanted(call, query)
    office, monotonic = call.office, call.office.door.monotonic
    if not query.wait:
        return await office.read(_look, query.after, query.limit, chosen)
    after, end = query.after, monotonic() + query.wait / 1_000
    async with waiting(office, call.request) as seat:
        while True:
            # With an open waiter, new entries are read and encoded by the feed, once for all.
            seen = office.feed.head
            page = _kept(office.feed, after, query.limit, chosen) or await office.read(
                _look, after, query.limit, chosen
            )
            left = end - monotonic()
            if page.events or page.gap or left <= 0 or seat.gone:
                return page
            after = page.next
            if office.feed.head == seen:
                await seat.wait(left)


def _kept(feed: Feed, after: int, limit: int, chosen: Filter) -> "_WrittenPage | None":
    found = feed.since(after, chosen, limit)
    return found and _WrittenPage([one.entry for one in found[0]], found[1])


def _look(store: Store, after: int, limit: int, chosen: Filter) -> EventPage:
    found: list[ShownEntry] = []
    size = 0
    for _ in range(_LOOKS):
        page = store.entries(after, _PAGE)
        for entry in page:
            shown = shown_entry(entry)
            if chosen.passes(shown.stream, shown.type, shown.actor, told_of(entry)):
                found.append(shown)
                size += len(entry.line)
            after = entry.position
            if len(found) == limit or size >= PAGE_BYTES:
                return EventPage(found, after)
        if len(page) < _PAGE:
            break
    gap = gap_at(store, after)
    return EventPage(found, after) if gap is None else EventPage([], gap.until, gap)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/events",
        "Read the ledger, and wait for more",
        list_events,
        EventPage,
        query=EventsQuery,
    ),
)
