"""Fan-out of the ledger: its newest entries, read once and encoded once for all who wait for them.

One follower per process reads on after every commit hint, while there are waiters: streams of the
ledger, streams of traces, and long polls. It keeps the newest entries as frames. A reader is a
cursor into them: however slow it is, it never slows the follower or another reader, and costs no
queue. A reader that is further behind reads the ledger itself.
"""

import asyncio
import logging
import weakref
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final, Protocol

from msgspec import Struct
from msgspec.structs import replace
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from dragoman.engine.ports import Store
from dragoman.engine.queries.traces import TRACE_EVENTS, TraceEvent, trace_event_of
from dragoman.engine.queries.visibility import OWNER, Audience, EntrySource, Reader
from dragoman.engine.schemas.tasks import (
    EntryResource,
    addressees,
    encode,
    entry_resource,
    withheld_resource,
)
from dragoman.engine.subscribe import CommitHints, RecentEntries
from dragoman.ledger.entry import Entry
from dragoman.surfaces.http.errors import problem_error

_log = logging.getLogger("dragoman.http")

# --- frames and filters -----------------------------------------------------------------------


class Frame(Struct, frozen=True, gc=False):
    """An entry as a server-sent event, and the fields that filters match."""

    position: int
    stream: str
    event: str
    actor: str
    recipients: tuple[str, ...]
    """The agents that it is addressed to, if any."""
    data: bytes
    audience: Audience | None = None
    """Those who may read it; None: everybody."""
    for_others: "Frame | None" = None
    """The frame that all others get in its place."""
    trace: TraceEvent | None = None
    """The event of a trace that the entry is; only where a reader of traces wants it."""
    trace_data: bytes = b""
    """That event as a server-sent event."""


class FrameFilter(Protocol):
    """The frames that a reader wants, and the form in which it is sent them."""

    def select(self, frame: Frame) -> bytes:
        """Return what the reader is sent for a frame; empty if it does not match."""
        ...

    def encode(self, store: Store, entry: Entry, audience: Audience | None) -> Frame:
        """Encode an old entry, as far as this filter needs it."""
        ...


class EntryFilter(Struct, frozen=True):
    """Entries that a reader wants; an empty field matches any."""

    stream: str = ""
    type: str = ""
    """The name of an event, or the family before its dot."""
    agent: str = ""
    """Its actor, or an agent that it is addressed to."""
    event_names: frozenset[str] | None = None
    """The events that a dialect can render."""
    reader: Reader = OWNER

    def select(self, frame: Frame) -> bytes:
        """Return the entry if what the reader may read of it matches."""
        if frame.for_others is not None and not self.reader.may_read(frame.audience):
            frame = frame.for_others
        matches = (
            (not self.stream or self.stream == frame.stream)
            and (not self.type or self.type in (frame.event, frame.event.partition(".")[0]))
            and (not self.agent or self.agent in (frame.actor.partition(":")[2], *frame.recipients))
            and (self.event_names is None or frame.event in self.event_names)
        )
        return frame.data if matches else b""

    def encode(self, store: Store, entry: Entry, audience: Audience | None) -> Frame:
        """Encode an old entry."""
        del store
        return encode_frame(entry, audience)


class TraceFilter(Struct, frozen=True):
    """Events of traces that a reader wants; an empty field matches any."""

    task: str = ""
    type: str = ""
    session: str = ""
    reader: Reader = OWNER

    def select(self, frame: Frame) -> bytes:
        """Return the event of a trace if it matches."""
        event = frame.trace
        matches = (
            event is not None
            and self.reader.may_read(frame.audience)
            and self.task in ("", event.task)
            and self.type in ("", event.type)
            and event.is_in_session(self.session)
        )
        return frame.trace_data if matches else b""

    def encode(self, store: Store, entry: Entry, audience: Audience | None) -> Frame:
        """Encode the event of a trace that an old entry is, if it is one."""
        frame = Frame(entry.position, entry.stream, entry.event, "", (), b"", audience)
        return add_trace(store, frame, entry)


def encode_frame(entry: Entry, audience: Audience | None = None) -> Frame:
    """Encode an entry for its audience; None: everybody."""
    frame = _frame_of(entry_resource(entry), addressees(entry))
    if audience is None:
        return frame
    for_others = _frame_of(withheld_resource(entry), ())
    return replace(frame, audience=audience, for_others=for_others)


def _frame_of(resource: EntryResource, recipients: tuple[str, ...]) -> Frame:
    position, name = resource.position, resource.type
    data = b"id: %d\nevent: %s\ndata: %s\n\n" % (position, name.encode(), encode(resource))
    return Frame(position, resource.stream, name, resource.actor, recipients, data)


def add_trace(store: Store, frame: Frame, entry: Entry) -> Frame:
    """Add the event of a trace that an entry is, if it is one."""
    event = trace_event_of(store, entry)
    return frame if event is None else replace(frame, trace=event, trace_data=encode_trace(event))


def encode_trace(event: TraceEvent) -> bytes:
    """Encode the event of a trace as a server-sent event."""
    name = event.type.encode()
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (event.position, name, encode(event.event))


MAX_WRITE_BYTES: Final = 128 * 1024
"""Size of one write, unless a single frame is larger."""

_OLD_PAGE_SIZE: Final = 50
"""Old entries that are read at a time: each may have sixteen megabytes."""


def read_frames(
    source: EntrySource,
    entry_filter: FrameFilter,
    after: int,
    limit: int,
    max_bytes: int,
    max_pages: int,
) -> tuple[list[bytes], int]:
    """Read matching entries from the ledger; return their data and the position reached."""
    frames = _old_frames(source, entry_filter, after, max_pages)
    return select_data(frames, entry_filter, after, limit, max_bytes)


def _old_frames(
    source: EntrySource, entry_filter: FrameFilter, after: int, max_pages: int
) -> Iterator[Frame]:
    for _ in range(max_pages):
        page = source.page(after, _OLD_PAGE_SIZE)
        yield from (entry_filter.encode(source.store, *entry) for entry in page)
        if len(page) < _OLD_PAGE_SIZE:
            return
        after = page[-1][0].position


def select_data(
    frames: Iterable[Frame], entry_filter: FrameFilter, after: int, limit: int, max_bytes: int
) -> tuple[list[bytes], int]:
    """Return the data of matching frames, up to a limit, and the position reached with them."""
    found: list[bytes] = []
    size = 0
    for frame in frames:
        if data := entry_filter.select(frame):
            size += len(data)
            if len(found) == limit or (found and size > max_bytes):
                break
            found.append(data)
        after = frame.position
    return found, after


# --- coalescing of traces ---------------------------------------------------------------------

MAX_TEXT: Final = 4_096
"""Characters of a coalesced text that are kept; its mark says how many are missing."""

_TEXT_FIELDS: Final = {"THOUGHT_STREAM": ("chunk", ""), "SANDBOX_PULSE": ("line", "\n")}
"""Type of event -> the field whose texts can be coalesced, and the separator between two."""


def coalesce(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Coalesce neighbouring events that are parts of one thought or lines of one terminal.

    Tool calls and transitions of tasks keep their places (S-SAOP-7).
    """
    found: list[TraceEvent] = []
    open_texts: dict[tuple[object, ...], int] = {}
    """Key of a text -> the index of the event that it grows in."""
    for event in events:
        key = _text_key(event)
        if key is None:
            # What comes behind this event must not move before it.
            open_texts.clear()
        elif key in open_texts:
            index = open_texts[key]
            found[index] = _merge(found[index], event)
            continue
        else:
            open_texts[key] = len(found)
        found.append(event)
    # A text has the position of its last part: a reader that resumes behind it has missed nothing.
    return sorted(found, key=lambda event: event.position)


def _text_key(event: TraceEvent) -> tuple[object, ...] | None:
    """Return the key of the text that an event is a part of; None: it stands for itself."""
    if event.type not in _TEXT_FIELDS:
        return None
    payload = event.event["payload"]
    about = (payload.get("agent_id"), payload.get("turn_index"))
    return (event.type, event.event["session_id"], *about)


def _merge(first: TraceEvent, second: TraceEvent) -> TraceEvent:
    """Merge two parts of a text, with a mark; the result has the second one's position."""
    field, separator = _TEXT_FIELDS[first.type]
    first_payload, second_payload = first.event["payload"], second.event["payload"]
    gap: dict[str, Any] = first.event.get("gap") or {
        "coalesced": 1,
        "missing_characters": 0,
        "from_position": first.position,
    }
    text = first_payload[field] + separator + second_payload[field]
    missing = max(0, len(text) - MAX_TEXT)
    payload = {**second_payload, field: text[:MAX_TEXT]}
    if "masked" in payload:
        payload["masked"] = first_payload["masked"] or second_payload["masked"]
    marked = {
        **second.event,
        "payload": payload,
        "gap": {
            **gap,
            "coalesced": gap["coalesced"] + 1,
            "missing_characters": gap["missing_characters"] + missing,
            "to_position": second.position,
        },
    }
    return TraceEvent(
        second.position, second.type, second.task, first.masked or second.masked, marked
    )


# --- writing to a caught-up reader ------------------------------------------------------------


class EncodedChunk(Struct, frozen=True, gc=False):
    """The next bytes after a position, as an HTTP chunk too; shared by all readers there."""

    data: bytes
    chunk: bytes
    """Empty if there are no bytes: an empty chunk would be the end."""
    position: int
    """The position that is reached with it."""


WRITER: Final = "dragoman.writer"
"""Key of the `RawWriter` in the scope of a request, if its server has one."""


class RawWriter:
    """The connection of a response without a known length, for writing without a coroutine.

    Waking the coroutine of a reader costs more than writing to it.
    """

    def __init__(self, cycle: RequestResponseCycle) -> None:
        # The writer is in the scope, which the cycle holds: a reference cycle would outlive every
        # request.
        self._cycle = weakref.ref(cycle)

    @property
    def is_disconnected(self) -> bool:
        """Return whether the client is gone."""
        cycle = self._cycle()
        return cycle is None or cycle.disconnected

    def write(self, encoded: EncodedChunk) -> bool:
        """Write some more; return False, with nothing written, if the connection is not free.

        It is free between the head and the end of such a response, while the client reads what was
        written.
        """
        cycle = self._cycle()
        if (
            cycle is None
            or not cycle.chunked_encoding
            or cycle.response_complete
            or cycle.disconnected
            or cycle.flow.write_paused
            or cycle.transport.is_closing()
        ):
            return False
        if encoded.chunk:
            cycle.transport.write(encoded.chunk)
        return True


class LoopSignal:
    """A signal to a coroutine that any thread may give; giving it once more costs nothing."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._is_given = False
        self._event = asyncio.Event()

    def give(self, _: Collection[str] = ()) -> None:
        """Wake the coroutine; an `OnCommit`."""
        if not self._is_given:
            self._is_given = True
            call_in_loop(self._loop, self._event.set)

    def clear(self) -> None:
        """Clear it, to wait for the next one."""
        self._is_given = False
        self._event.clear()

    async def wait(self, seconds: float) -> None:
        """Wait until it is given, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Run a callback in a loop, from any thread, without blocking the caller."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The loop is closed: there are no waiters any more.
        return


class Waiter:
    """A stream or long poll that waits for the ledger to grow.

    It is notified while it is blocked; a busy one compares its position with the head of the feed
    before it blocks again. A notification can be handled inline, in the event loop; the coroutine
    of the waiter wakes up only for what cannot be done there.
    """

    def __init__(self, blocked: "set[Waiter]") -> None:
        self._blocked = blocked
        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._inline_handler: Callable[[], bool] | None = None
        self._is_notified = False
        self.is_closed = False
        """True if its client is disconnected, its token has ended, or the hub stops."""
        self.disconnected = False
        """True if it is closed because its connection has ended."""

    def notify(self) -> None:
        """Run the inline handler if it is blocked with one; else end the wait, this one or the
        next."""
        if not self._run_inline_handler():
            self._wake()

    def _run_inline_handler(self) -> bool:
        is_blocked = self._future is not None and not self._future.done()
        if not is_blocked or self._inline_handler is None:
            return False
        try:
            return self._inline_handler()
        except Exception:  # noqa: BLE001  the other waiters must be notified all the same
            _log.exception("the inline handler of a waiter failed; the waiter is woken")
            return False

    def _wake(self) -> None:
        self._is_notified = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def close(self) -> None:
        """End the wait for good."""
        self.is_closed = True
        self._wake()

    def disconnect(self) -> None:
        """End the wait for good, because the connection has ended."""
        self.disconnected = True
        self.close()

    async def wait(self, seconds: float, inline_handler: Callable[[], bool] | None = None) -> None:
        """Wait for a notification, at most for so long.

        `inline_handler` is called in the loop; a notification after which it returns True does not
        end the wait.
        """
        if not self._is_notified:
            self._inline_handler = inline_handler
            self._future = self.loop.create_future()
            self._blocked.add(self)
            timer = self.loop.call_later(seconds, _end_wait, self._future)
            try:
                await self._future
            finally:
                timer.cancel()
                self._blocked.discard(self)
                self._future = None
        self._is_notified = False


def _end_wait(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


# --- following the ledger ---------------------------------------------------------------------

PAGE_SIZE: Final = 500

KEPT_FRAMES: Final = 8_192
"""Newest frames that are kept; up to twice as many until the oldest are dropped."""

KEPT_BYTES: Final = 8 * 1024 * 1024
"""Bytes of the newest frames that are kept, in the same way."""

MAX_WOKEN: Final = 128
"""Waiters that are woken at once; then the loop is left to others for as long as that took."""

_READ_INTERVAL_S: Final = 0.006
"""Minimum interval between two reads of a growing ledger: waking all readers is what costs, not how
much they are sent. An entry that comes after a pause is sent at once."""

_MAX_CATCH_UPS: Final = 2
"""Readers far behind that read the ledger at the same time; the others wait for a slot."""

_MAX_SHARED_CHUNKS: Final = 64
"""Joined chunks that are kept for other readers at the same position, until the ledger grows."""

READY_EVENTS: Final = frozenset(
    {
        "task.created",
        "task.transitioned",
        "task.requeued",
        "task.unblocked",
        "task.unlinked",
        "task.edited",
        "task.rewound",
    }
)
"""Events after which there may be work for a long poll that found none before."""


class Feed:
    """Follows the ledger for all waiters."""

    def __init__(
        self,
        source: EntrySource,
        hints: CommitHints,
        tail: RecentEntries,
        poll_interval: float,
    ) -> None:
        self._source = source
        self._hints = hints
        self._tail = tail
        self._poll_interval = poll_interval
        self._waiters: set[Waiter] = set()
        self._blocked: set[Waiter] = set()
        self._trace_readers = 0
        self._follower: asyncio.Task[None] | None = None
        self._starting = asyncio.Lock()
        self._frames: list[Frame] = []
        self._bytes = 0
        self._traced_after = 0
        """Only the frames after this position have events of traces."""
        self._shared_chunks: dict[tuple[int, FrameFilter], EncodedChunk] = {}
        self._catch_up_slots = asyncio.Semaphore(_MAX_CATCH_UPS)
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
    async def open_waiter(self, *, traces: bool = False) -> AsyncGenerator[Waiter]:
        """Open a waiter; it is notified of everything after `head`."""
        if self.is_closed:
            raise problem_error("stopping", "the hub is about to stop; try again when it runs")
        waiter = Waiter(self._blocked)
        self._waiters.add(waiter)
        self._trace_readers += traces
        try:
            async with self._starting:
                if self._follower is None:
                    self._reset(await asyncio.to_thread(self._source.store.head))
                    self._follower = asyncio.create_task(self._follow())
            yield waiter
        finally:
            self._trace_readers -= traces
            self._waiters.discard(waiter)
            if not self._waiters and self._follower is not None:
                self._follower.cancel()
                self._follower = None
                # The next waiter starts a new follower; until then nobody needs the frames.
                self._reset(self.head)

    def close(self) -> None:
        """Close all waiters, for good; may be called from any thread."""
        self.is_closed = True
        for waiter in tuple(self._waiters):
            call_in_loop(waiter.loop, waiter.close)

    def next_chunk(self, after: int, entry_filter: FrameFilter) -> EncodedChunk | None:
        """Return the next chunk after a position; None if so old a position is not kept."""
        key = (after, entry_filter)
        cached = self._shared_chunks.get(key)
        if cached is None:
            frames = self.kept_frames(after, entry_filter, PAGE_SIZE)
            if frames is None:
                return None
            parts, reached = select_data(frames, entry_filter, after, PAGE_SIZE, MAX_WRITE_BYTES)
            data = b"".join(parts)
            chunk = b"%x\r\n%b\r\n" % (len(data), data) if data else b""
            cached = EncodedChunk(data, chunk, reached)
            if len(self._shared_chunks) < _MAX_SHARED_CHUNKS:
                self._shared_chunks[key] = cached
        return cached

    def kept_frames(
        self, after: int, entry_filter: FrameFilter, limit: int | None = None
    ) -> list[Frame] | None:
        """Return the frames after a position; None if it is too old to be kept."""
        start = after - (self.head - len(self._frames))
        if start < 0 or (after < self._traced_after and isinstance(entry_filter, TraceFilter)):
            return None
        return self._frames[start : None if limit is None else start + limit]

    async def read_older(self, after: int, entry_filter: FrameFilter) -> tuple[bytes, int]:
        """Read the next chunk from the ledger, however old the position is."""
        async with self._catch_up_slots:
            parts, reached = await asyncio.to_thread(
                read_frames,
                self._source,
                entry_filter,
                after,
                PAGE_SIZE,
                MAX_WRITE_BYTES,
                PAGE_SIZE // _OLD_PAGE_SIZE,
            )
        return b"".join(parts), reached

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        hint = LoopSignal()
        unsubscribe = self._hints.subscribe(hint.give)
        try:
            while True:
                hint.clear()
                earliest = loop.time() + _READ_INTERVAL_S
                count = await self._read_next()
                if count:
                    await self._wake_blocked(loop)
                if count < PAGE_SIZE:
                    await hint.wait(self._poll_interval)
                    await asyncio.sleep(earliest - loop.time())
        finally:
            unsubscribe()

    async def _read_next(self) -> int:
        """Read the entries after `head`: those that were written by this process, or else those of
        the store, which another process may have written."""
        has_traces = self._trace_readers > 0
        try:
            entries = self._tail.after(self.head, PAGE_SIZE)
            if entries and not self._needs_store(entries, traces=has_traces):
                frames = list(map(encode_frame, entries))
            else:
                frames = await asyncio.to_thread(self._read_frames, entries, traces=has_traces)
        except Exception:  # noqa: BLE001  waiters must not wait for ever
            _log.exception("the ledger cannot be followed; trying again")
            return 0
        if frames:
            self._append(frames, traces=has_traces)
        return len(frames)

    def _needs_store(self, entries: list[Entry], *, traces: bool) -> bool:
        """Return whether something about new entries is looked up in the store."""
        return self._source.needs_lookup(entries) or (
            traces and any(one.event in TRACE_EVENTS for one in entries)
        )

    def _read_frames(self, entries: list[Entry], *, traces: bool) -> list[Frame]:
        """Encode entries, or those of the store; the session of a move and who may read an entry
        are looked up there."""
        source = self._source
        page = source.add_audiences(entries) if entries else source.page(self.head, PAGE_SIZE)
        frames = [encode_frame(*entry) for entry in page]
        if traces:
            pairs = zip(frames, page, strict=True)
            return [add_trace(source.store, frame, entry) for frame, (entry, _) in pairs]
        return frames

    def _append(self, frames: list[Frame], *, traces: bool) -> None:
        self._frames += frames
        self._bytes += sum(map(_size, frames))
        self._drop_oldest()
        self._shared_chunks.clear()
        self.head = frames[-1].position
        if not traces:
            self._traced_after = self.head
        for one in frames:
            self._last_positions[one.event.partition(".")[0]] = one.position
            if one.event in READY_EVENTS:
                self.last_ready_position = one.position

    async def _wake_blocked(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake all who are blocked; a crowd in batches, so that it never takes the whole loop."""
        blocked = [*self._blocked]
        for start in range(0, len(blocked), MAX_WOKEN):
            started_at = loop.time()
            for waiter in blocked[start : start + MAX_WOKEN]:
                waiter.notify()
            if len(blocked) > MAX_WOKEN:
                # In the next pass of the loop they run and write.
                await asyncio.sleep(0)
                await asyncio.sleep(loop.time() - started_at)

    def _reset(self, head: int) -> None:
        self.head = self._traced_after = head
        self._frames, self._bytes, self._shared_chunks = [], 0, {}

    def _drop_oldest(self) -> None:
        if len(self._frames) <= 2 * KEPT_FRAMES and self._bytes <= 2 * KEPT_BYTES:
            return
        kept = size = 0
        while kept < KEPT_FRAMES and size < KEPT_BYTES and kept < len(self._frames):
            kept += 1
            size += _size(self._frames[-kept])
        del self._frames[:-kept]
        self._bytes = size


def _size(frame: Frame) -> int:
    return len(frame.data) + len(frame.trace_data)
