"""The ledger over HTTP in pages, with a wait for what comes next: for clients without streams."""

from typing import Annotated

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dragoman.core.events import EVENT_NAMES
from dragoman.core.limits import MAX_PAGE_BYTES
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task_stream
from dragoman.engine.shown.tasks import EntryResource, addressees, entry_resource
from dragoman.engine.subscribe import Gap, find_gap
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.feed import MATCH_ALL, EntryFilter, Feed
from dragoman.surfaces.http.history import After, Limit
from dragoman.surfaces.http.names import TaskHistoryFilter
from dragoman.surfaces.http.office import Call
from dragoman.surfaces.http.problems import problem_error
from dragoman.surfaces.http.waiting import MAX_WAIT_MS, open_waiter

EVENT_TYPES = tuple(EVENT_NAMES.values())
EVENT_FAMILIES = tuple(dict.fromkeys(name.partition(".")[0] for name in EVENT_TYPES))
_MAX_PAGES = 200
"""Pages of the ledger that are searched for one response."""
_PAGE_SIZE = 50
"""Few at a time: each entry may have sixteen megabytes."""


class EntryFilterQuery(Query, frozen=True):
    """Filters for entries of the ledger."""

    task: TaskHistoryFilter = ""
    type: Annotated[
        str,
        Meta(
            max_length=100,
            description="Only of this type (task.claimed) or family (task).",
            extra_json_schema={"enum": [*EVENT_FAMILIES, *EVENT_TYPES]},
        ),
    ] = ""
    agent: Annotated[
        str, Meta(max_length=300, description="Only what this agent did, or mail to it.")
    ] = ""
    dialect: Annotated[
        str, Meta(max_length=100, description="Only events that this dialect knows.")
    ] = ""


class EventsQuery(EntryFilterQuery, frozen=True):
    """Filters for entries, the position to begin after, and how long to wait."""

    after: After = 0
    limit: Limit = 100
    wait: Annotated[
        int,
        Meta(ge=0, le=MAX_WAIT_MS, description="How long to wait for the first one, in ms."),
    ] = 0


class EventPage(Struct, frozen=True):
    """Entries, oldest first; `next` is the `after` of the next request, at the end too.

    With a `gap` the ledger does not go as far as `after`: `next` is its end.
    """

    events: list[EntryResource]
    next: int
    gap: Gap | UnsetType = UNSET


class _EncodedPage(Struct, frozen=True):
    """A page of entries that are encoded already."""

    events: list[Raw]
    next: int
    gap: UnsetType = UNSET


async def parse_filter(call: Call, query: EntryFilterQuery) -> EntryFilter:
    """Parse the filters of a query."""
    if query.type and query.type not in EVENT_TYPES and query.type not in EVENT_FAMILIES:
        known = ", ".join((*EVENT_FAMILIES, *EVENT_TYPES))
        raise problem_error(
            "invalid_request", f"{query.type!a} is not an event; known: {known}", "type"
        )
    stream = await call.context.find_or_raise(find_task_stream, query.task) if query.task else ""
    entry_filter = EntryFilter(
        stream, query.type, query.agent, _dialect_events(call, query.dialect)
    )
    return MATCH_ALL if entry_filter == MATCH_ALL else entry_filter


def _dialect_events(call: Call, name: str) -> frozenset[str] | None:
    if not name:
        return None
    render = call.context.find_dialect(name, "dialect").renderers
    return frozenset(EVENT_NAMES[event] for event in render if render[event] is not None)


async def list_events(call: Call) -> "EventPage | _EncodedPage":
    """List entries after a position; if there is none yet, those that come within the wait."""
    query: EventsQuery = call.query
    entry_filter = await parse_filter(call, query)
    context, monotonic = call.context, call.context.deps.monotonic
    if not query.wait:
        return await context.read(_read_page, query.after, query.limit, entry_filter)
    after, end = query.after, monotonic() + query.wait / 1_000
    async with open_waiter(context, call.request) as waiter:
        while True:
            # With an open waiter, new entries are read and encoded by the feed, once for all.
            seen_head = context.feed.head
            page = _page_from_feed(
                context.feed, after, query.limit, entry_filter
            ) or await context.read(_read_page, after, query.limit, entry_filter)
            remaining = end - monotonic()
            if page.events or page.gap or remaining <= 0 or waiter.is_closed:
                return page
            after = page.next
            if context.feed.head == seen_head:
                await waiter.wait(remaining)


def _page_from_feed(
    feed: Feed, after: int, limit: int, entry_filter: EntryFilter
) -> "_EncodedPage | None":
    found = feed.frames_after(after, entry_filter, limit)
    return found and _EncodedPage([one.entry for one in found[0]], found[1])


def _read_page(store: Store, after: int, limit: int, entry_filter: EntryFilter) -> EventPage:
    found: list[EntryResource] = []
    size = 0
    for _ in range(_MAX_PAGES):
        page = store.entries(after, _PAGE_SIZE)
        for entry in page:
            shown = entry_resource(entry)
            if entry_filter.matches(shown.stream, shown.type, shown.actor, addressees(entry)):
                found.append(shown)
                size += len(entry.line)
            after = entry.position
            if len(found) == limit or size >= MAX_PAGE_BYTES:
                return EventPage(found, after)
        if len(page) < _PAGE_SIZE:
            break
    gap = find_gap(store, after)
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
