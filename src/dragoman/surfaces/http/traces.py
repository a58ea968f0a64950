"""Traces over HTTP: the turns of a task, what happened in it, and both live as SAOP has them."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.bus.local import Closed, Subscription
from dragoman.core.moments import to_rfc3339
from dragoman.engine.reads.ask import find_stream
from dragoman.engine.reads.traces import Told, events_of
from dragoman.engine.reads.turns import (
    GIVEN_CURSOR,
    GIVEN_CURSOR_WORDS,
    Missing,
    ShownTurn,
    turns_of,
)
from dragoman.engine.subscribe import Gap, gap_at
from dragoman.surfaces.http.endpoint import Endpoint, Query
from dragoman.surfaces.http.gap import gap_frame
from dragoman.surfaces.http.history import After, Limit
from dragoman.surfaces.http.office import Call, Office
from dragoman.surfaces.http.problems import encode, stop
from dragoman.surfaces.http.seat import Seat, soon
from dragoman.surfaces.http.waiting import waiting

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
            pattern=GIVEN_CURSOR,
            description="`cursor` of the page before.",
            extra={"reason": GIVEN_CURSOR_WORDS},
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
    missing: tuple[Missing, ...]
    more: bool
    cursor: str
    """The `cursor` of the next page."""


async def turns(call: Call) -> TurnPage:
    """List the turns of a task, whatever the order in which they came."""
    query: TurnsQuery = call.query
    task = await _task(call)
    attempt = None if query.attempt is UNSET else query.attempt
    if query.after >= 0 and attempt is None:
        detail = "after counts turns of one attempt: name it, or go on with the cursor of a page"
        raise stop("invalid_request", detail, "attempt")
    page = await call.office.read(turns_of, task, attempt, query.after, query.limit, query.cursor)
    rows = list(map(_row, page.turns))
    return TurnPage(task, rows, page.gaps, page.missing, page.more, page.cursor)


def _row(turn: ShownTurn) -> TurnRow:
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


async def trace(call: Call) -> TracePage:
    """Show what happened while a task was worked on, its own transitions included."""
    query: TraceQuery = call.query
    task = await _task(call)
    page = await call.office.read(
        events_of, task=task, session=query.session, after=query.after, limit=query.limit
    )
    rows = [TraceRow(told.position, told.masked, told.event) for told in page.events]
    return TracePage(task, rows, page.next, page.gap or UNSET)


async def _task(call: Call) -> str:
    stream = await call.office.found(find_stream, call.path["name"])
    return stream.partition(":")[2]


class TraceStream(Response):
    """Trace events as they happen, in the form of SAOP, until the reader disconnects.

    For a slow reader, thoughts and terminal lines are coalesced, with a mark; if that is not
    enough, its stream ends, and it reconnects from its position.
    """

    def __init__(self, office: Office, wanted: Callable[[Told], bool], after: int | None) -> None:
        super().__init__()
        self._office = office
        self._wanted = wanted
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        office = self._office
        scope["progress"].is_stream = True
        async with waiting(office, Request(scope, receive)) as seat:
            wake = partial(soon, seat.loop, seat.ring)
            lost = None if self._after is None else await office.read(gap_at, self._after)
            after = self._after if lost is None else lost.until
            one = await asyncio.to_thread(office.bus.subscribe, after, self._wanted, wake=wake)
            office.metrics.readers += 1
            try:
                await send(
                    {"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS}
                )
                if scope["method"] != "HEAD":
                    async for chunk in self._chunks(one, seat, lost):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                office.metrics.readers -= 1
                office.bus.leave(one)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(
        self, one: Subscription, seat: Seat, lost: Gap | None
    ) -> AsyncGenerator[bytes]:
        beat = self._office.door.patience.beat
        yield b"retry: 1000\n\n"
        if lost is not None:
            yield gap_frame(self._office, lost)
        while not seat.gone:
            try:
                taken = await asyncio.to_thread(one.take) if one.is_behind else one.take()
            except Closed as closed:
                # Its reader reconnects by itself, with this position.
                yield b"id: %d\nevent: closed\ndata: {}\n\n" % closed.cursor
                return
            if taken:
                yield b"".join(map(frame, taken))
            elif not one.is_behind and not await seat.wait(beat):
                yield b": still here\n\nid: %d\n\n" % one.cursor


def frame(told: Told) -> bytes:
    """Encode a trace event as a server-sent event."""
    name = told.type.encode()
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (told.position, name, encode(told.event))


def choose(task: str, type: str, session: str = "") -> Callable[[Told], bool]:
    """Return a predicate for the trace events that a reader wants; an empty value matches any."""

    def wanted(told: Told) -> bool:
        return task in ("", told.task) and type in ("", told.type) and told.is_of(session)

    return wanted


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/tasks/{name}/turns",
        "Show the turns of a task",
        turns,
        TurnPage,
        query=TurnsQuery,
    ),
    Endpoint(
        "GET",
        "/v1/tasks/{name}/trace",
        "Show the trace of a task",
        trace,
        TracePage,
        query=TraceQuery,
    ),
)
