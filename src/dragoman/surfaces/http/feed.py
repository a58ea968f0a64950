"""The newest entries of the ledger for all who wait: read once, encoded once, handed to everyone.

One follower per process reads on after every hint, while there is anybody who waits. It keeps the
newest frames; whoever is further behind reads the ledger itself. A reader costs one cursor, however
slow it is, and never slows the follower.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Collection, Iterable
from contextlib import asynccontextmanager

from msgspec import Struct

from dragoman.engine.hints import Hints
from dragoman.engine.ports import Store
from dragoman.engine.shown import encode, shown_entry
from dragoman.ledger.entry import Entry
from dragoman.surfaces.http.problems import stop

PAGE = 500
KEPT = 8_192
"""So many of the newest frames are kept, at most twice as many until the oldest are dropped."""
KEPT_BYTES = 8 * 1024 * 1024
"""And so much of them, in the same way."""
MOST_BYTES = 48 * 1024
"""What goes out in one write, unless a single frame is longer."""
_AT_ONCE = 2
"""So many readers that are far behind read the ledger at a time; the others wait for their turn."""
_SHARED = 64
"""So many joined writes are kept for others at the same position, until the ledger grows."""

MAKES_READY = frozenset(
    {"task.created", "task.transitioned", "task.requeued", "task.unblocked", "task.edited"}
)
"""After an event of these names there may be work for somebody who found none before."""

_log = logging.getLogger("dragoman.http")


class Frame(Struct, frozen=True, gc=False):
    """An entry as a server-sent event, and what filters look at."""

    position: int
    stream: str
    event: str
    actor: str
    data: bytes


class Filter(Struct, frozen=True):
    """Which entries a reader wants; what is empty is any."""

    stream: str = ""
    type: str = ""
    """The name of an event, or the family before its dot."""
    agent: str = ""
    names: frozenset[str] | None = None
    """The events of which a dialect has something to say."""

    def passes(self, stream: str, event: str, actor: str) -> bool:
        """Whether the reader wants such an entry; `actor` is ROLE:NAME."""
        return (
            self.stream in ("", stream)
            and self.type in ("", event, event.partition(".")[0])
            and self.agent in ("", actor.partition(":")[2])
            and (self.names is None or event in self.names)
        )


EVERYTHING = Filter()


def frame(entry: Entry) -> Frame:
    """The frame of an entry."""
    shown = shown_entry(entry)
    return Frame(
        entry.position,
        entry.stream,
        entry.event,
        shown.actor,
        b"id: %d\nevent: %s\ndata: %s\n\n" % (entry.position, entry.event.encode(), encode(shown)),
    )


def join(frames: Iterable[Frame], wanted: Filter, after: int) -> tuple[bytes, int]:
    """As much of the frames as goes out in one write, and the position that is reached with it."""
    parts: list[bytes] = []
    size = 0
    for one in frames:
        if wanted is EVERYTHING or wanted.passes(one.stream, one.event, one.actor):
            if parts and size + len(one.data) > MOST_BYTES:
                break
            parts.append(one.data)
            size += len(one.data)
        after = one.position
    return b"".join(parts), after


class Seat:
    """The place of somebody who waits for the ledger to grow."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._rang = False
        self.gone = False
        """Whether there is nobody left to tell, or the hub is about to stop."""

    def ring(self) -> None:
        """End the wait, this one or the next."""
        self._rang = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def leave(self) -> None:
        """End the wait for good."""
        self.gone = True
        self.ring()

    async def wait(self, seconds: float) -> bool:
        """Wait for a ring; False when there was none in that time."""
        if not self._rang:
            self._waiter = self.loop.create_future()
            timer = self.loop.call_later(seconds, _give_up, self._waiter)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiter = None
        rang, self._rang = self._rang, False
        return rang


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Feed:
    """Follows the ledger for everyone who has a seat."""

    def __init__(self, store: Store, hints: Hints, look: float, kept: int = KEPT) -> None:
        self._store = store
        self._hints = hints
        self._look = look
        self._kept = kept
        self._seats: set[Seat] = set()
        self._follower: asyncio.Task[None] | None = None
        self._started: asyncio.Event = asyncio.Event()
        self._is_hinted = False
        self._frames: list[Frame] = []
        self._bytes = 0
        self._joined: dict[tuple[int, Filter], tuple[bytes, int]] = {}
        self._catching_up: asyncio.Semaphore = asyncio.Semaphore(_AT_ONCE)
        self._is_closed = False
        self.head = 0
        """The position that was followed to."""
        self.made_ready = 0
        """The last position of an event after which there may be work."""

    @property
    def seats(self) -> int:
        """How many wait."""
        return len(self._seats)

    @asynccontextmanager
    async def seat(self) -> AsyncGenerator[Seat]:
        """A seat; everything from `head` on is told to it."""
        if self._is_closed:
            raise stop("stopping", "the hub is about to stop; try again when it runs")
        seat = Seat()
        self._seats.add(seat)
        try:
            if self._follower is None:
                self._started = asyncio.Event()
                self._follower = asyncio.create_task(self._follow(self._started))
            await self._started.wait()
            yield seat
        finally:
            self._seats.discard(seat)
            if not self._seats and self._follower is not None:
                self._follower.cancel()
                self._follower = None

    def close(self) -> None:
        """Send everyone away, for good; may be called from any thread."""
        self._is_closed = True
        for seat in tuple(self._seats):
            _soon(seat.loop, seat.leave)

    def newest(self, after: int, wanted: Filter) -> tuple[bytes, int] | None:
        """What follows a position, for one write; None when so old a position is not kept."""
        key = (after, wanted)
        known = self._joined.get(key)
        if known is None:
            start = after + 1 - (self.head + 1 - len(self._frames))
            if start < 0:
                return None
            known = join(self._frames[start:], wanted, after)
            if len(self._joined) < _SHARED:
                self._joined[key] = known
        return known

    async def older(self, after: int, wanted: Filter) -> tuple[bytes, int]:
        """The same from the ledger, however old the position is."""
        async with self._catching_up:
            return await asyncio.to_thread(self._read_older, after, wanted)

    def _read_older(self, after: int, wanted: Filter) -> tuple[bytes, int]:
        return join(map(frame, self._store.entries(after, PAGE)), wanted, after)

    async def _follow(self, started: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        self._frames, self._bytes, self._joined, self._is_hinted = [], 0, {}, False
        self._catching_up = asyncio.Semaphore(_AT_ONCE)
        wake = asyncio.Event()

        def hint(_: Collection[str]) -> None:
            # Called by the writer: once until it is heard, and never an obstacle to it.
            if not self._is_hinted:
                self._is_hinted = True
                _soon(loop, wake.set)

        silence = self._hints.listen(hint)
        try:
            self.head = await asyncio.to_thread(self._store.head)
            started.set()
            while True:
                self._is_hinted = False
                wake.clear()
                if await self._read_on() < PAGE:
                    await _wait(wake, self._look)
        finally:
            silence()
            started.set()

    async def _read_on(self) -> int:
        try:
            frames = await asyncio.to_thread(self._read_new, self.head)
        except Exception:  # noqa: BLE001  those who wait must not wait for ever
            _log.exception("the ledger cannot be followed; trying again")
            return 0
        if frames:
            self._grow(frames)
        return len(frames)

    def _read_new(self, after: int) -> list[Frame]:
        return [frame(entry) for entry in self._store.entries(after, PAGE)]

    def _grow(self, frames: list[Frame]) -> None:
        self._frames += frames
        self._bytes += sum(len(one.data) for one in frames)
        self._drop_oldest()
        self._joined.clear()
        self.head = frames[-1].position
        for one in frames:
            if one.event in MAKES_READY:
                self.made_ready = one.position
        for seat in self._seats:
            seat.ring()

    def _drop_oldest(self) -> None:
        if len(self._frames) <= 2 * self._kept and self._bytes <= 2 * KEPT_BYTES:
            return
        kept = size = 0
        while kept < self._kept and size < KEPT_BYTES and kept < len(self._frames):
            kept += 1
            size += len(self._frames[-kept].data)
        del self._frames[:-kept]
        self._bytes = size


def _soon(loop: asyncio.AbstractEventLoop, deed: Callable[[], None]) -> None:
    try:
        loop.call_soon_threadsafe(deed)
    except RuntimeError:
        # The loop was closed: there is nobody left who waits.
        return


async def _wait(wake: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return
