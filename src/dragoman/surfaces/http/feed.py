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
"""Entries of a page that are read at a time where they are old: each may have sixteen megabytes,
and no more than one such goes out in one write."""
KEPT = 8_192
"""Newest frames that are kept; up to twice as many until the oldest are dropped."""
KEPT_BYTES = 8 * 1024 * 1024
"""Bytes of the newest frames that are kept, in the same way."""
MOST_BYTES = 128 * 1024
"""Size of one write, unless a single frame is larger."""
_APART_S = 0.006
"""Minimum interval between two reads of a growing ledger: waking all readers is what costs, not how
much they are sent. An entry that comes after a pause is sent at once. The interval is fixed and not
proportional to the cost of a round: what holds up the hub would then hold up the readers for
several times as long."""
_AT_ONCE = 2
"""Readers far behind that read the ledger at the same time; the others wait for a slot."""
_SHARED = 64
"""Joined chunks that are kept for other readers at the same position, until the ledger grows."""

MAKES_READY = frozenset(
    {"task.created", "task.transitioned", "task.requeued", "task.unblocked", "task.edited"}
)
"""Events after which there may be work for a long poll that found none before."""

_DATA = b"\ndata: "
_log = logging.getLogger("dragoman.http")


class Frame(Struct, frozen=True, gc=False):
    """An entry as a server-sent event, and the fields that filters match."""

    position: int
    stream: str
    event: str
    actor: str
    told: tuple[str, ...]
    """The agents that it is addressed to, if any."""
    data: bytes

    @property
    def entry(self) -> Raw:
        """The entry as JSON, without the lines of a server-sent event around it."""
        return Raw(self.data[self.data.index(_DATA) + len(_DATA) : -2])


class Filter(Struct, frozen=True):
    """Entries that a reader wants; an empty field matches any."""

    stream: str = ""
    type: str = ""
    """The name of an event, or the family before its dot."""
    agent: str = ""
    """Its actor, or an agent that it is addressed to."""
    names: frozenset[str] | None = None
    """The events that a dialect can render."""

    def passes(self, stream: str, event: str, actor: str, told: tuple[str, ...]) -> bool:
        """Return whether the reader wants such an entry; `actor` is ROLE:NAME."""
        return (
            self.stream in ("", stream)
            and self.type in ("", event, event.partition(".")[0])
            and (self.agent in ("", actor.partition(":")[2]) or self.agent in told)
            and (self.names is None or event in self.names)
        )


EVERYTHING = Filter()


def frame(entry: Entry) -> Frame:
    """Encode an entry as a frame."""
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
    """Join matching frames up to the size of one write; return them and the position reached."""
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
    """The next chunk after a position, shared by all readers at that position."""

    piece: Piece
    reached: int
    """The position that is reached with it."""


class Feed:
    """Follows the ledger for all waiters."""

    def __init__(
        self,
        store: Store,
        hints: Hints,
        tail: Tail,
        look: float,
        kept: int = KEPT,
        of_agents: OnCommit | None = None,
    ) -> None:
        """`on_agent_entries` is notified of agents with new entries, from whichever process."""
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
        """True if all waiters were closed, because the hub is about to stop."""
        self.head = 0
        """The position that the follower has reached."""
        self.made_ready = 0
        """The last position of an event after which there may be work."""
        self._last: dict[str, int] = {}

    @property
    def seats(self) -> int:
        """The number of waiters."""
        return len(self._seats)

    def last(self, family: str) -> int:
        """Return the last position of an event of this family; of any event if it is empty."""
        return self._last.get(family, 0) if family else self.head

    @asynccontextmanager
    async def seat(self) -> AsyncGenerator[Seat]:
        """Open a waiter; it is notified of everything after `head`."""
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
                # The next waiter starts a new follower; until then nobody needs the frames.
                self._forget()

    async def _begun(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wait until the ledger is followed; raise the error of the store if it cannot be.

        A waiter that is opened after an error tries again.
        """
        if self._started is None or self._follower is None or self._follower.done():
            self._started = loop.create_future()
            self._follower = asyncio.create_task(self._follow(self._started))
        # One of several that wait for the same start may leave.
        await asyncio.shield(self._started)

    def close(self) -> None:
        """Close all waiters, for good; may be called from any thread."""
        self.is_closed = True
        for seat in tuple(self._seats):
            soon(seat.loop, seat.leave)

    async def turn(self, seat: Seat, seconds: float) -> None:
        """Let other waiters run before one that has more to send goes on."""
        if not self._turns.are_scarce:
            await asyncio.sleep(0)
            return
        seat.forget()
        self._turns.for_one(seat)
        await seat.wait(seconds)

    def newest(self, after: int, wanted: Filter) -> Newest | None:
        """Return the next chunk after a position; None if so old a position is not kept."""
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
        """Return at most so many frames after a position, and the position reached with them.

        None if the ledger has to be read: the position is too old, or beyond the end.
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
        """Return the index of the first kept frame after a position; below 0 if it was dropped."""
        return after - (self.head - len(self._frames))

    async def older(self, after: int, wanted: Filter) -> tuple[bytes, int]:
        """Read the next chunk from the ledger, however old the position is."""
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
            except Exception as error:  # noqa: BLE001  raised in those who wait for the start
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
        """Read the entries after `head`: those that were written by this process, or else those of
        the store, which another process may have written."""
        try:
            frames = list(map(frame, self._tail.after(self.head, PAGE)))
            frames = frames or await asyncio.to_thread(self._read_new, self.head)
        except Exception:  # noqa: BLE001  waiters must not wait for ever
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
    # Those who waited for it may be gone; retrieving the error avoids a warning.
    started.exception()


class _Hint:
    """A commit hint of the writer, delivered to the event loop of the follower."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_given = False
        self._heard = asyncio.Event()

    def give(self, _: Collection[str]) -> None:
        """Called by the writer; does something only once until it is cleared, and never blocks."""
        if not self._is_given:
            self._is_given = True
            soon(self._loop, self._heard.set)

    def forget(self) -> None:
        """Clear it, to wait for the next one."""
        self._is_given = False
        self._heard.clear()

    async def wait(self, seconds: float) -> None:
        """Wait until it is set, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._heard.wait()
        except TimeoutError:
            return
