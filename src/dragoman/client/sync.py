"""Synchronous SDK: the same hub for programs without an event loop; one runs in a thread.

A lease needs a heartbeat in the background, hence a thread, in any case. A thread cannot be
cancelled: a synchronous program learns of a lost lease from its next call, or from `work.check()`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Generator
from functools import wraps
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from types import TracebackType
from typing import Any, Concatenate, Final, Generic, ParamSpec, Self, TypeVar

from dragoman.client.hub import DEFAULT_PATIENCE_S, Hub
from dragoman.client.signing import Signer
from dragoman.client.work import DEFAULT_HEARTBEAT_MS, Work

T = TypeVar("T")
A = TypeVar("A")
P = ParamSpec("P")
_CANCEL_WAIT_S: Final = 5.0
_NOT_OPEN: Final = "this connection is not open: it is in `with connect_sync() as hub:` only"


def connect_sync(
    url: str = "",
    token: str = "",
    *,
    data: Path | str | None = None,
    patience: float = DEFAULT_PATIENCE_S,
    signer: Signer | None = None,
) -> "SyncHub":
    """Connect as `connect` does, for `with`."""
    return SyncHub(Hub(url, token, data, patience, signer))


class _LoopThread:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="dragoman-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and return its result."""
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError(_NOT_OPEN)
        ended = Flag()
        future = asyncio.run_coroutine_threadsafe(_run_and_signal(coroutine, ended), self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            # Its resources can be closed only when it has let go of them.
            ended.wait(_CANCEL_WAIT_S)
            raise

    def iterate(self, items: AsyncIterator[T]) -> Generator[T]:
        """Yield the items of an asynchronous iterator."""
        try:
            while (item := self.run(_next_or_none(items))) is not None:
                yield item[0]
        finally:
            # An iterator that outlives the connection has nothing to end.
            if not self._loop.is_closed():
                self.run(_close_iterator(items))

    def close(self) -> None:
        """End the loop and its thread."""
        self.run(_cancel_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _run_and_signal(coroutine: Coroutine[Any, Any, T], ended: Flag) -> T:
    try:
        return await coroutine
    finally:
        ended.set()


async def _next_or_none(items: AsyncIterator[T]) -> tuple[T] | None:
    try:
        return (await anext(items),)
    except StopAsyncIteration:
        return None


async def _close_iterator(items: AsyncIterator[Any]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()


async def _cancel_all() -> None:
    """Cancel all other tasks of this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class _Blocking(Generic[A]):
    """A connection or an attempt whose coroutines run in the loop of a thread."""

    def __init__(self, target: A) -> None:
        self._target = target
        self._loop_thread: _LoopThread | None = None

    @property
    def _loop(self) -> _LoopThread:
        if self._loop_thread is None:
            raise RuntimeError(_NOT_OPEN)
        return self._loop_thread


def _blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[_Blocking[A], P], T]:
    """Derive a method that waits for the result of this one."""

    @wraps(method)
    def call(self: _Blocking[A], *args: P.args, **kwargs: P.kwargs) -> T:
        # The loop first: there may be none, and a coroutine that is made has to be awaited.
        loop, target = self._loop, self._target  # pyright: ignore[reportPrivateUsage]
        return loop.run(method(target, *args, **kwargs))

    return call


def _iterating(
    method: Callable[Concatenate[A, P], AsyncIterator[T]],
) -> Callable[Concatenate[_Blocking[A], P], Generator[T]]:
    """Derive a method that yields what this one yields."""

    @wraps(method)
    def iterate(self: _Blocking[A], *args: P.args, **kwargs: P.kwargs) -> Generator[T]:
        loop, target = self._loop, self._target  # pyright: ignore[reportPrivateUsage]
        return loop.iterate(method(target, *args, **kwargs))

    return iterate


class SyncWork(_Blocking[Work]):
    """One attempt on a task; see `Work`."""

    def __init__(self, loop: _LoopThread, work: Work) -> None:
        super().__init__(work)
        self._loop_thread = loop
        self.task: Final = work.task
        self.agent: Final = work.agent
        self.attempt: Final = work.attempt
        self.fence: Final = work.fence
        self.briefing: Final = work.briefing

    @property
    def is_open(self) -> bool:
        """True while it is neither ended nor lost."""
        return self._target.is_open

    def check(self) -> None:
        """Raise LeaseLost if the task is not ours any more."""
        self._target.check()

    progress: Final = _blocking(Work.progress)
    note: Final = _blocking(Work.note)
    ask: Final = _blocking(Work.ask)
    complete: Final = _blocking(Work.complete)
    block: Final = _blocking(Work.block)
    fail: Final = _blocking(Work.fail)
    release: Final = _blocking(Work.release)
    hand_off: Final = _blocking(Work.hand_off)
    send: Final = _blocking(Work.send)
    call: Final = _blocking(Work.call)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.run(self._target.leave(error))
        if error is None:
            self.check()


class SyncHub(_Blocking[Hub]):
    """A connection to a hub; `with` opens it. See `Hub`."""

    @property
    def url(self) -> str:
        """The current URL of the hub."""
        return self._target.url

    def __enter__(self) -> Self:
        self._loop_thread = _LoopThread()
        try:
            self._loop.run(self._target.__aenter__())
        except BaseException:
            self._loop.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._loop.run(self._target.__aexit__(kind, error, trace))
        finally:
            self._loop.close()

    def work(
        self,
        agent: str,
        *,
        session: str = "",
        ttl_ms: int | None = None,
        beat_ms: int = DEFAULT_HEARTBEAT_MS,
        stop_when_idle: bool = False,
    ) -> Generator[SyncWork]:
        """Claim tasks for an agent, one after the other, each kept alive by heartbeats."""
        works = self._target.work(
            agent, session=session, ttl_ms=ttl_ms, beat_ms=beat_ms, stop_when_idle=stop_when_idle
        )
        for work in self._loop.iterate(works.without_cancellation()):
            yield SyncWork(self._loop, work)

    def assigned(self, *, beat_ms: int = DEFAULT_HEARTBEAT_MS) -> SyncWork:
        """Return the task that a hub started this program for, by DRAGOMAN_TASK and its token."""
        found = self._loop.run(self._target.assigned(beat_ms=beat_ms))
        return SyncWork(self._loop, found)

    create: Final = _blocking(Hub.create)
    status: Final = _blocking(Hub.status)
    task: Final = _blocking(Hub.task)
    tasks: Final = _iterating(Hub.tasks)
    move: Final = _blocking(Hub.move)
    send: Final = _blocking(Hub.send)
    send_all: Final = _blocking(Hub.send_all)
    call: Final = _blocking(Hub.call)
    events: Final = _iterating(Hub.events)
