"""`GET /v1/stream`: the ledger as server-sent events, from any position on, as it happens."""

from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.engine.reads.ask import find_task_stream
from dragoman.engine.reads.traces import TraceEvent
from dragoman.engine.subscribe import Gap, find_gap
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.events import EntryFilterQuery, parse_filter
from dragoman.surfaces.http.feed import EntryFilter, Feed
from dragoman.surfaces.http.gap import gap_frame
from dragoman.surfaces.http.history import After
from dragoman.surfaces.http.line import RawWriter, writer_of
from dragoman.surfaces.http.office import AppContext, Call
from dragoman.surfaces.http.problems import problem_error
from dragoman.surfaces.http.seat import Waiter
from dragoman.surfaces.http.traces import STREAM_HEADERS, TraceStream, trace_filter
from dragoman.surfaces.http.waiting import open_waiter

EVENT_STREAM = "text/event-stream"
_MAX_DIRECT_WRITES = 2
"""Writes in a row to a reader that had caught up; with more to come, others go first."""


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


class LedgerStream(Response):
    """The response: a head, then frames until the reader disconnects."""

    def __init__(self, context: AppContext, entry_filter: EntryFilter, after: int | None) -> None:
        super().__init__()
        self._office = context
        self._entry_filter = entry_filter
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = self._office
        scope["progress"].is_stream = True
        async with open_waiter(context, Request(scope, receive)) as waiter:
            await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
            context.metrics.readers += 1
            try:
                if scope["method"] != "HEAD":
                    async for chunk in self._chunks(waiter, writer_of(scope)):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                context.metrics.readers -= 1
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, waiter: Waiter, writer: RawWriter | None) -> AsyncGenerator[bytes]:
        feed, timeouts = self._office.feed, self._office.deps.timeouts
        monotonic = self._office.deps.monotonic
        start = feed.head if self._after is None else self._after
        was_caught_up = self._after is None
        yield b"retry: 1000\n\n"
        # Another process may have written entries that the feed has not read yet.
        gap = None if start <= feed.head else await self._office.read(find_gap, start)
        if gap is not None:
            yield gap_frame(self._office, gap)
            start = gap.until
        reader = _StreamReader(self._office, self._entry_filter, writer, start)
        while not waiter.is_closed:
            keepalive_in = reader.last_write_at + timeouts.keepalive - monotonic()
            is_caught_up = reader.position >= feed.head
            if is_caught_up and keepalive_in > 0:
                was_caught_up = True
                await waiter.wait(keepalive_in, reader.write_new)
                continue
            if keepalive_in <= 0:
                # Also while it skips entries that do not match, which may take long.
                yield _keepalive_frame(reader.position)
                reader.last_write_at = monotonic()
            if is_caught_up:
                continue
            head = feed.head
            if was_caught_up and head - reader.position > timeouts.max_lag:
                yield gap_frame(self._office, Gap(reader.position, head))
                reader.position = head
                continue
            chunk, reader.position = await _read_next_chunk(
                feed, reader.position, self._entry_filter
            )
            if chunk:
                yield chunk
                reader.last_write_at = monotonic()
            if reader.position < feed.head:
                await feed.yield_turn(waiter, timeouts.keepalive)


class _StreamReader:
    """The position of a reader, whether it is written to inline or by its coroutine."""

    def __init__(
        self,
        context: AppContext,
        entry_filter: EntryFilter,
        writer: RawWriter | None,
        position: int,
    ) -> None:
        self._feed = context.feed
        self._monotonic = context.deps.monotonic
        self._max_lag = context.deps.timeouts.max_lag
        self._entry_filter = entry_filter
        self._writer = writer
        self.position = position
        self.last_write_at = self._monotonic()

    def write_new(self) -> bool:
        """Write new entries to a reader that had caught up; return False if it has not caught up
        again."""
        feed, writer = self._feed, self._writer
        if writer is None or feed.head - self.position > self._max_lag:
            return False
        for _ in range(_MAX_DIRECT_WRITES):
            chunk = feed.next_chunk(self.position, self._entry_filter)
            if chunk is None or not writer.write(chunk.encoded):
                return False
            if chunk.encoded.data:
                self.last_write_at = self._monotonic()
            self.position = chunk.position
            if self.position >= feed.head:
                return True
        return False


def _keepalive_frame(position: int) -> bytes:
    """A keep-alive comment, and the position from which a reconnecting reader goes on."""
    return b": still here\n\nid: %d\n\n" % position


async def _read_next_chunk(
    feed: Feed, position: int, entry_filter: EntryFilter
) -> tuple[bytes, int]:
    chunk = feed.next_chunk(position, entry_filter)
    return (
        await feed.read_older(position, entry_filter)
        if chunk is None
        else (chunk.encoded.data, chunk.position)
    )


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
