"""The engine: many callers, one writer thread, one commit for all queued requests (group commit).

Requests of one tick of an event loop are queued together; the writer thread takes whatever has
come while it was committing. If the store refuses a batch, it is undone and run again, at last one
request at a time, so that a poisoned one fails alone.
"""

import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from queue import SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import (
    ActiveHandoffConflict,
    Refusal,
    StoreConflict,
    StoreCorrupt,
    StoreLost,
    StoreUnavailable,
)
from dragoman.core.read import Receipt
from dragoman.engine.batch_reads import StreamCache
from dragoman.engine.execute import execute, preload
from dragoman.engine.ports import Changes, Clock, NewEntry, Store, Transaction
from dragoman.engine.redaction_carry_over import BatchCarryOvers, CarryOverNotStored
from dragoman.engine.request import Outcome, Request
from dragoman.engine.subscribe import OnCommit, RecentEntries
from dragoman.engine.unit_of_work import Unit
from dragoman.text.keyed_digest import keyed_digest

if TYPE_CHECKING:
    # Loaded with the first event loop: a process that runs one command has none.
    import asyncio

MAX_BATCH = 1_024
MAX_QUEUED = 20_000
_MAX_TRIES = 25
_PROBE_DAY = "probe"
"""Used in place of a day, on which no AOF number is given out; 0 and 1 alternate, so that something
is written."""

Failpoint = Callable[[str], None]
OnLeaseChange = Callable[[Collection[str]], None]
"""Called after a commit with the tasks whose leases changed: heartbeats leave no entry to follow.
"""

QueuedRequest: TypeAlias = "tuple[Request, asyncio.Future[Outcome]]"
"""A request and the future of its caller."""


class Engine:
    """Runs requests against a store, durably and one batch at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        secret: bytes,
        *,
        failpoint: Failpoint = lambda _: None,
        on_leases: OnLeaseChange = lambda _: None,
        on_commit: OnCommit = lambda _: None,
    ) -> None:
        self.store = store
        self.clock = clock
        self._secret = secret
        self._failpoint = failpoint
        self._on_leases = on_leases
        self._on_commit = on_commit
        self.current_commit: Callable[[], str] = lambda: ""
        """Returns the commit that the repository has checked out; called before each batch."""
        self.recent_entries = RecentEntries()
        """The newest committed entries, for readers that follow."""
        self._cache = StreamCache()
        self._write_lock = threading.Lock()
        self._start_lock = threading.Lock()
        self._loop_queues: dict[asyncio.AbstractEventLoop, _LoopQueue] = {}
        self._queue: SimpleQueue[tuple[_LoopQueue, list[QueuedRequest]] | None] = SimpleQueue()
        self._writer: threading.Thread | None = None

    def handle_now(self, request: Request) -> Outcome:
        """Run one request in the caller's thread."""
        outcome = self._run_batch([request])[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def handle(self, request: Request) -> "asyncio.Future[Outcome]":
        """Run a request together with those of other callers; await what this returns."""
        import asyncio  # noqa: PLC0415  a process that runs one command has no event loop

        loop = asyncio.get_running_loop()
        loop_queue = self._loop_queues.get(loop)
        if loop_queue is None:
            loop_queue = self._new_loop_queue(loop)
        return loop_queue.submit(request)

    def probe_write(self) -> None:
        """Check that the store takes writes, by one that changes no stream; StoreError."""

        def work(session: Transaction) -> None:
            # A unit drops its cache if other processes have written, as at every write.
            Unit(session, self._cache, self.clock.now())
            session.write(Changes(daily_numbers={_PROBE_DAY: 1 - session.last_number(_PROBE_DAY)}))

        with self._write_lock:
            self.store.transact(work)

    def digest(self, content: bytes) -> bytes:
        """A digest keyed with the hub's secret."""
        return keyed_digest(self._secret, content)

    def close(self) -> None:
        """Finish all queued requests, then stop the writer. The store stays open."""
        with self._start_lock:
            writer, self._writer = self._writer, None
            if writer is not None:
                self._queue.put(None)
        if writer is not None:
            writer.join()

    def _new_loop_queue(self, loop: "asyncio.AbstractEventLoop") -> "_LoopQueue":
        with self._start_lock:
            open_queues = {
                known: f for known, f in self._loop_queues.items() if not known.is_closed()
            }
            loop_queue = open_queues[loop] = _LoopQueue(loop, self._enqueue)
            self._loop_queues = open_queues
        return loop_queue

    def _enqueue(self, loop_queue: "_LoopQueue", requests: list[QueuedRequest]) -> None:
        with self._start_lock:
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._run_writer, name="dragoman-writer", daemon=True
                )
                self._writer.start()
            self._queue.put((loop_queue, requests))

    def _run_writer(self) -> None:
        """The writer thread: batch after batch until close."""
        while (first := self._queue.get()) is not None:
            parts = [first]
            size = len(first[1])
            while size < MAX_BATCH and not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                parts.append(more)
                size += len(more[1])
            outcomes = iter(self._run_batch([request for _, part in parts for request, _ in part]))
            for loop_queue, part in parts:
                loop_queue.deliver([(future, next(outcomes)) for _, future in part])

    def _run_batch(self, requests: Sequence[Request]) -> Sequence[Outcome | Exception]:
        with self._write_lock:
            if len(requests) == 1:
                return [self._run_single(requests[0], rerun=False)]
            lost: StoreLost | None = None
            for rerun in (False, True):
                try:
                    return self._commit(requests, rerun=rerun)
                except StoreConflict:
                    continue
                except StoreLost as error:
                    lost = error
                except CarryOverNotStored:
                    break  # only requests with a carry-over depend on it: run each alone
                except (StoreUnavailable, StoreCorrupt) as error:
                    return [lost or error] * len(requests)
                except Exception:  # noqa: BLE001  it belongs to one request: find out to which
                    break
            return [self._run_single(request, rerun=True, lost=lost) for request in requests]

    def _run_single(
        self, request: Request, *, rerun: bool, lost: StoreLost | None = None
    ) -> Outcome | Exception:
        """Run one request, again while other writers are faster or the outcome is unknown."""
        tries = 0
        while True:
            tries += 1
            try:
                return self._commit([request], rerun=rerun)[0]
            except Exception as error:  # noqa: BLE001  handed to the caller that asked for it
                lost = error if isinstance(error, StoreLost) else lost
                if (
                    tries == _MAX_TRIES
                    and isinstance(error, ActiveHandoffConflict)
                    and lost is None
                ):
                    return Refusal("ownership_conflict", error.detail, "active_handoff")
                if tries == _MAX_TRIES or not isinstance(error, StoreConflict | StoreLost):
                    # Whatever came later, the outcome of the lost try is still unknown.
                    return lost or error
                rerun = True

    def _commit(self, requests: Sequence[Request], *, rerun: bool) -> list[Outcome]:
        """One transaction for these requests. On any failure the cache is dropped with it."""
        # Repository files are read before the transaction, so that no other writer waits for that.
        now, commit = self.clock.now(), self.current_commit()

        def work(session: Transaction) -> _BatchResult:
            unit = Unit(session, self._cache, now, self._secret, commit)
            preload(unit, requests, now, rerun=rerun)
            carry_overs = BatchCarryOvers(lambda event: unit.logged(f"event:{event}") is not None)
            outcomes = [_execute_request(unit, request, carry_overs, now) for request in requests]
            self._failpoint("decided")
            carry_overs.save()
            changes = unit.changes()
            session.write(changes)
            self._failpoint("written")
            return _BatchResult(outcomes, unit, changes.entries, session)

        try:
            result = self.store.transact(work)
        except BaseException:
            self._cache.clear()
            raise
        self._failpoint("committed")
        self._cache.trim()
        unit, first = result.unit, result.transaction.first_position
        if result.entries:
            self.recent_entries.append(first, unit.entry_streams, result.entries)
        if unit.leased:
            self._on_leases(unit.leased)
        if unit.changed:
            self._on_commit(unit.changed)
        return _with_positions(result.outcomes, first) if unit.has_log_rows else result.outcomes


class _BatchResult(Struct, frozen=True):
    """The result of a transaction, reported once it is committed."""

    outcomes: list[Outcome]
    unit: Unit
    entries: Sequence[NewEntry]
    transaction: Transaction


def _execute_request(
    unit: Unit, request: Request, carry_overs: BatchCarryOvers, now: int
) -> Outcome:
    """Execute a request; a chunk is redacted behind the carry-over of the requests before it."""
    chunk = request.carry_over
    if chunk is None:
        return execute(unit, request, now)
    command, carry_over = carry_overs.redact(chunk)
    outcome = execute(unit, replace(request, commands=(command,)), now)
    if not isinstance(outcome, Refusal) and not outcome.repeated:
        carry_overs.add(chunk, carry_over)
    return outcome


def _with_positions(outcomes: list[Outcome], first: int) -> list[Outcome]:
    """The outcomes of a committed batch, with the positions of what it has recorded."""

    def with_position(receipt: Receipt) -> Receipt:
        at = receipt.position
        return receipt if at >= 0 else replace(receipt, position=first - at - 1)

    return [
        outcome
        if isinstance(outcome, Refusal)
        else replace(outcome, receipts=tuple(map(with_position, outcome.receipts)))
        for outcome in outcomes
    ]


class _LoopQueue:
    """The queue of one event loop: collects the requests of one tick, and wakes their callers."""

    def __init__(
        self,
        loop: "asyncio.AbstractEventLoop",
        send: "Callable[[_LoopQueue, list[QueuedRequest]], None]",
    ) -> None:
        self._loop = loop
        self._send = send
        self._pending: list[QueuedRequest] = []
        self._queued = 0

    def submit(self, request: Request) -> "asyncio.Future[Outcome]":
        """Queue a request with the others of this tick."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        if self._queued >= MAX_QUEUED:
            future.set_result(
                Refusal("overloaded", f"{self._queued} requests are waiting; try again")
            )
            return future
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append((request, future))
        self._queued += 1
        return future

    def deliver(self, answers: "list[tuple[asyncio.Future[Outcome], Outcome | Exception]]") -> None:
        """Wake the loop once for all of them; called by the writer."""
        # A closed loop has no caller left; the requests are done all the same.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve, answers)

    def _flush(self) -> None:
        requests, self._pending = self._pending, []
        self._send(self, requests)

    def _resolve(
        self, answers: "list[tuple[asyncio.Future[Outcome], Outcome | Exception]]"
    ) -> None:
        self._queued -= len(answers)
        from dragoman.engine.blocking_lookups import resolve_futures  # noqa: PLC0415  as above

        resolve_futures(answers)
