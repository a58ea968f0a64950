"""`GET /v1/stream`: the ledger as server-sent events, from any position on, as it happens."""

from collections.abc import AsyncGenerator
from typing import Any

from msgspec import UNSET, UnsetType
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from dragoman.surfaces.http.departure import until_gone
from dragoman.surfaces.http.endpoint import Endpoint
from dragoman.surfaces.http.events import WantedQuery, wanted
from dragoman.surfaces.http.feed import Feed, Filter, Seat
from dragoman.surfaces.http.office import Call, Office
from dragoman.surfaces.http.problems import encode, stop
from dragoman.surfaces.http.tasks import After

MEDIA = "text/event-stream"

_HEADERS = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_BEAT = b": still here\n\n"


class StreamQuery(WantedQuery, frozen=True):
    """Which entries, and from where on unless the header `Last-Event-ID` says so."""

    after: After | UnsetType = UNSET


async def stream(call: Call) -> Any:
    """Everything that is wanted, and goes on until the reader leaves."""
    query: StreamQuery = call.query
    chosen = await wanted(call, query)
    said = call.request.headers.get("last-event-id", "")
    if said and not (said.isascii() and said.isdigit() and len(said) <= 16):
        raise stop("invalid_request", f"Last-Event-ID {said[:40]!a} is not a position")
    after = None if query.after is UNSET else query.after
    return _Stream(call.office, chosen, int(said) if said else after)


class _Stream(Response):
    """The answer: a head, then frames for as long as somebody reads them."""

    def __init__(self, office: Office, chosen: Filter, after: int | None) -> None:
        super().__init__()
        self._office = office
        self._chosen = chosen
        self._after = after

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        office = self._office
        scope["progress"].is_stream = True
        async with office.feed.seat() as seat, until_gone(receive, seat):
            await send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            office.metrics.readers += 1
            try:
                if scope["method"] != "HEAD":
                    async for chunk in self._chunks(seat):
                        await send({"type": "http.response.body", "body": chunk, "more_body": True})
            finally:
                office.metrics.readers -= 1
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _chunks(self, seat: Seat) -> AsyncGenerator[bytes]:
        feed, patience = self._office.feed, self._office.door.patience
        at = feed.head if self._after is None else self._after
        was_level = self._after is None
        yield b"retry: 1000\n\n"
        while not seat.gone:
            if at >= feed.head:
                was_level = True
                if not await seat.wait(patience.beat):
                    yield _BEAT
                continue
            if was_level and feed.head - at > patience.behind:
                yield _gap(at, feed.head)
                at = feed.head
                self._office.metrics.gaps += 1
                continue
            chunk, at = await _next(feed, at, self._chosen)
            if chunk:
                yield chunk


async def _next(feed: Feed, at: int, chosen: Filter) -> tuple[bytes, int]:
    newest = feed.newest(at, chosen)
    return await feed.older(at, chosen) if newest is None else newest


def _gap(after: int, until: int) -> bytes:
    """What was left out: everything after one position, up to and including another."""
    data = encode({"after": after, "until": until})
    return b"id: %d\nevent: gap\ndata: %s\n\n" % (until, data)


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
