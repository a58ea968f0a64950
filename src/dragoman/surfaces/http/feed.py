"""Feed: the newest entries of the ledger, read once, encoded once and fanned out to all waiters.

One follower per process reads on after every commit hint, while there are waiters. It keeps the
newest frames; a reader that is further behind reads the ledger itself. A reader costs one cursor,
however slow it is, and never slows the follower. Many waiters are woken in batches.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterable
from contextlib import asynccontextmanager

from msgspec import Raw, Struct

from dragoman.engine.ports import Store
from dragoman.engine.schemas.tasks import addressees, encode, entry_resource
from dragoman.engine.subscribe import CommitHints, OnCommit, RecentEntries
from dragoman.ledger.entry import Entry
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.raw_writer import EncodedChunk, encode_chunk
from dragoman.surfaces.http.waiter import Waiter, call_in_loop

# --- waking waiters in batches ----------------------------------------------------------------

MAX_UNBATCHED = 128
"""Up to so many waiters are woken at once, without batches."""

BATCH_SIZE = 32
"""Waiters of a batch."""

_PAUSE_FACTOR = 4
"""Pause after a batch, as a multiple of its cost: a fifth of the loop is for waking."""

_MAX_PAUSE_S = 0.1


class WakeupBatcher:
    """Wakes waiters in batches, so that a crowd never takes the whole event loop.

    However often the ledger grows, every blocked waiter is woken once in a round, and a round
    begins when the one before is over. The cost of a batch is measured, and then the loop is left
    to others for several times as long. A busy waiter is not woken and costs nothing: it compares
    its position with the head of the feed before it blocks again.
    """

    def __init__(self, waiters: Collection[Waiter], blocked: Collection[Waiter]) -> None:
        self._waiters = waiters
        self._blocked = blocked
        """Read when a round begins; a waiter that comes or goes meanwhile is in the next one, or
        not."""
        self._wakes_all = False
        self._requested: dict[Waiter, None] = {}
        self._round: list[Waiter] = []
        self._is_running = False

    @property
    def is_crowded(self) -> bool:
        """Return whether there are so many waiters that they are woken in batches."""
        return len(self._waiters) > MAX_UNBATCHED

    def wake_all(self) -> None:
        """Wake all blocked waiters; a few at once, a crowd in batches."""
        if self.is_crowded:
            self._wakes_all = True
            self._start()
            return
        for waiter in self._blocked:
            waiter.notify()

    def wake_one(self, waiter: Waiter) -> None:
        """Wake a waiter that has more to do."""
        self._requested[waiter] = None
        self._start()

    def _start(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._wake_batch(asyncio.get_running_loop())

    def _wake_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._round:
            self._round = [*(self._blocked if self._wakes_all else self._requested)]
            self._wakes_all = False
            self._requested.clear()
        if not self._round:
            self._is_running = False
            return
        started_at = loop.time()
        for waiter in self._round[-BATCH_SIZE:]:
            waiter.notify()
        del self._round[-BATCH_SIZE:]
        # In the next pass of the loop they run and write; in the one after that they are done.
        loop.call_soon(loop.call_soon, self._pause, loop, started_at)

    def _pause(self, loop: asyncio.AbstractEventLoop, started_at: float) -> None:
        pause_s = min(_PAUSE_FACTOR * (loop.time() - started_at), _MAX_PAUSE_S)
        loop.call_later(pause_s, self._wake_batch, loop)


# --- following the ledger ---------------------------------------------------------------------

PAGE_SIZE = 500

_OLD_PAGE_SIZE = 50
"""Entries of a page that are read at a time where they are old: each may have sixteen megabytes,
and no more than one such goes out in one write."""

KEPT_FRAMES = 8_192
"""Newest frames that are kept; up to twice as many until the oldest are dropped."""

KEPT_BYTES = 8 * 1024 * 1024
"""Bytes of the newest frames that are kept, in the same way."""

MAX_WRITE_BYTES = 128 * 1024
"""Size of one write, unless a single frame is larger."""

_READ_INTERVAL_S = 0.006
"""Minimum interval between two reads of a growing ledger: waking all readers is what costs, not how
much they are sent. An entry that comes after a pause is sent at once. The interval is fixed and not
proportional to the cost of a round: what holds up the hub would then hold up the readers for
several times as long."""

_MAX_CATCH_UPS = 2
"""Readers far behind that read the ledger at the same time; the others wait for a slot."""

_MAX_SHARED_CHUNKS = 64
"""Joined chunks that are kept for other readers at the same position, until the ledger grows."""

READY_EVENTS = frozenset(
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
    recipients: tuple[str, ...]
    """The agents that it is addressed to, if any."""
    data: bytes

    @property
    def entry(self) -> Raw:
        """The entry as JSON, without the lines of a server-sent event around it."""
        return Raw(self.data[self.data.index(_DATA) + len(_DATA) : -2])


class EntryFilter(Struct, frozen=True):
    """Entries that a reader wants; an empty field matches any."""

    stream: str = ""
    type: str = ""
    """The name of an event, or the family before its dot."""
    agent: str = ""
    """Its actor, or an agent that it is addressed to."""
    event_names: frozenset[str] | None = None
    """The events that a dialect can render."""

    def matches(self, stream: str, event: str, actor: str, recipients: tuple[str, ...]) -> bool:
        """Return whether the reader wants such an entry; `actor` is ROLE:NAME."""
        return (
            self.stream in ("", stream)
            and self.type in ("", event, event.partition(".")[0])
            and (self.agent in ("", actor.partition(":")[2]) or self.agent in recipients)
            and (self.event_names is None or event in self.event_names)
        )


MATCH_ALL = EntryFilter()


def encode_frame(entry: Entry) -> Frame:
    """Encode an entry as a frame."""
    resource = entry_resource(entry)
    return Frame(
        entry.position,
        entry.stream,
        entry.event,
        resource.actor,
        addressees(entry),
        b"id: %d\nevent: %s\ndata: %s\n\n"
        % (entry.position, entry.event.encode(), encode(resource)),
    )


def join_frames(
    frames: Iterable[Frame], entry_filter: EntryFilter, after: int
) -> tuple[bytes, int]:
    """Join matching frames up to the size of one write; return them and the position reached."""
    parts: list[bytes] = []
    size = 0
    for frame in frames:
        if entry_filter is MATCH_ALL or entry_filter.matches(
            frame.stream, frame.event, frame.actor, frame.recipients
        ):
            if parts and size + len(frame.data) > MAX_WRITE_BYTES:
                break
            parts.append(frame.data)
            size += len(frame.data)
        after = frame.position
    return b"".join(parts), after


class NextChunk(Struct, frozen=True, gc=False):
    """The next chunk after a position, shared by all readers at that position."""

    encoded: EncodedChunk
    position: int
    """The position that is reached with it."""


class Feed:
    """Follows the ledger for all waiters."""

    def __init__(
        self,
        store: Store,
        hints: CommitHints,
        tail: RecentEntries,
        poll_interval: float,
        kept_frames: int = KEPT_FRAMES,
        on_agent_entries: OnCommit | None = None,
    ) -> None:
        """`on_agent_entries` is notified of agents with new entries, from whichever process."""
        self._on_agent_entries = on_agent_entries
        self._store = store
        self._hints = hints
        self._tail = tail
        self._poll_interval = poll_interval
        self._kept_frames = kept_frames
        self._waiters: set[Waiter] = set()
        self._blocked: set[Waiter] = set()
        self._wakeups = WakeupBatcher(self._waiters, self._blocked)
        self._follower: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None
        self._frames: list[Frame] = []
        self._bytes = 0
        self._shared_chunks: dict[tuple[int, EntryFilter], NextChunk] = {}
        self._catch_up_slots: asyncio.Semaphore = asyncio.Semaphore(_MAX_CATCH_UPS)
        self.is_closed = False
        """True if all waiters were closed, because the hub is about to stop."""
        self.head = 0
        """The position that the follower has reached."""
        self.last_ready_position = 0
        """The last position of an event after which there may be work."""
        self._last_positions: dict[str, int] = {}

    @property
    def waiter_count(self) -> int:
        """The number of waiters."""
        return len(self._waiters)

    def last_position(self, family: str) -> int:
        """Return the last position of an event of this family; of any event if it is empty."""
        return self._last_positions.get(family, 0) if family else self.head

    @asynccontextmanager
    async def open_waiter(self) -> AsyncGenerator[Waiter]:
        """Open a waiter; it is notified of everything after `head`."""
        if self.is_closed:
            raise problem_error("stopping", "the hub is about to stop; try again when it runs")
        waiter = Waiter(self._blocked)
        self._waiters.add(waiter)
        try:
            await self._ensure_subscribed(waiter.loop)
            yield waiter
        finally:
            self._waiters.discard(waiter)
            if not self._waiters and self._follower is not None:
                self._follower.cancel()
                self._follower = None
                # The next waiter starts a new follower; until then nobody needs the frames.
                self._reset()

    async def _ensure_subscribed(self, loop: asyncio.AbstractEventLoop) -> None:
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
        for waiter in tuple(self._waiters):
            call_in_loop(waiter.loop, waiter.close)

    async def yield_turn(self, waiter: Waiter, seconds: float) -> None:
        """Let other waiters run before one that has more to send goes on."""
        if not self._wakeups.is_crowded:
            await asyncio.sleep(0)
            return
        waiter.clear()
        self._wakeups.wake_one(waiter)
        await waiter.wait(seconds)

    def next_chunk(self, after: int, entry_filter: EntryFilter) -> NextChunk | None:
        """Return the next chunk after a position; None if so old a position is not kept."""
        key = (after, entry_filter)
        cached = self._shared_chunks.get(key)
        if cached is None:
            start = self._index_after(after)
            if start < 0:
                return None
            data, reached = join_frames(
                self._frames[start : start + PAGE_SIZE], entry_filter, after
            )
            cached = NextChunk(encode_chunk(data), reached)
            if len(self._shared_chunks) < _MAX_SHARED_CHUNKS:
                self._shared_chunks[key] = cached
        return cached

    def frames_after(
        self, after: int, entry_filter: EntryFilter, limit: int
    ) -> tuple[list[Frame], int] | None:
        """Return at most so many frames after a position, and the position reached with them.

        None if the ledger has to be read: the position is too old, or beyond the end.
        """
        start = self._index_after(after)
        if start < 0 or after > self.head:
            return None
        found: list[Frame] = []
        for frame in self._frames[start:]:
            if entry_filter.matches(frame.stream, frame.event, frame.actor, frame.recipients):
                found.append(frame)
            after = frame.position
            if len(found) == limit:
                break
        return found, after

    def _index_after(self, after: int) -> int:
        """Return the index of the first kept frame after a position; below 0 if it was dropped."""
        return after - (self.head - len(self._frames))

    async def read_older(self, after: int, entry_filter: EntryFilter) -> tuple[bytes, int]:
        """Read the next chunk from the ledger, however old the position is."""
        async with self._catch_up_slots:
            return await asyncio.to_thread(self._read_older_page, after, entry_filter)

    def _read_older_page(self, after: int, entry_filter: EntryFilter) -> tuple[bytes, int]:
        data, pages = b"", PAGE_SIZE // _OLD_PAGE_SIZE
        while pages and len(data) < MAX_WRITE_BYTES:
            chunk, reached = join_frames(
                map(encode_frame, self._store.entries(after, _OLD_PAGE_SIZE)), entry_filter, after
            )
            if reached == after or (data and len(data) + len(chunk) > MAX_WRITE_BYTES):
                break
            data, after, pages = data + chunk, reached, pages - 1
        return data, after

    async def _follow(self, started: asyncio.Future[None]) -> None:
        loop = asyncio.get_running_loop()
        self._reset()
        self._catch_up_slots = asyncio.Semaphore(_MAX_CATCH_UPS)
        self._wakeups = WakeupBatcher(self._waiters, self._blocked)
        hint = _CommitHint(loop)
        unsubscribe = self._hints.subscribe(hint.notify)
        try:
            try:
                self.head = await asyncio.to_thread(self._store.head)
            except Exception as error:  # noqa: BLE001  raised in those who wait for the start
                _fail_start(started, error)
                return
            started.set_result(None)
            while True:
                hint.clear()
                earliest = loop.time() + _READ_INTERVAL_S
                if await self._read_next() < PAGE_SIZE:
                    await hint.wait(self._poll_interval)
                    await asyncio.sleep(earliest - loop.time())
        finally:
            unsubscribe()

    async def _read_next(self) -> int:
        """Read the entries after `head`: those that were written by this process, or else those of
        the store, which another process may have written."""
        try:
            frames = list(map(encode_frame, self._tail.after(self.head, PAGE_SIZE)))
            frames = frames or await asyncio.to_thread(self._read_store, self.head)
        except Exception:  # noqa: BLE001  waiters must not wait for ever
            _log.exception("the ledger cannot be followed; trying again")
            return 0
        if frames:
            self._append(frames)
        return len(frames)

    def _read_store(self, after: int) -> list[Frame]:
        return [encode_frame(entry) for entry in self._store.entries(after, PAGE_SIZE)]

    def _append(self, frames: list[Frame]) -> None:
        self._frames += frames
        self._bytes += sum(len(frame.data) for frame in frames)
        self._drop_oldest()
        self._shared_chunks.clear()
        self.head = frames[-1].position
        for one in frames:
            self._last_positions[one.event.partition(".")[0]] = one.position
            if one.event in READY_EVENTS:
                self.last_ready_position = one.position
        agents = {one.stream for one in frames if one.stream.startswith("agent:")}
        if agents and self._on_agent_entries is not None:
            self._on_agent_entries(agents)
        self._wakeups.wake_all()

    def _reset(self) -> None:
        self._frames, self._bytes, self._shared_chunks = [], 0, {}

    def _drop_oldest(self) -> None:
        if len(self._frames) <= 2 * self._kept_frames and self._bytes <= 2 * KEPT_BYTES:
            return
        kept = size = 0
        while kept < self._kept_frames and size < KEPT_BYTES and kept < len(self._frames):
            kept += 1
            size += len(self._frames[-kept].data)
        del self._frames[:-kept]
        self._bytes = size


def _fail_start(started: asyncio.Future[None], error: Exception) -> None:
    started.set_exception(error)
    # Those who waited for it may be gone; retrieving the error avoids a warning.
    started.exception()


class _CommitHint:
    """A commit hint of the writer, delivered to the event loop of the follower."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._is_set = False
        self._event = asyncio.Event()

    def notify(self, _: Collection[str]) -> None:
        """Called by the writer; does something only once until it is cleared, and never blocks."""
        if not self._is_set:
            self._is_set = True
            call_in_loop(self._loop, self._event.set)

    def clear(self) -> None:
        """Clear it, to wait for the next one."""
        self._is_set = False
        self._event.clear()

    async def wait(self, seconds: float) -> None:
        """Wait until it is set, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return
