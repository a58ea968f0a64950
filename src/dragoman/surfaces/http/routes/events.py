"""The ledger over HTTP: `GET /v1/events` (pages, with a long poll) and `GET /v1/stream` (SSE)."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Raw, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.core.event_table import EVENT_NAMES
from dragoman.core.limits import MAX_PAGE_BYTES
from dragoman.engine.ports import Gap, find_gap
from dragoman.engine.queries.tasks import find_task_stream
from dragoman.engine.queries.visibility import EntrySource
from dragoman.engine.schemas.tasks import EntryResource
from dragoman.surfaces.http.context import MAX_WAIT_MS, AppContext, Call, open_waiter
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.errors import encode, problem_error
from dragoman.surfaces.http.fanout import (
    MAX_WRITE_BYTES,
    WRITER,
    EntryFilter,
    RawWriter,
    TraceFilter,
    Waiter,
    coalesce,
    encode_trace,
    read_frames,
    select_data,
)
from dragoman.surfaces.http.parameters import After, Limit, TaskHistoryFilter

# --- pages ------------------------------------------------------------------------------------

EVENT_TYPES = tuple(EVENT_NAMES.values())

EVENT_FAMILIES = tuple(dict.fromkeys(name.partition(".")[0] for name in EVENT_TYPES))

_MAX_PAGES = 200
"""Pages of the ledger that are searched for one response."""


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
    """A page whose entries are encoded already."""

    events: list[Raw]
    next: int
    gap: Gap | UnsetType = UNSET


async def parse_filter(call: Call, query: EntryFilterQuery) -> EntryFilter:
    """Parse the filters of a query."""
    if query.type and query.type not in EVENT_TYPES and query.type not in EVENT_FAMILIES:
        known = ", ".join((*EVENT_FAMILIES, *EVENT_TYPES))
        raise problem_error(
            "invalid_request", f"{query.type!a} is not an event; known: {known}", "type"
        )
    stream = await call.context.find_or_raise(find_task_stream, query.task) if query.task else ""
    events = _dialect_events(call, query.dialect)
    return EntryFilter(stream, query.type, query.agent, events, call.reader)


def _dialect_events(call: Call, name: str) -> frozenset[str] | None:
    if not name:
        return None
    events = call.context.find_dialect(name, "dialect").events
    return frozenset(EVENT_NAMES[event] for event in events)


async def list_events(call: Call) -> _EncodedPage:
    """List entries after a position; if there is none yet, those that come within the wait."""
    query: EventsQuery = call.query
    entry_filter = await parse_filter(call, query)
    context, monotonic = call.context, call.context.deps.monotonic
    if not query.wait:
        return await asyncio.to_thread(
            _read_page, context.entries, query.after, query.limit, entry_filter
        )
    feed, after, end = context.feed, query.after, monotonic() + query.wait / 1_000
    async with open_waiter(context, call.request) as waiter:
        while True:
            # With an open waiter, new entries are read and encoded by the feed, once for all.
            seen_head = feed.head
            frames = feed.kept_frames(after, entry_filter) if after <= seen_head else None
            page = (
                await asyncio.to_thread(
                    _read_page, context.entries, after, query.limit, entry_filter
                )
                if frames is None
                else _to_page(
                    *select_data(frames, entry_filter, after, query.limit, MAX_PAGE_BYTES)
                )
            )
            remaining = end - monotonic()
            if page.events or page.gap or remaining <= 0 or waiter.is_closed:
                return page
            after = page.next
            if feed.head == seen_head:
                await waiter.wait(remaining)


def _read_page(
    source: EntrySource, after: int, limit: int, entry_filter: EntryFilter
) -> _EncodedPage:
    page = _to_page(*read_frames(source, entry_filter, after, limit, MAX_PAGE_BYTES, _MAX_PAGES))
    gap = None if page.events else find_gap(source.store, after)
    return page if gap is None else _EncodedPage([], gap.until, gap)


def _to_page(events: Iterable[bytes], reached: int) -> _EncodedPage:
    """Build a page of entries, without the lines of a server-sent event around each."""
    return _EncodedPage([Raw(one.partition(b"\ndata: ")[2][:-2]) for one in events], reached)


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
        return EventStream(call.context, await _trace_filter_of(call, query), after)
    return EventStream(call.context, await parse_filter(call, query), after)


def _check_filters(query: StreamQuery) -> None:
    """Refuse a filter of the other form, which would have no effect."""
    known = _FILTERS_BY_FORM[query.form]
    for name in {
        name for names in _FILTERS_BY_FORM.values() for name in names if name not in known
    }:
        if getattr(query, name):
            detail = f"a stream with form={query.form} has no filter {name!r}; known: "
            raise problem_error("invalid_request", detail + ", ".join(known), name)


async def _trace_filter_of(call: Call, query: StreamQuery) -> TraceFilter:
    """Parse the filters for trace events; `type` is one of theirs then."""
    stream = await call.context.find_or_raise(find_task_stream, query.task) if query.task else ""
    task = stream.partition(":")[2]
    return TraceFilter(task, query.type, query.session, call.reader)


EVENT_STREAM = "text/event-stream"

_STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]

_MAX_DIRECT_WRITES = 2
"""Writes in a row to a reader that had caught up; with more to come, others go first."""

MAX_WAITING_EVENTS = 1_024
"""Events of traces that may wait for a reader that had caught up; more are coalesced."""


class EventStream(Response):
    """The response: a head, then frames until the reader disconnects.

    A reader that had caught up and has fallen too far behind skips ahead, with a gap event. The
    reader of traces gets thoughts and terminal lines coalesced, with a mark; if that is not enough,
    its stream ends, and it reconnects with its position.
    """

    def __init__(
        self, context: AppContext, frame_filter: EntryFilter | TraceFilter, after: int | None
    ) -> None:
        super().__init__()
        self._context = context
        self._filter = frame_filter
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = self._context
        scope["progress"].is_stream = True
        is_trace = isinstance(self._filter, TraceFilter)
        async with open_waiter(context, Request(scope, receive), traces=is_trace) as waiter:
            await send({"type": "http.response.start", "status": 200, "headers": _STREAM_HEADERS})
            context.metrics.readers += 1
            try:
                if scope["method"] != "HEAD":
                    reader = StreamReader(context, self._filter, scope.get(WRITER), self._after)
                    async for chunk in reader.chunks(waiter):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                context.metrics.readers -= 1
            await send({"type": "http.response.body", "body": b"", "more_body": False})


class StreamReader:
    """The position of a reader, whether it is written to inline or by its coroutine."""

    def __init__(
        self,
        context: AppContext,
        frame_filter: EntryFilter | TraceFilter,
        writer: RawWriter | None,
        after: int | None,
    ) -> None:
        self._context = context
        self._feed = context.feed
        self._filter = frame_filter
        self._writer = writer
        self._monotonic = context.deps.monotonic
        self._timeouts = context.deps.timeouts
        is_trace = isinstance(frame_filter, TraceFilter)
        self._max_lag = MAX_WAITING_EVENTS if is_trace else self._timeouts.max_lag
        self._had_caught_up = after is None
        self._position = self._feed.head if after is None else after
        self._last_write_at = self._monotonic()

    async def chunks(self, waiter: Waiter) -> AsyncGenerator[bytes]:
        """Yield what is not written inline, until the waiter is closed."""
        feed = self._feed
        yield b"retry: 1000\n\n"
        # Another process may have written entries that the feed has not read yet.
        ahead = self._position > feed.head
        gap = await self._context.read(find_gap, self._position) if ahead else None
        if gap is not None:
            yield self._skip(gap)
        while not waiter.is_closed:
            keepalive_in = self._last_write_at + self._timeouts.keepalive - self._monotonic()
            is_caught_up = self._position >= feed.head
            if is_caught_up and keepalive_in > 0:
                self._had_caught_up = True
                await waiter.wait(keepalive_in, self._write_new)
                continue
            if keepalive_in <= 0:
                # Also while it skips entries that do not match, which may take long.
                yield b": still here\n\nid: %d\n\n" % self._position
                self._last_write_at = self._monotonic()
            if is_caught_up:
                continue
            if self._had_caught_up and self._is_too_far_behind():
                for chunk in self._overtake(waiter):
                    yield chunk
                self._last_write_at = self._monotonic()
                continue
            kept = feed.next_chunk(self._position, self._filter)
            chunk, self._position = (
                await feed.read_older(self._position, self._filter)
                if kept is None
                else (kept.data, kept.position)
            )
            if chunk:
                yield chunk
                self._last_write_at = self._monotonic()
            await asyncio.sleep(0)  # others go first

    def _write_new(self) -> bool:
        """Write new entries to a reader that had caught up; return False if it has not caught up
        again."""
        feed, writer = self._feed, self._writer
        if writer is None or feed.head - self._position > self._max_lag:
            return False
        for _ in range(_MAX_DIRECT_WRITES):
            chunk = feed.next_chunk(self._position, self._filter)
            if chunk is None or not writer.write(chunk):
                return False
            if chunk.data:
                self._last_write_at = self._monotonic()
            self._position = chunk.position
            if self._position >= feed.head:
                return True
        return False

    def _skip(self, gap: Gap) -> bytes:
        """Go on behind a gap; it may lead back, from a position beyond the end."""
        self._context.metrics.gaps += 1
        self._position = gap.until
        return b"id: %d\nevent: gap\ndata: %s\n\n" % (gap.until, encode(gap))

    def _is_too_far_behind(self) -> bool:
        lag = self._feed.head - self._position
        is_trace = isinstance(self._filter, TraceFilter)
        is_kept = self._feed.kept_frames(self._position, self._filter, 0) is not None
        return lag > self._max_lag or (is_trace and not is_kept)

    def _overtake(self, waiter: Waiter) -> Iterator[bytes]:
        """Yield what a reader gets that has fallen too far behind."""
        if not isinstance(self._filter, TraceFilter):
            yield self._skip(Gap(self._position, self._feed.head))
            return
        kept = self._feed.kept_frames(self._position, self._filter)
        events = [one.trace for one in kept or () if one.trace and self._filter.select(one)]
        if len(events) > MAX_WAITING_EVENTS:
            events = coalesce(events)
        if kept is None or len(events) > MAX_WAITING_EVENTS:
            # The reader reconnects by itself, with this position.
            yield b"id: %d\nevent: lagged\ndata: {}\n\n" % self._position
            waiter.close()
            return
        self._position = self._feed.head
        yield from _in_writes(map(encode_trace, events))


def _in_writes(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Join parts up to the size of one write."""
    joined = b""
    for part in parts:
        if joined and len(joined) + len(part) > MAX_WRITE_BYTES:
            yield joined
            joined = b""
        joined += part
    if joined:
        yield joined


ENDPOINTS = (
    Endpoint("GET", "/v1/events", list_events, EventPage, query=EventsQuery),
    Endpoint("GET", "/v1/stream", open_stream, query=StreamQuery, media_type=EVENT_STREAM),
)
