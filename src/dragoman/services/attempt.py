"""One attempt under watch: started, kept alive, heard, stopped when it must be, and settled."""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import Literal

import msgspec
from msgspec import UNSET, Struct

from dragoman.core.actors import SYSTEM, Actor
from dragoman.core.commands import (
    AnyCommand,
    EndAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.deadlines import Backoff
from dragoman.core.errors import DragomanError, Refusal, Refused, StoreError
from dragoman.core.events import EVENT_NAMES, TaskReported
from dragoman.core.ids import task_stream
from dragoman.core.limits import REASON
from dragoman.core.reading import Receipt
from dragoman.engine.ask import TaskView, find_task, history
from dragoman.engine.hub import Hub
from dragoman.engine.runner import Assignment, Ended, Runner, Running
from dragoman.ledger.entry import read_line
from dragoman.services.budgets import cost_of

VIA = "runner"
"""The door through which started agents speak."""

OnStop = Literal["release", "keep"]
Speak = Callable[[Actor, bytes], Awaitable[str]]
"""Brings what an agent said to the hub; what is to be noted beside it, if anything."""

_BEATS_PER_LEASE = 3
_STORE_REST_SECONDS = 1.0
_OVERLOADED = "overloaded"
_REPORTED = EVENT_NAMES[TaskReported]


class Terms(Struct, frozen=True):
    """What holds for all attempts."""

    backoff: Backoff
    stop_seconds: float
    on_stop: OnStop


class Spent(Struct, frozen=True):
    """What an attempt has used."""

    task: str
    ms: int = 0
    output: int = 0
    cost: float = 0
    not_started: str = ""
    """Why its agent could not even be started."""


class Attempt:
    """An attempt that was claimed for an agent which is to be started."""

    def __init__(
        self, hub: Hub, assignment: Assignment, runner: Runner, speak: Speak, terms: Terms
    ) -> None:
        self.assignment = assignment
        self._hub = hub
        self._runner = runner
        self._speak = speak
        self._terms = terms
        # Bound to its fencing token: whatever comes late, of this process or another, is refused.
        self._actor = Actor("agent", assignment.agent, VIA, assignment.task, assignment.fence)
        self._news = asyncio.Event()
        self._news.set()  # what has happened since it was claimed was told to nobody
        self._is_halted = False
        self._hurry = asyncio.Event()

    def look(self) -> None:
        """Something has happened to its task."""
        self._news.set()

    def halt(self) -> None:
        """The hub stops: do not wait any longer."""
        self._is_halted = True
        self._news.set()

    def hurry(self) -> None:
        """The hub stops at once: whoever has to end may not clean up."""
        self._hurry.set()
        self.halt()

    async def live(self, limit_ms: int) -> Spent:
        """The whole of it, in at most so many milliseconds (0: any)."""
        task, clock = self.assignment.task, asyncio.get_running_loop().time
        begun = clock()
        try:
            running = await self._runner.start(self.assignment, self._hear)
        except OSError as error:
            problem = f"{error.filename or ''} {error.strerror or error}".strip()
            await self._settle(ReleaseTask(task, f"not started: {problem}"[:REASON]))
            return Spent(task, not_started=problem)
        ended = asyncio.ensure_future(running.wait())
        try:
            otherwise = await self._watched(ended, running, begun + (limit_ms / 1_000 or inf))
            if ended.done():
                otherwise = self._last_word(ended.result().problem)
            elif not self._stays(running):
                await self._stop(running)
                await ended
            await self._settle(otherwise)
        finally:
            if not ended.done() and not self._stays(running):
                await running.stop(0)
                await ended
            ended.cancel()
            running.forget()
        ms = round((clock() - begun) * 1_000)
        return Spent(task, ms, running.said, self._cost())

    async def _stop(self, running: Running) -> None:
        stopping = asyncio.ensure_future(running.stop(self._terms.stop_seconds))
        hurried = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait((stopping, hurried), return_when=asyncio.FIRST_COMPLETED)
        hurried.cancel()
        if not stopping.done():
            await running.stop(0)
        await stopping

    def _stays(self, running: Running) -> bool:
        """Whether it lives elsewhere and goes on while the hub is away."""
        return self._is_halted and self._terms.on_stop == "keep" and not running.is_beating

    async def _watched(
        self, ended: "asyncio.Future[Ended]", running: Running, deadline: float
    ) -> AnyCommand | None:
        """Until it has ended or must be stopped; what becomes of its task if it has not reported.

        None: that is for others to say.
        """
        clock = asyncio.get_running_loop().time
        beat = self.assignment.ttl_ms / 1_000 / _BEATS_PER_LEASE
        next_beat = clock() + beat
        while not self._is_halted:
            await self._next(ended, min(next_beat, deadline) - clock())
            if ended.done():
                return None
            if clock() >= deadline:
                return self._failed("it took longer than an attempt may (attempt_ms)")
            if clock() >= next_beat:
                next_beat = clock() + beat
                if running.is_beating and not await self._beat():
                    return None
            if not await self._is_ours(running):
                return None
        if self._terms.on_stop == "keep":
            return None
        return ReleaseTask(self.assignment.task, "hub_stopped", self.assignment.fence)

    async def _next(self, ended: "asyncio.Future[Ended]", seconds: float) -> None:
        """Until something has happened, or the time is over."""
        news = asyncio.ensure_future(self._news.wait())
        await asyncio.wait(
            (ended, news), timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED
        )
        news.cancel()
        if not self._is_halted:
            self._news.clear()

    async def _beat(self) -> bool:
        """A heartbeat; False when the lease is lost."""
        try:
            await self._hub.do_soon(
                self._actor, RenewLease(self.assignment.task, self.assignment.fence)
            )
        except Refused as refused:
            return refused.code == _OVERLOADED
        except StoreError:  # the lease may outlast it; the next heartbeat tells
            return True
        return True

    async def _is_ours(self, running: Running) -> bool:
        """Whether the lease is still this attempt's; one elsewhere ends with its report."""
        view = self._view()
        if view is None:
            return True
        if view.lease is None or view.lease.fence != self.assignment.fence:
            return False
        if not running.is_beating and view.task.reported is not None:
            await self._settle(None)
            return False
        return True

    def _view(self) -> TaskView | None:
        """The task as it stands; None when the store cannot tell just now."""
        try:
            view = find_task(self._hub.store, self.assignment.task)
        except DragomanError:
            return None
        return None if isinstance(view, Refusal) else view

    def _last_word(self, problem: str) -> ReportOutcome:
        """What is recorded of an agent that has ended and said nothing about its work."""
        task, fence = self.assignment.task, self.assignment.fence
        if problem:
            return self._failed(f"{problem}, without a report")
        notes = "the agent ended well, without a report: look at what it has done"
        return ReportOutcome(task, "needs_review", notes, fence=fence, apply=True)

    def _failed(self, why: str) -> ReportOutcome:
        task, fence = self.assignment.task, self.assignment.fence
        return ReportOutcome(
            task, "failed", why, fence=fence, apply=True, backoff=self._terms.backoff
        )

    async def _settle(self, otherwise: AnyCommand | None) -> None:
        """End the session: what was reported takes effect; what happens if nothing was."""
        assignment = self.assignment
        end = EndAttempt(assignment.task, assignment.session, self._terms.backoff)
        try:
            receipt = await self._insist(SYSTEM, end)
            if receipt.status == "in-progress" and otherwise is not None:
                await self._insist(self._actor, otherwise)
        except Refused:
            # The lease was lost meanwhile: another attempt says what becomes of the task.
            return

    async def _insist(self, actor: Actor, command: AnyCommand) -> Receipt:
        """Ask until there is an answer; a store that is away when the hub stops is not waited for.

        What is not settled then is recovered when the lease ends.
        """
        while True:
            try:
                return (await self._hub.do_soon(actor, command)).receipts[0]
            except DragomanError as error:
                is_passing = isinstance(error, StoreError) or error.code == _OVERLOADED
                if not is_passing or self._is_halted:
                    raise
            await asyncio.sleep(_STORE_REST_SECONDS)

    async def _hear(self, said: bytes) -> str:
        """A message of the agent; it is not lost while the store is away and the agent waits."""
        while True:
            try:
                return await self._speak(self._actor, said)
            except StoreError as error:
                if self._is_halted:
                    return f"this message was lost: {error.detail}"
                await asyncio.sleep(_STORE_REST_SECONDS)
            except DragomanError as error:
                return f"this message could not be taken: {error}"

    def _cost(self) -> float:
        """What the last report of this attempt says that it has cost."""
        view = self._view()
        reported = None if view is None else view.task.reported
        if reported is None or reported.attempt != self.assignment.attempt:
            return 0
        entries = history(self._hub.store, task_stream(self.assignment.task))
        said = [read_line(entry.line).said for entry in entries if entry.event == _REPORTED]
        words = said[-1] if said else UNSET
        return cost_of(reported.details, None if words is UNSET else msgspec.json.decode(words))
