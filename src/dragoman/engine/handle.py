"""The door for requests: many callers, one writer, one commit for all who wait.

Requests of one turn of an event loop travel together; the writer thread takes whatever has come
while it was committing. If the store refuses a batch, it is undone and run again, at last one
request at a time, so that a poisoned one fails alone.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Collection, Sequence
from queue import SimpleQueue

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import (
    Refusal,
    StoreConflict,
    StoreCorrupt,
    StoreLost,
    StoreUnavailable,
    TaskOnItsWay,
)
from dragoman.core.reading import Receipt
from dragoman.engine.aside import resolve
from dragoman.engine.execute import execute
from dragoman.engine.ports import Changes, Clock, NewEntry, Session, Store
from dragoman.engine.prepare import prepare
from dragoman.engine.request import Outcome, Request
from dragoman.engine.rests import Batch, RestsUnkept
from dragoman.engine.snapshots import Cache
from dragoman.engine.tail import Tail
from dragoman.engine.unit import Unit
from dragoman.text.digest import keyed_digest

MOST_IN_BATCH = 1_024
MOST_WAITING = 20_000
_TRIES = 25
_PROBE = "probe"
"""Used in place of a day, on which no AOF number is given out; 0 and 1 alternate, so that something
is written."""

Failpoint = Callable[[str], None]
OnLeases = Callable[[Collection[str]], None]
"""Called after a commit with the tasks whose leases changed: heartbeats leave no entry to follow.
"""
OnCommit = Callable[[Collection[str]], None]
"""Called after a commit with the streams that have new entries: a hint, in the thread that wrote
them."""
Waiting = tuple[Request, asyncio.Future[Outcome]]
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
        on_leases: OnLeases = lambda _: None,
        on_commit: OnCommit = lambda _: None,
    ) -> None:
        self.store = store
        self.clock = clock
        self._secret = secret
        self._failpoint = failpoint
        self._on_leases = on_leases
        self._on_commit = on_commit
        self.head: Callable[[], str] = lambda: ""
        """Returns the commit that the repository has checked out; called before each batch."""
        self.tail = Tail()
        """The newest committed entries, for readers that follow."""
        self._cache = Cache()
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._fronts: dict[asyncio.AbstractEventLoop, _Front] = {}
        self._queue: SimpleQueue[tuple[_Front, list[Waiting]] | None] = SimpleQueue()
        self._writer: threading.Thread | None = None

    def handle_now(self, request: Request) -> Outcome:
        """Run one request in the caller's thread."""
        outcome = self._run([request])[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def handle(self, request: Request) -> asyncio.Future[Outcome]:
        """Run a request together with those of other callers; await what this returns."""
        loop = asyncio.get_running_loop()
        front = self._fronts.get(loop)
        if front is None:
            front = self._new_front(loop)
        return front.submit(request)

    def probe(self) -> None:
        """Check that the store takes writes, by one that changes no stream; StoreError."""

        def work(session: Session) -> None:
            # A unit drops its cache if other processes have written, as at every write.
            Unit(session, self._cache, self.clock.now())
            session.write(Changes(numbers={_PROBE: 1 - session.last_number(_PROBE)}))

        with self._writing:
            self.store.transact(work)

    def digest(self, content: bytes) -> bytes:
        """A digest keyed with the hub's secret."""
        return keyed_digest(self._secret, content)

    def close(self) -> None:
        """Finish all queued requests, then stop the writer. The store stays open."""
        with self._starting:
            writer, self._writer = self._writer, None
            if writer is not None:
                self._queue.put(None)
        if writer is not None:
            writer.join()

    def _new_front(self, loop: asyncio.AbstractEventLoop) -> "_Front":
        with self._starting:
            open_ones = {known: f for known, f in self._fronts.items() if not known.is_closed()}
            front = open_ones[loop] = _Front(loop, self._send)
            self._fronts = open_ones
        return front

    def _send(self, front: "_Front", gathered: list[Waiting]) -> None:
        with self._starting:
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._write, name="dragoman-writer", daemon=True
                )
                self._writer.start()
            self._queue.put((front, gathered))

    def _write(self) -> None:
        """The writer thread: batch after batch until close."""
        while (first := self._queue.get()) is not None:
            parts = [first]
            size = len(first[1])
            while size < MOST_IN_BATCH and not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                parts.append(more)
                size += len(more[1])
            outcomes = iter(self._run([request for _, part in parts for request, _ in part]))
            for front, part in parts:
                front.deliver([(future, next(outcomes)) for _, future in part])

    def _run(self, requests: Sequence[Request]) -> Sequence[Outcome | Exception]:
        with self._writing:
            if len(requests) == 1:
                return [self._run_alone(requests[0], rerun=False)]
            lost: StoreLost | None = None
            for rerun in (False, True):
                try:
                    return self._commit(requests, rerun=rerun)
                except StoreConflict:
                    continue
                except StoreLost as error:
                    lost = error
                except RestsUnkept:
                    break  # only requests with a carry-over depend on it: run each alone
                except (StoreUnavailable, StoreCorrupt) as error:
                    return [lost or error] * len(requests)
                except Exception:  # noqa: BLE001  it belongs to one request: find out to which
                    break
            return [self._run_alone(request, rerun=True, lost=lost) for request in requests]

    def _run_alone(
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
                if tries == _TRIES and isinstance(error, TaskOnItsWay) and lost is None:
                    return Refusal("ownership_conflict", error.detail, "active_handoff")
                if tries == _TRIES or not isinstance(error, StoreConflict | StoreLost):
                    # Whatever came later, the outcome of the lost try is still unknown.
                    return lost or error
                rerun = True

    def _commit(self, requests: Sequence[Request], *, rerun: bool) -> list[Outcome]:
        """One transaction for these requests. On any failure the cache is dropped with it."""
        # Repository files are read before the transaction, so that no other writer waits for that.
        now, commit = self.clock.now(), self.head()

        def work(session: Session) -> _Written:
            unit = Unit(session, self._cache, now, self._secret, commit)
            prepare(unit, requests, now, rerun=rerun)
            rests = Batch(lambda event: unit.logged(f"event:{event}") is not None)
            outcomes = [_decided(unit, request, rests, now) for request in requests]
            self._failpoint("decided")
            rests.keep()
            changes = unit.changes()
            session.write(changes)
            self._failpoint("written")
            return _Written(outcomes, unit, changes.entries, session, rests)

        try:
            done = self.store.transact(work)
        except BaseException:
            self._cache.clear()
            raise
        self._failpoint("committed")
        done.rests.settle()
        self._cache.trim()
        unit, first = done.unit, done.session.first
        if done.entries:
            self.tail.grow(first, unit.recorded_in, done.entries)
        if unit.leased:
            self._on_leases(unit.leased)
        if unit.changed:
            self._on_commit(unit.changed)
        return _placed(done.outcomes, first) if unit.has_logged else done.outcomes


class _Written(Struct, frozen=True):
    """The result of a transaction, reported once it is committed."""

    outcomes: list[Outcome]
    unit: Unit
    entries: Sequence[NewEntry]
    session: Session
    rests: Batch


def _decided(unit: Unit, request: Request, rests: Batch, now: int) -> Outcome:
    """Execute a request; a chunk is reconciled with the carry-over of the requests before it."""
    if request.rest is None:
        return execute(unit, request, now)
    rest = rests.level(request.rest)
    if rest is not request.rest:
        request = replace(request, commands=rest.commands)
    outcome = execute(unit, request, now)
    if isinstance(outcome, Refusal) or outcome.repeated:
        rest.shelf.expect_no_more(rest)
    else:
        rests.leave(rest)
    return outcome


def _placed(outcomes: list[Outcome], first: int) -> list[Outcome]:
    """The outcomes of a committed batch, with the positions of what it has recorded."""

    def placed(receipt: Receipt) -> Receipt:
        at = receipt.position
        return receipt if at >= 0 else replace(receipt, position=first - at - 1)

    return [
        outcome
        if isinstance(outcome, Refusal)
        else replace(outcome, receipts=tuple(map(placed, outcome.receipts)))
        for outcome in outcomes
    ]


class _Front:
    """The queue of one event loop: collects the requests of one tick, and wakes their callers."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        send: "Callable[[_Front, list[Waiting]], None]",
    ) -> None:
        self._loop = loop
        self._send = send
        self._gathered: list[Waiting] = []
        self._waiting = 0

    def submit(self, request: Request) -> asyncio.Future[Outcome]:
        """Queue a request with the others of this tick."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        if self._waiting >= MOST_WAITING:
            future.set_result(
                Refusal("overloaded", f"{self._waiting} requests are waiting; try again")
            )
            return future
        if not self._gathered:
            self._loop.call_soon(self._leave)
        self._gathered.append((request, future))
        self._waiting += 1
        return future

    def deliver(self, answers: list[tuple[asyncio.Future[Outcome], Outcome | Exception]]) -> None:
        """Wake the loop once for all of them; called by the writer."""
        # A closed loop has no caller left; the requests are done all the same.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve, answers)

    def _leave(self) -> None:
        gathered, self._gathered = self._gathered, []
        self._send(self, gathered)

    def _resolve(self, answers: list[tuple[asyncio.Future[Outcome], Outcome | Exception]]) -> None:
        self._waiting -= len(answers)
        resolve(answers)
