"""The door for requests: many callers, one writer, one commit for all who wait.

Requests of one turn of the event loop travel together; the writer thread takes whatever has come
while it was committing. If the store refuses a batch, it is undone and run one request at a time,
so that a poisoned one fails alone.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from queue import SimpleQueue

from msgspec import Struct

from dragoman.core.errors import Refusal, StoreConflict, StoreLost
from dragoman.engine.execute import execute
from dragoman.engine.prepare import prepare
from dragoman.engine.ports import Clock, Session, Store
from dragoman.engine.request import Outcome, Request
from dragoman.engine.unit import Cache, Unit

MOST_IN_BATCH = 1_024
MOST_WAITING = 20_000
_CACHED_STREAMS = 20_000
_TRIES = 25

Failpoint = Callable[[str], None]


class _Waiting(Struct):
    """A request and the caller that waits for its outcome."""

    request: Request
    future: asyncio.Future[Outcome]


class Engine:
    """Runs requests against a store, durably and one batch at a time."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        secret: bytes,
        *,
        failpoint: Failpoint = lambda _: None,
    ) -> None:
        self.store = store
        self.clock = clock
        self._secret = secret
        self._failpoint = failpoint
        self._cache: Cache = {}
        self._writing = threading.Lock()
        self._gathering: dict[asyncio.AbstractEventLoop, list[_Waiting]] = {}
        self._queue: SimpleQueue[list[_Waiting] | None] = SimpleQueue()
        self._waiting = 0
        self._writer: threading.Thread | None = None

    def handle_now(self, request: Request) -> Outcome:
        """Run one request in the caller's thread."""
        outcome = self._run([request])[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def handle(self, request: Request) -> Outcome:
        """Run a request together with those of other callers."""
        if self._waiting >= MOST_WAITING:
            return Refusal("overloaded", f"{self._waiting} requests are waiting; try again")
        loop = asyncio.get_running_loop()
        waiting = _Waiting(request, loop.create_future())
        gathering = self._gathering.get(loop)
        if gathering is None:
            self._gathering[loop] = [waiting]
            loop.call_soon(self._send, loop)
        else:
            gathering.append(waiting)
        self._waiting += 1
        try:
            return await waiting.future
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Finish what was handed in, then stop the writer. The store stays open."""
        writer, self._writer = self._writer, None
        if writer is not None:
            self._queue.put(None)
            writer.join()

    def _send(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, name="dragoman-writer", daemon=True)
            self._writer.start()
        self._queue.put(self._gathering.pop(loop))

    def _write(self) -> None:
        """The writer thread: batch after batch until the end is announced."""
        while True:
            batch = self._queue.get()
            if batch is None:
                return
            while len(batch) < MOST_IN_BATCH and not self._queue.empty():
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                batch += more
            outcomes = self._run([waiting.request for waiting in batch])
            _deliver(batch, outcomes)

    def _run(self, requests: Sequence[Request]) -> Sequence[Outcome | Exception]:
        with self._writing:
            if len(requests) == 1:
                return [self._run_alone(requests[0], rerun=False)]
            try:
                return self._commit(requests, rerun=False)
            except Exception:  # noqa: BLE001  it belongs to one request: run them singly to find it
                return [self._run_alone(request, rerun=True) for request in requests]

    def _run_alone(self, request: Request, *, rerun: bool) -> Outcome | Exception:
        """One request, again while other writers are faster or the outcome is unknown."""
        tries = 0
        while True:
            tries += 1
            try:
                return self._commit([request], rerun=rerun)[0]
            except Exception as error:  # noqa: BLE001  handed to the caller that asked for it
                if tries == _TRIES or not isinstance(error, StoreConflict | StoreLost):
                    return error
                rerun = True

    def _commit(self, requests: Sequence[Request], *, rerun: bool) -> list[Outcome]:
        """One transaction for these requests. On any failure the cache is dropped with it."""
        now = self.clock.now()

        def work(session: Session) -> list[Outcome]:
            unit = Unit(session, self._cache, now)
            prepare(unit, requests, now, rerun=rerun)
            outcomes = [
                execute(unit, request, now, self._secret, rerun=rerun) for request in requests
            ]
            self._failpoint("decided")
            session.write(unit.changes())
            self._failpoint("written")
            return outcomes

        try:
            outcomes = self.store.transact(work)
        except BaseException:
            self._cache.clear()
            raise
        self._failpoint("committed")
        self._trim_cache()
        return outcomes

    def _trim_cache(self) -> None:
        excess = len(self._cache) - _CACHED_STREAMS
        if excess > 0:
            for stream in list(islice(self._cache, excess + _CACHED_STREAMS // 4)):
                del self._cache[stream]


def _deliver(batch: Sequence[_Waiting], outcomes: Sequence[Outcome | Exception]) -> None:
    """Wake each caller's loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Waiting, Outcome | Exception]]] = {}
    for waiting, outcome in zip(batch, outcomes, strict=True):
        by_loop.setdefault(waiting.future.get_loop(), []).append((waiting, outcome))
    for loop, answers in by_loop.items():
        # A loop that was closed has nobody left who waits; what was asked for is done all the same.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_resolve, answers)


def _resolve(answers: Sequence[tuple[_Waiting, Outcome | Exception]]) -> None:
    for waiting, outcome in answers:
        if waiting.future.done():
            continue
        if isinstance(outcome, Exception):
            waiting.future.set_exception(outcome)
        else:
            waiting.future.set_result(outcome)
