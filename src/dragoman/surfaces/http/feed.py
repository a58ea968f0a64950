"""The newest entries of the ledger for all who wait: read once, encoded once, handed to everyone.

One follower per process reads on after every hint, while there is anybody who waits. It keeps the
newest frames; whoever is further behind reads the ledger itself. A reader costs one cursor, however
slow it is, and never slows the follower; of very many, each is told as often as `turns` has it.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager

from msgspec import Raw, Struct

from dragoman.engine.handle import OnCommit
from dragoman.engine.hints import Hints
from dragoman.engine.ports import Store
from dragoman.engine.shown.tasks import encode, shown_entry, told_of
from dragoman.engine.tail import Tail
from dragoman.ledger.entry import Entry
from dragoman.surfaces.http.line import Piece, piece
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.http.seat import Seat, soon
from dragoman.surfaces.http.turns import Turns

PAGE = 500
_FEW = 50
"""So many of a page are read at a time where they are old: each of them may have sixteen megabytes,
and no more than one such goes out in one write."""
KEPT = 8_192
"""So many of the newest frames are kept, at most twice as many until the oldest are dropped."""
KEPT_BYTES = 8 * 1024 * 1024
"""And so much of them, in the same way."""
MOST_BYTES = 128 * 1024
"""What goes out in one write, unless a single frame is longer."""
_APART_S = 0.006
"""So far apart are two reads of a ledger that grows without end: to tell everyone a little more is
what costs, not how much it is. What comes after a rest is told at once. Not in proportion to what a
round costs: what holds up the hub would then hold up the readers for several times as long."""
_AT_ONCE = 2
"""So many readers that are far behind read the ledger at a time; the others wait for their turn."""
_SHARED = 64
"""So many joined writes are kept for others at the same position, until the ledger grows."""

MAKES_READY = frozenset(
    {"task.created", "task.transitioned", "task.requeued", "task.unblocked", "task.edited"}
)
"""After an event of these names there may be work for somebody who found none before."""

_DATA = b"\ndata: "
_log = logging.getLogger("dragoman.http")


class Frame(Struct, frozen=True, gc=False):
    """An entry as a server-sent event, and what filters look at."""

    position: int
    stream: str
    event: str
    actor: str
    told: tuple[str, ...]
    """To whom it is addressed, if to anybody."""
    data: bytes

    @property
    def entry(self) -> Raw:
        """The entry as JSON, without what makes it an event of a stream."""
        return Raw(self.data[self.data.index(_DATA) + len(_DATA) : -2])


class Filter(Struct, frozen=True):
    """Which entries a reader wants; what is empty is any."""

    stream: str = ""
    type: str = ""
    """The name of an event, or the family before its dot."""
    agent: str = ""
    """Who did it, or to whom it is addressed."""
    names: frozenset[str] | None = None
    """The events of which a dialect has something to say."""

    def passes(self, stream: str, event: str, actor: str, told: tuple[str, ...]) -> bool:
        """Whether the reader wants such an entry; `actor` is ROLE:NAME."""
        return (
            self.stream in ("", stream)
            and self.type in ("", event, event.partition(".")[0])
            and (self.agent in ("", actor.partition(":")[2]) or self.agent in told)
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
        told_of(entry),
        b"id: %d\nevent: %s\ndata: %s\n\n" % (entry.position, entry.event.encode(), encode(shown)),
    )


def join(frames: Iterable[Frame], wanted: Filter, after: int) -> tuple[bytes, int]:
    """As much of the frames as goes out in one write, and the position that is reached with it."""
    parts: list[bytes] = []
    size = 0
    for one in frames:
        if wanted is EVERYTHING or wanted.passes(one.stream, one.event, one.actor, one.told):
            if parts and size + len(one.data) > MOST_BYTES:
                break
            parts.append(one.data)
            size += len(one.data)
        after = one.position
    return b"".join(parts), after


class Newest(Struct, frozen=True, gc=False):
    """What follows a position, for one write to each of those who are there."""

    piece: Piece
    reached: int
    """The position that is reached with it."""


class Feed:
    """Follows the ledger for everyone who has a seat."""

    def __init__(
        self,
        store: Store,
        hints: Hints,
        tail: Tail,
        look: float,
        kept: int = KEPT,
        of_agents: OnCommit | None = None,
    ) -> None:
        """`of_agents` is told of agents to whom something has happened, in whichever process."""
        self._of_agents = of_agents
        self._store = store
        self._hints = hints
        self._tail = tail
        self._look = look
        self._kept = kept
        self._seats: set[Seat] = set()
        self._waiting: set[Seat] = set()
        self._turns = Turns(self._seats, self._waiting)
        self._follower: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._frames: list[Frame] = []
        self._bytes = 0
        self._joined: dict[tuple[int, Filter], Newest] = {}
        self._catching_up: asyncio.Semaphore = asyncio.Semaphore(_AT_ONCE)
        self.is_closed = False
        """Whether everyone was sent away, because the hub is about to stop."""
        self.head = 0
        """The position that was followed to."""
        self.made_ready = 0
        """The last position of an event after which there may be work."""
        self._last: dict[str, int] = {}

    @property
    def seats(self) -> int:
        """How many wait."""
        return len(self._seats)

    def last(self, family: str) -> int:
        """The last position of an event of this family; of any, when it is empty."""
        return self._last.get(family, 0) if family else self.head

    @asynccontextmanager
    async def seat(self) -> AsyncGenerator[Seat]:
        """A seat; everything from `head` on is told to it."""
        if self.is_closed:
            raise stop("stopping", "the hub is about to stop; try again when it runs")
        seat = Seat(self._waiting)
        self._seats.add(seat)
        try:
            await self._begun(seat.loop)
            yield seat
        finally:
            self._seats.discard(seat)
            if not self._seats and self._follower is not None:
                self._follower.cancel()
                self._follower = None
                # Whoever comes next begins anew; until then nobody wants them.
                self._forget()

    async def _begun(self, loop: asyncio.AbstractEventLoop) -> None:
        """Until the ledger is followed; the fault of the store, if it cannot be.

        Whoever comes after a fault tries again.
        """
        if self._started is None or self._follower is None or self._follower.done():
            self._started = loop.create_future()
            self._follower = asyncio.create_task(self._follow(self._started))
        # Of several who wait for the same start one may leave.
        await asyncio.shield(self._started)

    def close(self) -> None:
        """Send everyone away, for good; may be called from any thread."""
        self.is_closed = True
        for seat in tuple(self._seats):
            soon(seat.loop, seat.leave)

    async def turn(self, seat: Seat, seconds: float) -> None:
        """Before somebody goes on who has more to do: others come first."""
        if not self._turns.are_scarce:
            await asyncio.sleep(0)
            return
        seat.forget()
        self._turns.for_one(seat)
        await seat.wait(seconds)

    def newest(self, after: int, wanted: Filter) -> Newest | None:
        """What follows a position, for one write; None when so old a position is not kept."""
        key = (after, wanted)
        known = self._joined.get(key)
        if known is None:
            start = self._place(after)
            if start < 0:
                return None
            data, reached = join(self._frames[start : start + PAGE], wanted, after)
            known = Newest(piece(data), reached)
            if len(self._joined) < _SHARED:
                self._joined[key] = known
        return known

    def since(self, after: int, wanted: Filter, limit: int) -> tuple[list[Frame], int] | None:
        """At most so many frames after a position, and the position that is reached with them.

        None when the ledger has to be asked: so old a position is not kept, or it is none yet.
        """
        start = self._place(after)
        if start < 0 or after > self.head:
            return None
        found: list[Frame] = []
        for one in self._frames[start:]:
            if wanted.passes(one.stream, one.event, one.actor, one.told):
                found.append(one)
            after = one.position
            if len(found) == limit:
                break
        return found, after

    def _place(self, after: int) -> int:
        """Where in the kept frames the one after a position is; below 0: it is no longer there."""
        return after - (self.head - len(self._frames))

    async def older(self, after: int, wanted: Filter) -> tuple[bytes, int]:
        """The same from the ledger, however old the position is."""
        async with self._catching_up:
            return await asyncio.to_thread(self._read_older, after, wanted)

    def _read_older(self, after: int, wanted: Filter) -> tuple[bytes, int]:
        data, pages = b"", PAGE // _FEW
        while pages and len(data) < MOST_BYTES:
            more, reached = join(map(frame, self._store.entries(after, _FEW)), wanted, after)
            if reached == after or (data and len(data) + len(more) > MOST_BYTES):
                break
            data, after, pages = data + more, reached, pages - 1
        return data, after

    async def _follow(self, started: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        self._forget()
        self._catching_up = asyncio.Semaphore(_AT_ONCE)
        self._turns = Turns(self._seats, self._waiting)
        hint = _Hint(loop)
        silence = self._hints.listen(hint.give)
        try:
            try:
                self.head = await asyncio.to_thread(self._store.head)
            except Exception as error:  # noqa: BLE001  told to those who wait for the start
                _refuse(started, error)
                return
            started.set_result(None)
            while True:
                hint.forget()
                soonest = loop.time() + _APART_S
                if await self._read_on() < PAGE:
                    await hint.wait(self._look)
                    await asyncio.sleep(soonest - loop.time())
        finally:
            silence()

    async def _read_on(self) -> int:
        """Go on from where the ledger was followed to: with what was written here, or else with
        what the store has, where another process may have written."""
        try:
            frames = list(map(frame, self._tail.after(self.head, PAGE)))
            frames = frames or await asyncio.to_thread(self._read_new, self.head)
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
            self._last[one.event.partition(".")[0]] = one.position
            if one.event in MAKES_READY:
                self.made_ready = one.position
        agents = {one.stream for one in frames if one.stream.startswith("agent:")}
        if agents and self._of_agents is not None:
            self._of_agents(agents)
        self._turns.for_all()

    def _forget(self) -> None:
        self._frames, self._bytes, self._joined = [], 0, {}

    def _drop_oldest(self) -> None:
        if len(self._frames) <= 2 * self._kept and self._bytes <= 2 * KEPT_BYTES:
            return
        kept = size = 0
        while kept < self._kept and size < KEPT_BYTES and kept < len(self._frames):
            kept += 1
            size += len(self._frames[-kept].data)
        del self._frames[:-kept]
        self._bytes = size


def _refuse(started: asyncio.Future[None], error: Exception) -> None:
    started.set_exception(error)
    # Whoever waited for it may have gone.
    started.exception()


class _Hint:
    """A hint of the writer, heard in the loop of those who wait for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_given = False
        self._heard = asyncio.Event()

    def give(self, _: Collection[str]) -> None:
        """Called by the writer: once until it is forgotten, and never an obstacle to it."""
        if not self._is_given:
            self._is_given = True
            soon(self._loop, self._heard.set)

    def forget(self) -> None:
        """Wait for the next one."""
        self._is_given = False
        self._heard.clear()

    async def wait(self, seconds: float) -> None:
        """Until it is heard, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            return
