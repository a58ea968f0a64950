"""The same for programs without an event loop: one runs in a thread, and is waited for.

A lease needs a heartbeat in the background, hence a thread, in any case. A thread cannot be
cancelled: a program without a loop is told of a lost lease by the next thing that it says, or asks
with `work.check()`.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Generator, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from threading import Event as Flag
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from dragoman.client.follow import OnGap, log_gap
from dragoman.client.hub import PATIENCE_S, Hub
from dragoman.client.lease import DEFAULT_BEAT_MS
from dragoman.client.requests import Message, PartFields, TaskFields
from dragoman.client.shapes import Event, NotSent, Sent, Task
from dragoman.client.signing import Signer
from dragoman.client.work import Work
from dragoman.core.commands import DEFAULT_TTL_MS
from dragoman.core.events import Outcome, Status
from dragoman.engine.shown.tasks import TaskSummary

T = TypeVar("T")
_LET_GO_S: Final = 5.0
_NOT_OPEN: Final = "this connection is not open: it is in `with connect_sync() as hub:` only"


def connect_sync(
    url: str = "",
    token: str = "",
    *,
    data: Path | str | None = None,
    patience: float = PATIENCE_S,
    signer: Signer | None = None,
) -> "SyncHub":
    """As `connect`, for `with`."""
    return SyncHub(Hub(url, token, data, patience, signer))


class _Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="dragoman-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Have it run there, and wait for what comes of it."""
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError(_NOT_OPEN)
        ended = Flag()
        under_way = asyncio.run_coroutine_threadsafe(_told(coroutine, ended), self._loop)
        try:
            return under_way.result()
        except BaseException:
            under_way.cancel()
            # Whatever it used can be closed only when it has let go of it.
            ended.wait(_LET_GO_S)
            raise

    def each(self, items: AsyncIterator[T]) -> Generator[T]:
        """What an iterator of the loop gives, one after the other."""
        try:
            while (found := self.run(_next(items))) is not None:
                yield found[0]
        finally:
            # Whoever kept the iterator for longer than the connection has nothing to end.
            if not self._loop.is_closed():
                self.run(_close(items))

    def close(self) -> None:
        """End the loop and its thread."""
        self.run(_end_all())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _told(coroutine: Coroutine[Any, Any, T], ended: Flag) -> T:
    try:
        return await coroutine
    finally:
        ended.set()


async def _next(items: AsyncIterator[T]) -> tuple[T] | None:
    try:
        return (await anext(items),)
    except StopAsyncIteration:
        return None


async def _close(items: AsyncIterator[Any]) -> None:
    close = getattr(items, "aclose", None)
    if close is not None:
        await close()


async def _end_all() -> None:
    """End everything else that runs in this loop."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    await asyncio.get_running_loop().shutdown_asyncgens()


class SyncWork:
    """A task in an agent's hands; see `Work`."""

    def __init__(self, loop: _Loop, work: Work) -> None:
        self._loop = loop
        self._work = work
        self.task: Final = work.task
        self.agent: Final = work.agent
        self.attempt: Final = work.attempt
        self.fence: Final = work.fence

    @property
    def is_open(self) -> bool:
        """Whether it was neither ended nor lost."""
        return self._work.is_open

    def check(self) -> None:
        """Raise LeaseLost if the task is not ours any more."""
        self._work.check()

    def progress(self, text: str, notes: str = "", *, key: str = "") -> Task:
        """Say how it goes."""
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
        """The work is done; or what else came of it. The attempt ends.

        `details` are for programs; a number `cost` in them counts for the agent's budget.
        """
        done = self._work.complete(notes, outcome=outcome, details=details, key=key)
        return self._loop.run(done)

    def block(
        self,
        *blockers: str,
        notes: str = "",
        details: Mapping[str, Any] | None = None,
        key: str = "",
    ) -> Task:
        """The work cannot go on until these are out of the way. The attempt ends."""
        return self._loop.run(self._work.block(*blockers, notes=notes, details=details, key=key))

    def fail(self, notes: str, *, details: Mapping[str, Any] | None = None, key: str = "") -> Task:
        """The attempt failed: another one follows after a rest, up to the task's limit."""
        return self._loop.run(self._work.fail(notes, details=details, key=key))

    def release(self, reason: str = "released", *, key: str = "") -> Task:
        """Give the task back as it is, for anyone to take. The attempt ends."""
        return self._loop.run(self._work.release(reason, key=key))

    def hand_off(
        self,
        to: str,
        title: str,
        *,
        due_by: datetime,
        key: str = "",
        **fields: Unpack[PartFields],
    ) -> Task:
        """Ask another agent to do a part of this task: a new task, which is its own to take."""
        return self._loop.run(self._work.hand_off(to, title, due_by=due_by, key=key, **fields))

    def send(self, message: Message, *, dialect: str = "", key: str = "") -> Sent:
        """Send a message of any dialect, as the agent that has this task."""
        return self._loop.run(self._work.send(message, dialect=dialect, key=key))

    def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Any operation of any dialect, as the agent that has this task."""
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
        self._opened: _Loop | None = None

    @property
    def _loop(self) -> _Loop:
        if self._opened is None:
            raise RuntimeError(_NOT_OPEN)
        return self._opened

    @property
    def url(self) -> str:
        """Where it is now."""
        return self._hub.url

    def __enter__(self) -> Self:
        self._opened = _Loop()
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
        ttl_ms: int = DEFAULT_TTL_MS,
        beat_ms: int = DEFAULT_BEAT_MS,
        stop_when_idle: bool = False,
    ) -> Generator[SyncWork]:
        """Tasks for an agent, one after the other, each claimed and kept alive."""
        works = self._hub.work(
            agent, session=session, ttl_ms=ttl_ms, beat_ms=beat_ms, stop_when_idle=stop_when_idle
        )
        for work in self._loop.each(works.unwatched()):
            yield SyncWork(self._loop, work)

    def assigned(self, *, ttl_ms: int = DEFAULT_TTL_MS, beat_ms: int = DEFAULT_BEAT_MS) -> SyncWork:
        """The task that a hub has started this program for, by DRAGOMAN_TASK and its token."""
        found = self._loop.run(self._hub.assigned(ttl_ms=ttl_ms, beat_ms=beat_ms))
        return SyncWork(self._loop, found)

    def create(self, title: str, *, key: str = "", **fields: Unpack[TaskFields]) -> Task:
        """Make a task, ready to be taken; without an id the hub gives it one."""
        return self._loop.run(self._hub.create(title, key=key, **fields))

    def task(self, name: str) -> Task:
        """A task by any of its names."""
        return self._loop.run(self._hub.task(name))

    def tasks(
        self, *, status: Status | None = None, assignee: str = "", ready: bool = False
    ) -> Generator[TaskSummary]:
        """All tasks that fit, newest first; `ready`: only what can be claimed now."""
        return self._loop.each(self._hub.tasks(status=status, assignee=assignee, ready=ready))

    def move(self, name: str, to: Status, reason: str = "", *, key: str = "") -> Task:
        """Give a task another status, as one who may decide that."""
        return self._loop.run(self._hub.move(name, to, reason, key=key))

    def send(self, message: Message, *, dialect: str = "", key: str = "") -> Sent:
        """Send a message of any dialect; without its name the hub finds out which."""
        return self._loop.run(self._hub.send(message, dialect=dialect, key=key))

    def send_all(
        self, messages: Iterable[Message], *, dialect: str = "", key: str = ""
    ) -> list[Sent | NotSent]:
        """Send many messages; what came of each, in order."""
        return self._loop.run(self._hub.send_all(messages, dialect=dialect, key=key))

    def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Any operation of any dialect, by its name; its reply in the dialect's own form."""
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
        """What happens, from a position of the ledger on (0: everything; None: from now on)."""
        return self._loop.each(
            self._hub.events(
                after, task=task, type=type, agent=agent, dialect=dialect, on_gap=on_gap
            )
        )
