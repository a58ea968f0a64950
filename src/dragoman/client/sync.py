"""Synchronous SDK: the same hub for programs without an event loop; one runs in a thread.

A lease needs a heartbeat in the background, hence a thread, in any case. A thread cannot be
cancelled: a synchronous program learns of a lost lease from its next call, or from `work.check()`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from dragoman.client.event_stream import OnGap, log_gap
from dragoman.client.hub import DEFAULT_PATIENCE_S, Hub
from dragoman.client.models import AcceptedMessage, Event, RejectedMessage, Task
from dragoman.client.requests import Message, SubtaskFields, TaskFields
from dragoman.client.signing import Signer
from dragoman.client.work import DEFAULT_HEARTBEAT_MS, Work
from dragoman.core.base import DEFAULT_LEASE_MS, Outcome, Status
from dragoman.engine.schemas.tasks import TaskSummary

T = TypeVar("T")
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


class SyncWork:
    """One attempt on a task; see `Work`."""

    def __init__(self, loop: _LoopThread, work: Work) -> None:
        self._loop = loop
        self._work = work
        self.task: Final = work.task
        self.agent: Final = work.agent
        self.attempt: Final = work.attempt
        self.fence: Final = work.fence

    @property
    def is_open(self) -> bool:
        """True while it is neither ended nor lost."""
        return self._work.is_open

    def check(self) -> None:
        """Raise LeaseLost if the task is not ours any more."""
        self._work.check()

    def progress(self, text: str, notes: str = "", *, key: str = "") -> Task:
        """Report progress."""
        return self._loop.run(self._work.progress(text, notes, key=key))

    def note(self, text: str, *, key: str = "") -> Task:
        """Add a line to the work log."""
        return self._loop.run(self._work.note(text, key=key))

    def complete(
        self,
        notes: str = "",
        *,
        outcome: Outcome = "done",
        details: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Task:
        """End the attempt: the work is done, or has another outcome.

        `details` are for programs; a number `cost` in them counts for the agent's budget.
        """
        completion = self._work.complete(notes, outcome=outcome, details=details, key=key)
        return self._loop.run(completion)

    def block(
        self,
        *blockers: str,
        notes: str = "",
        details: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Task:
        """End the attempt: the work cannot go on until these are out of the way."""
        return self._loop.run(self._work.block(*blockers, notes=notes, details=details, key=key))

    def fail(self, notes: str, *, details: Mapping[str, Any] | None = None, key: str = "") -> Task:
        """End the attempt as failed: another one follows after a pause, up to the task's limit."""
        return self._loop.run(self._work.fail(notes, details=details, key=key))

    def release(self, reason: str = "released", *, key: str = "") -> Task:
        """Give the task back as it is, for anyone to claim. The attempt ends."""
        return self._loop.run(self._work.release(reason, key=key))

    def hand_off(
        self,
        to: str,
        title: str,
        *,
        due_by: datetime,
        key: str = "",
        **fields: Unpack[SubtaskFields],
    ) -> Task:
        """Ask another agent to do a part of this task: a new task that only it can claim."""
        return self._loop.run(self._work.hand_off(to, title, due_by=due_by, key=key, **fields))

    def send(self, message: Message, *, dialect: str = "", key: str = "") -> AcceptedMessage:
        """Send a message of any dialect, as the agent that has this task."""
        return self._loop.run(self._work.send(message, dialect=dialect, key=key))

    def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Call any operation of any dialect, as the agent that has this task."""
        return self._loop.run(self._work.call(operation, arguments, key=key))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._loop.run(self._work.leave(error))
        if error is None:
            self.check()


class SyncHub:
    """A connection to a hub; `with` opens it. See `Hub`."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._loop_thread: _LoopThread | None = None

    @property
    def _loop(self) -> _LoopThread:
        if self._loop_thread is None:
            raise RuntimeError(_NOT_OPEN)
        return self._loop_thread

    @property
    def url(self) -> str:
        """The current URL of the hub."""
        return self._hub.url

    def __enter__(self) -> Self:
        self._loop_thread = _LoopThread()
        try:
            self._loop.run(self._hub.__aenter__())
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
            self._loop.run(self._hub.__aexit__(kind, error, trace))
        finally:
            self._loop.close()

    def work(
        self,
        agent: str,
        *,
        session: str = "",
        ttl_ms: int = DEFAULT_LEASE_MS,
        beat_ms: int = DEFAULT_HEARTBEAT_MS,
        stop_when_idle: bool = False,
    ) -> Generator[SyncWork]:
        """Claim tasks for an agent, one after the other, each kept alive by heartbeats."""
        works = self._hub.work(
            agent, session=session, ttl_ms=ttl_ms, beat_ms=beat_ms, stop_when_idle=stop_when_idle
        )
        for work in self._loop.iterate(works.without_cancellation()):
            yield SyncWork(self._loop, work)

    def assigned(
        self, *, ttl_ms: int = DEFAULT_LEASE_MS, beat_ms: int = DEFAULT_HEARTBEAT_MS
    ) -> SyncWork:
        """Return the task that a hub started this program for, by DRAGOMAN_TASK and its token."""
        found = self._loop.run(self._hub.assigned(ttl_ms=ttl_ms, beat_ms=beat_ms))
        return SyncWork(self._loop, found)

    def create(self, title: str, *, key: str = "", **fields: Unpack[TaskFields]) -> Task:
        """Create a task, ready to be claimed; without an id the hub assigns one."""
        return self._loop.run(self._hub.create(title, key=key, **fields))

    def task(self, name: str) -> Task:
        """Return a task by any of its names."""
        return self._loop.run(self._hub.task(name))

    def tasks(
        self, *, status: Status | None = None, assignee: str = "", ready: bool = False
    ) -> Generator[TaskSummary]:
        """Yield all matching tasks, newest first; `ready`: only those that can be claimed now."""
        return self._loop.iterate(self._hub.tasks(status=status, assignee=assignee, ready=ready))

    def move(self, name: str, to: Status, reason: str = "", *, key: str = "") -> Task:
        """Move a task to another status, with the right to do so."""
        return self._loop.run(self._hub.move(name, to, reason, key=key))

    def send(self, message: Message, *, dialect: str = "", key: str = "") -> AcceptedMessage:
        """Send a message of any dialect; without its name the hub recognises the dialect."""
        return self._loop.run(self._hub.send(message, dialect=dialect, key=key))

    def send_all(
        self, messages: Iterable[Message], *, dialect: str = "", key: str = ""
    ) -> list[AcceptedMessage | RejectedMessage]:
        """Send many messages; return the outcome of each, in order."""
        return self._loop.run(self._hub.send_all(messages, dialect=dialect, key=key))

    def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Call any operation of any dialect by its name; the reply is in the dialect's own form."""
        return self._loop.run(self._hub.call(operation, arguments, key=key))

    def events(
        self,
        after: int | None = None,
        *,
        task: str = "",
        type: str = "",
        agent: str = "",
        dialect: str = "",
        on_gap: OnGap = log_gap,
    ) -> Generator[Event]:
        """Yield events from a position of the ledger on (0: everything; None: from now on)."""
        return self._loop.iterate(
            self._hub.events(
                after, task=task, type=type, agent=agent, dialect=dialect, on_gap=on_gap
            )
        )
