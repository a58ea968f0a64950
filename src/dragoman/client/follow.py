"""Following the ledger: a stream that begins again where it broke off, or else pages.

Nothing is missed, and nothing comes twice.
"""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from math import inf
from typing import Final

import msgspec

from dragoman.client import requests
from dragoman.client.errors import BadAnswer
from dragoman.client.requests import Wanted
from dragoman.client.shapes import Event, EventPage
from dragoman.client.wire import Frame, NoStream, StreamLost, Wire
from dragoman.engine.subscribe import Gap

GAP: Final = "gap"
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


async def follow(
    wire: Wire,
    wanted: Wanted,
    after: int | None,
    on_gap: OnGap = log_gap,
    first_frame_s: float = FIRST_FRAME_S,
) -> AsyncGenerator[Event]:
    """Yield events after a position (None: from now on), without end."""
    at = await _end(wire) if after is None else after
    with suppress(NoStream):
        async with aclosing(_streamed(wire, wanted, at, on_gap, first_frame_s)) as streamed:
            async for event in streamed:
                at = event.position
                yield event
    async with aclosing(_paged(wire, wanted, at, on_gap)) as paged:
        async for event in paged:
            yield event


async def _end(wire: Wire) -> int:
    page: EventPage = await wire.ask(requests.end_of_ledger())
    return page.next


async def _streamed(
    wire: Wire, wanted: Wanted, at: int, on_gap: OnGap, first_frame_s: float
) -> AsyncGenerator[Event]:
    request = requests.stream(wanted)
    trying = wire.trying(request.path, inf)
    while True:
        try:
            async with wire.frames(request, at, first_frame_s) as frames:
                async for frame in frames:
                    trying.went_well()
                    if frame.event == GAP:
                        # We were too slow, and the stream skipped ahead: begin again with what the
                        # ledger has.
                        at = _within(at, _gap(frame).until, on_gap)
                        break
                    if frame.data:
                        event = _event(frame)
                        at = event.position
                        yield event
        except StreamLost as lost:
            await trying.pause(lost.later)


async def _paged(wire: Wire, wanted: Wanted, at: int, on_gap: OnGap) -> AsyncGenerator[Event]:
    while True:
        page: EventPage = await wire.ask(requests.events(wanted, at, _PAGE, _WAIT_MS))
        for event in page.events:
            yield event
        _within(at, page.next, on_gap)
        at = page.next


def _within(at: int, end: int, on_gap: OnGap) -> int:
    """Return the position to resume from: a restored ledger may end before what we have seen."""
    if end < at:
        on_gap(Gap(at, end))
    return min(at, end)


def _gap(frame: Frame) -> Gap:
    """Parse a gap: what a stream has left out, up to and including a position."""
    try:
        return msgspec.json.decode(frame.data, type=Gap)
    except msgspec.DecodeError as error:
        raise BadAnswer(f"the stream of the hub has a gap that cannot be read: {error}") from error


def _event(frame: Frame) -> Event:
    try:
        return msgspec.json.decode(frame.data, type=Event)
    except msgspec.DecodeError as error:
        raise BadAnswer(
            f"the stream has a frame that this client does not understand ({error}): its version "
            "and the hub's are too far apart"
        ) from None
