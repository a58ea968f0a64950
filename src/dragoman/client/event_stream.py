"""Event stream: follows the ledger by SSE, resuming where it broke off, or else by pages.

No event is missed, and none comes twice.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from math import inf
from typing import Final

import msgspec

from dragoman.client import requests
from dragoman.client.errors import BadAnswer
from dragoman.client.models import Event, EventPage
from dragoman.client.requests import EventFilter
from dragoman.client.transport import Frame, StreamLost, StreamUnavailable, Transport
from dragoman.engine.ports import Gap

GAP_EVENT: Final = "gap"
FIRST_FRAME_S: Final = 10.0
_PAGE: Final = 100
_WAIT_MS: Final = 20_000
_log = logging.getLogger("dragoman.client")


OnGap = Callable[[Gap], None]
"""Called if the ledger ends before what was seen of it: what follows is not what followed then."""


def log_gap(gap: Gap) -> None:
    """Log a gap, where no callback is given."""
    _log.warning(
        "the ledger ends at %d, before %d: following it from its end", gap.until, gap.after
    )


async def follow_events(
    transport: Transport,
    event_filter: EventFilter,
    after: int | None,
    on_gap: OnGap = log_gap,
    first_frame_s: float = FIRST_FRAME_S,
) -> AsyncGenerator[Event]:
    """Yield events after a position (None: from now on), without end."""
    position = await _last_position(transport) if after is None else after
    with suppress(StreamUnavailable):
        async with aclosing(
            _follow_stream(transport, event_filter, position, on_gap, first_frame_s)
        ) as streamed:
            async for event in streamed:
                position = event.position
                yield event
    async with aclosing(_follow_pages(transport, event_filter, position, on_gap)) as paged:
        async for event in paged:
            yield event


async def _last_position(transport: Transport) -> int:
    page: EventPage = await transport.send(requests.last_position())
    return page.next


async def _follow_stream(
    transport: Transport,
    event_filter: EventFilter,
    position: int,
    on_gap: OnGap,
    first_frame_s: float,
) -> AsyncGenerator[Event]:
    request = requests.open_stream(event_filter)
    retries = transport.start_retries(request.path, inf)
    while True:
        try:
            async with transport.open_stream(request, position, first_frame_s) as frames:
                async for frame in frames:
                    retries.reset()
                    if frame.event == GAP_EVENT:
                        # We were too slow, and the stream skipped ahead: begin again with what the
                        # ledger has.
                        position = _resume_position(position, _parse_gap(frame).until, on_gap)
                        break
                    if frame.data:
                        event = _parse_event(frame)
                        position = event.position
                        yield event
        except StreamLost as stream_lost:
            await retries.pause(stream_lost.retry_after)


async def _follow_pages(
    transport: Transport, event_filter: EventFilter, position: int, on_gap: OnGap
) -> AsyncGenerator[Event]:
    while True:
        page: EventPage = await transport.send(
            requests.list_events(event_filter, position, _PAGE, _WAIT_MS)
        )
        for event in page.events:
            yield event
        _resume_position(position, page.next, on_gap)
        position = page.next


def _resume_position(position: int, end: int, on_gap: OnGap) -> int:
    """Return the position to resume from: a restored ledger may end before what we have seen."""
    if end < position:
        on_gap(Gap(position, end))
    return min(position, end)


def _parse_gap(frame: Frame) -> Gap:
    """Parse a gap: what a stream has left out, up to and including a position."""
    try:
        return msgspec.json.decode(frame.data, type=Gap)
    except msgspec.DecodeError as error:
        raise BadAnswer(f"the stream of the hub has a gap that cannot be read: {error}") from error


def _parse_event(frame: Frame) -> Event:
    try:
        return msgspec.json.decode(frame.data, type=Event)
    except msgspec.DecodeError as error:
        raise BadAnswer(
            f"the stream has a frame that this client does not understand ({error}): its version "
            "and the hub's are too far apart"
        ) from None
