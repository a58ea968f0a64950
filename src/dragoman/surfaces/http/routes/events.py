"""The ledger over HTTP: `GET /v1/events` (pages, with a long poll) and `GET /v1/stream` (SSE)."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.limits import MAX_PAGE_BYTES
from dragoman.engine.ports import Gap, Store, find_gap
from dragoman.engine.queries.tasks import find_task_stream
from dragoman.engine.queries.traces import TraceEvent
from dragoman.engine.schemas.tasks import EntryResource, addressees, entry_resource
from dragoman.surfaces.http.context import MAX_WAIT_MS, Call, open_waiter
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.feed import MATCH_ALL, EntryFilter, Feed
from dragoman.surfaces.http.parameters import After, Limit, TaskHistoryFilter
from dragoman.surfaces.http.sse import EVENT_STREAM, LedgerStream, TraceStream, trace_filter

# --- pages ------------------------------------------------------------------------------------

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


# --- stream -----------------------------------------------------------------------------------

_FILTERS_BY_FORM = {
    "ledger": ("task", "type", "agent", "dialect"),
    "trace": ("task", "type", "session"),
}
"""The filters of each form."""


class StreamQuery(EntryFilterQuery, frozen=True):
    """Filters for the stream; `Last-Event-ID` overrides the position to begin after."""

    after: After | UnsetType = UNSET
    type: Annotated[
        str,
        Meta(
            max_length=100,
            description="Only of this type (task.claimed; THOUGHT_STREAM) or family (task).",
        ),
    ] = ""
    form: Annotated[
        Literal["ledger", "trace"],
        Meta(description="Entries of the ledger, or events of traces in their own form."),
    ] = "ledger"
    session: Annotated[
        str, Meta(max_length=256, description="With form=trace: only of this session.")
    ] = ""


async def open_stream(call: Call) -> Any:
    """Stream everything that matches, until the reader disconnects."""
    query: StreamQuery = call.query
    last_event_id = call.request.headers.get("last-event-id", "")
    if last_event_id and not (
        last_event_id.isascii() and last_event_id.isdigit() and len(last_event_id) <= 16
    ):
        raise problem_error(
            "invalid_request",
            f"Last-Event-ID {last_event_id[:40]!a} is not a position",
            "Last-Event-ID",
        )
    after = int(last_event_id) if last_event_id else None if query.after is UNSET else query.after
    _check_filters(query)
    if query.form == "trace":
        return TraceStream(call.context, await _trace_filter_of(call, query), after)
    return LedgerStream(call.context, await parse_filter(call, query), after)


def _check_filters(query: StreamQuery) -> None:
    """Refuse a filter of the other form, which would have no effect."""
    known = _FILTERS_BY_FORM[query.form]
    for name in {
        name for names in _FILTERS_BY_FORM.values() for name in names if name not in known
    }:
        if getattr(query, name):
            detail = f"a stream with form={query.form} has no filter {name!r}; known: "
            raise problem_error("invalid_request", detail + ", ".join(known), name)


async def _trace_filter_of(call: Call, query: StreamQuery) -> Callable[[TraceEvent], bool]:
    """Parse the filters for trace events; `type` is one of theirs then."""
    stream = await call.context.find_or_raise(find_task_stream, query.task) if query.task else ""
    return trace_filter(stream.partition(":")[2], query.type, query.session)


STREAM_ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/stream",
        "Follow the ledger as server-sent events",
        open_stream,
        query=StreamQuery,
        media_type=EVENT_STREAM,
    ),
)
