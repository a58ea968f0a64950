"""Server-sent events: the ledger and traces, from any position on, as they happen."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.bus.trace_bus import Subscription, SubscriptionClosed
from dragoman.engine.ports import Gap, find_gap
from dragoman.engine.queries.traces import TraceEvent
from dragoman.surfaces.http.context import AppContext, open_waiter
from dragoman.surfaces.http.errors import encode
from dragoman.surfaces.http.feed import EntryFilter, Feed
from dragoman.surfaces.http.raw_writer import RawWriter, writer_of
from dragoman.surfaces.http.waiter import Waiter, call_in_loop

# --- gaps -------------------------------------------------------------------------------------


def gap_frame(context: AppContext, gap: Gap) -> bytes:
    """Encode a gap as a server-sent event; it may lead back, from a position beyond the end."""
    context.metrics.gaps += 1
    return b"id: %d\nevent: gap\ndata: %s\n\n" % (gap.until, encode(gap))


# --- the ledger -------------------------------------------------------------------------------

EVENT_STREAM = "text/event-stream"

_MAX_DIRECT_WRITES = 2
"""Writes in a row to a reader that had caught up; with more to come, others go first."""


class LedgerStream(Response):
    """The response: a head, then frames until the reader disconnects."""

    def __init__(self, context: AppContext, entry_filter: EntryFilter, after: int | None) -> None:
        super().__init__()
        self._context = context
        self._entry_filter = entry_filter
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = self._context
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
        feed, timeouts = self._context.feed, self._context.deps.timeouts
        monotonic = self._context.deps.monotonic
        start = feed.head if self._after is None else self._after
        was_caught_up = self._after is None
        yield b"retry: 1000\n\n"
        # Another process may have written entries that the feed has not read yet.
        gap = None if start <= feed.head else await self._context.read(find_gap, start)
        if gap is not None:
            yield gap_frame(self._context, gap)
            start = gap.until
        reader = _StreamReader(self._context, self._entry_filter, writer, start)
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
                yield gap_frame(self._context, Gap(reader.position, head))
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


# --- traces -----------------------------------------------------------------------------------

STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class TraceStream(Response):
    """Trace events as they happen, in the form of SAOP, until the reader disconnects.

    For a slow reader, thoughts and terminal lines are coalesced, with a mark; if that is not
    enough, its stream ends, and it reconnects from its position.
    """

    def __init__(
        self, context: AppContext, matches: Callable[[TraceEvent], bool], after: int | None
    ) -> None:
        super().__init__()
        self._context = context
        self._matches = matches
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = self._context
        scope["progress"].is_stream = True
        async with open_waiter(context, Request(scope, receive)) as waiter:
            wake = partial(call_in_loop, waiter.loop, waiter.notify)
            gap = None if self._after is None else await context.read(find_gap, self._after)
            after = self._after if gap is None else gap.until
            subscription = await asyncio.to_thread(
                context.bus.subscribe, after, self._matches, wake=wake
            )
            context.metrics.readers += 1
            try:
                await send(
                    {"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS}
                )
                if scope["method"] != "HEAD":
                    async for chunk in self._chunks(subscription, waiter, gap):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                context.metrics.readers -= 1
                context.bus.unsubscribe(subscription)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(
        self, subscription: Subscription, waiter: Waiter, gap: Gap | None
    ) -> AsyncGenerator[bytes]:
        keepalive = self._context.deps.timeouts.keepalive
        yield b"retry: 1000\n\n"
        if gap is not None:
            yield gap_frame(self._context, gap)
        while not waiter.is_closed:
            try:
                events = (
                    await asyncio.to_thread(subscription.take)
                    if subscription.is_behind
                    else subscription.take()
                )
            except SubscriptionClosed as closed:
                # Its reader reconnects by itself, with this position.
                yield b"id: %d\nevent: lagged\ndata: {}\n\n" % closed.cursor
                return
            if events:
                yield b"".join(map(trace_frame, events))
            elif not subscription.is_behind and not await waiter.wait(keepalive):
                yield b": still here\n\nid: %d\n\n" % subscription.cursor


def trace_frame(event: TraceEvent) -> bytes:
    """Encode a trace event as a server-sent event."""
    name = event.type.encode()
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.position, name, encode(event.event))


def trace_filter(task: str, type: str, session: str = "") -> Callable[[TraceEvent], bool]:
    """Return a predicate for the trace events that a reader wants; an empty value matches any."""

    def matches(event: TraceEvent) -> bool:
        return (
            task in ("", event.task) and type in ("", event.type) and event.is_in_session(session)
        )

    return matches
