"""`GET /v1/stream`: the ledger as server-sent events, from any position on, as it happens."""

from collections.abc import AsyncGenerator, Callable
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.engine.reads.ask import find_stream
from dragoman.engine.reads.traces import Told
from dragoman.engine.subscribe import Gap, gap_at
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.events import WantedQuery, wanted
from dragoman.surfaces.http.feed import Feed, Filter
from dragoman.surfaces.http.gap import gap_frame
from dragoman.surfaces.http.history import After
from dragoman.surfaces.http.line import Line, line_of
from dragoman.surfaces.http.office import Call, Office
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.http.seat import Seat
from dragoman.surfaces.http.traces import STREAM_HEADERS, TraceStream, choose
from dragoman.surfaces.http.waiting import waiting

MEDIA = "text/event-stream"
_WRITES = 2
"""Writes in a row to a reader that had caught up; with more to come, others go first."""


_FILTERS = {"ledger": ("task", "type", "agent", "dialect"), "trace": ("task", "type", "session")}
"""The filters of each form."""


class StreamQuery(WantedQuery, frozen=True):
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


async def stream(call: Call) -> Any:
    """Stream everything that matches, until the reader disconnects."""
    query: StreamQuery = call.query
    said = call.request.headers.get("last-event-id", "")
    if said and not (said.isascii() and said.isdigit() and len(said) <= 16):
        raise stop(
            "invalid_request", f"Last-Event-ID {said[:40]!a} is not a position", "Last-Event-ID"
        )
    after = int(said) if said else None if query.after is UNSET else query.after
    _check_filters(query)
    if query.form == "trace":
        return TraceStream(call.office, await _traces(call, query), after)
    return _Stream(call.office, await wanted(call, query), after)


def _check_filters(query: StreamQuery) -> None:
    """Refuse a filter of the other form, which would have no effect."""
    known = _FILTERS[query.form]
    for name in {name for names in _FILTERS.values() for name in names if name not in known}:
        if getattr(query, name):
            has = f"a stream with form={query.form} has no filter {name!r}; known: "
            raise stop("invalid_request", has + ", ".join(known), name)


async def _traces(call: Call, query: StreamQuery) -> Callable[[Told], bool]:
    """Parse the filters for trace events; `type` is one of theirs then."""
    stream = await call.office.found(find_stream, query.task) if query.task else ""
    return choose(stream.partition(":")[2], query.type, query.session)


class _Stream(Response):
    """The response: a head, then frames until the reader disconnects."""

    def __init__(self, office: Office, chosen: Filter, after: int | None) -> None:
        super().__init__()
        self._office = office
        self._chosen = chosen
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        office = self._office
        scope["progress"].is_stream = True
        async with waiting(office, Request(scope, receive)) as seat:
            await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
            office.metrics.readers += 1
            try:
                if scope["method"] != "HEAD":
                    async for chunk in self._chunks(seat, line_of(scope)):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                office.metrics.readers -= 1
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, seat: Seat, line: Line | None) -> AsyncGenerator[bytes]:
        feed, patience = self._office.feed, self._office.door.patience
        monotonic = self._office.door.monotonic
        at = feed.head if self._after is None else self._after
        was_level = self._after is None
        yield b"retry: 1000\n\n"
        # Another process may have written entries that the feed has not read yet.
        lost = None if at <= feed.head else await self._office.read(gap_at, at)
        if lost is not None:
            yield gap_frame(self._office, lost)
            at = lost.until
        reader = _Reader(self._office, self._chosen, line, at)
        while not seat.gone:
            due = reader.told_at + patience.beat - monotonic()
            is_level = reader.at >= feed.head
            if is_level and due > 0:
                was_level = True
                await seat.wait(due, reader.tell)
                continue
            if due <= 0:
                # Also while it skips entries that do not match, which may take long.
                yield _beat(reader.at)
                reader.told_at = monotonic()
            if is_level:
                continue
            head = feed.head
            if was_level and head - reader.at > patience.behind:
                yield gap_frame(self._office, Gap(reader.at, head))
                reader.at = head
                continue
            chunk, reader.at = await _next(feed, reader.at, self._chosen)
            if chunk:
                yield chunk
                reader.told_at = monotonic()
            if reader.at < feed.head:
                await feed.turn(seat, patience.beat)


class _Reader:
    """The position of a reader, whether it is written to inline or by its coroutine."""

    def __init__(self, office: Office, chosen: Filter, line: Line | None, at: int) -> None:
        self._feed = office.feed
        self._monotonic = office.door.monotonic
        self._behind = office.door.patience.behind
        self._chosen = chosen
        self._line = line
        self.at = at
        self.told_at = self._monotonic()

    def tell(self) -> bool:
        """Write new entries to a reader that had caught up; return False if it has not caught up
        again."""
        feed, line = self._feed, self._line
        if line is None or feed.head - self.at > self._behind:
            return False
        for _ in range(_WRITES):
            newest = feed.newest(self.at, self._chosen)
            if newest is None or not line.write(newest.piece):
                return False
            if newest.piece.data:
                self.told_at = self._monotonic()
            self.at = newest.reached
            if self.at >= feed.head:
                return True
        return False


def _beat(at: int) -> bytes:
    """A keep-alive comment, and the position from which a reconnecting reader goes on."""
    return b": still here\n\nid: %d\n\n" % at


async def _next(feed: Feed, at: int, chosen: Filter) -> tuple[bytes, int]:
    newest = feed.newest(at, chosen)
    return await feed.older(at, chosen) if newest is None else (newest.piece.data, newest.reached)


ENDPOINTS = (
    Endpoint(
        "GET",
        "/v1/stream",
        "Follow the ledger as server-sent events",
        stream,
        query=StreamQuery,
        media=MEDIA,
    ),
)
