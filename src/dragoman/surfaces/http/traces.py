"""Traces over HTTP: the turns of a task, what happened in it, and both live as SAOP has them."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.bus.local import Subscription, SubscriptionClosed
from dragoman.core.moments import to_rfc3339
from dragoman.engine.reads.ask import find_task_stream
from dragoman.engine.reads.traces import TraceEvent, trace_page
from dragoman.engine.reads.turns import (
    CURSOR_DESCRIPTION,
    CURSOR_PATTERN,
    MissingTurns,
    TurnView,
    turn_page,
)
from dragoman.engine.subscribe import Gap, find_gap
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.gap import gap_frame
from dragoman.surfaces.http.history import After, Limit
from dragoman.surfaces.http.office import AppContext, Call
from dragoman.surfaces.http.problems import encode, problem_error
from dragoman.surfaces.http.seat import Waiter, call_in_loop
from dragoman.surfaces.http.waiting import open_waiter

STREAM_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


class TurnsQuery(Query, frozen=True):
    """Filters for turns."""

    attempt: (
        Annotated[
            int,
            Meta(
                ge=-(2**53) + 1,
                le=2**53 - 1,
                description="Only of this attempt; below 0: of an agent that held none.",
            ),
        ]
        | UnsetType
    ) = UNSET
    after: Annotated[
        int, Meta(ge=-1, le=2**53 - 1, description="Begin after this turn of the attempt.")
    ] = -1
    limit: Limit = 100
    cursor: Annotated[
        str,
        Meta(
            pattern=CURSOR_PATTERN,
            description="`cursor` of the page before.",
            extra={"reason": CURSOR_DESCRIPTION},
        ),
    ] = ""


class TurnRow(Struct, frozen=True):
    """A recorded turn, and its position in the ledger."""

    position: int
    attempt: int
    masked: bool
    recorded_at: str
    envelope: dict[str, Any]
    by: str = ""
    """The agent that recorded it, for a turn that stands beside the attempts."""
    beside: int | None = None
    """The attempt beside which it stands; null if it belongs to an attempt."""


class TurnPage(Struct, frozen=True):
    """Turns in their order; `missing` are those that have not come, by attempt."""

    task: str
    turns: list[TurnRow]
    gaps: tuple[int, ...]
    """Indexes of turns that have not come, in any attempt; the first 1,000."""
    missing: tuple[MissingTurns, ...]
    more: bool
    cursor: str
    """The `cursor` of the next page."""


async def list_turns(call: Call) -> TurnPage:
    """List the turns of a task, whatever the order in which they came."""
    query: TurnsQuery = call.query
    task = await _task_id(call)
    attempt = None if query.attempt is UNSET else query.attempt
    if query.after >= 0 and attempt is None:
        detail = "after counts turns of one attempt: name it, or go on with the cursor of a page"
        raise problem_error("invalid_request", detail, "attempt")
    page = await call.context.read(turn_page, task, attempt, query.after, query.limit, query.cursor)
    rows = list(map(_turn_row, page.turns))
    return TurnPage(task, rows, page.gaps, page.missing, page.more, page.cursor)


def _turn_row(turn: TurnView) -> TurnRow:
    at = to_rfc3339(turn.at)
    return TurnRow(
        turn.position, turn.attempt, turn.masked, at, turn.envelope, turn.by, turn.beside
    )


class TraceQuery(Query, frozen=True):
    """Filters for trace events."""

    session: Annotated[str, Meta(max_length=256, description="Only of this session.")] = ""
    after: After = 0
    limit: Limit = 100


class TraceRow(Struct, frozen=True):
    """An event in the form of SAOP, and its position in the ledger."""

    position: int
    masked: bool
    event: dict[str, Any]


class TracePage(Struct, frozen=True):
    """Events, oldest first; `next` is the `after` of the next request, at the end too.

    With a `gap` the ledger does not go as far as `after`: `next` is its end.
    """

    task: str
    events: list[TraceRow]
    next: int
    gap: Gap | UnsetType = UNSET


async def show_trace(call: Call) -> TracePage:
    """Show what happened while a task was worked on, its own transitions included."""
    query: TraceQuery = call.query
    task = await _task_id(call)
    page = await call.context.read(
        trace_page, task=task, session=query.session, after=query.after, limit=query.limit
    )
    rows = [TraceRow(told.position, told.masked, told.event) for told in page.events]
    return TracePage(task, rows, page.next, page.gap or UNSET)


async def _task_id(call: Call) -> str:
    stream = await call.context.find_or_raise(find_task_stream, call.path_params["name"])
    return stream.partition(":")[2]


class TraceStream(Response):
    """Trace events as they happen, in the form of SAOP, until the reader disconnects.

    For a slow reader, thoughts and terminal lines are coalesced, with a mark; if that is not
    enough, its stream ends, and it reconnects from its position.
    """

    def __init__(
        self, context: AppContext, matches: Callable[[TraceEvent], bool], after: int | None
    ) -> None:
        super().__init__()
        self._office = context
        self._matches = matches
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        context = self._office
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
        keepalive = self._office.deps.timeouts.keepalive
        yield b"retry: 1000\n\n"
        if gap is not None:
            yield gap_frame(self._office, gap)
        while not waiter.is_closed:
            try:
                events = (
                    await asyncio.to_thread(subscription.take)
                    if subscription.is_behind
                    else subscription.take()
                )
            except SubscriptionClosed as closed:
                # Its reader reconnects by itself, with this position.
                yield b"id: %d\nevent: closed\ndata: {}\n\n" % closed.cursor
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


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/tasks/{name}/turns",
        "Show the turns of a task",
        list_turns,
        TurnPage,
        query=TurnsQuery,
    ),
    Endpoint(
        "GET",
        "/v1/tasks/{name}/trace",
        "Show the trace of a task",
        show_trace,
        TracePage,
        query=TraceQuery,
    ),
)
