"""One attempt under watch: started, kept alive, heard, stopped when it must be, and settled.

It holds its task until nothing of its program is left, so that nobody begins before that; and a
program that has ended its attempt itself, by a report that took effect, may go on for a while:
there is more to do after the last word, if only to read the answer to it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from typing import Literal

from msgspec import Struct

from dragoman.core.actors import SYSTEM, Actor
from dragoman.core.commands import (
    AnyCommand,
    EndAttempt,
    KeepLease,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.deadlines import Backoff
from dragoman.core.errors import DragomanError, Refused, StoreError
from dragoman.core.ids import agent_stream, task_stream
from dragoman.core.limits import REASON
from dragoman.core.reading import Receipt
from dragoman.engine.hub import Hub
from dragoman.engine.runner import Assignment, Ended, Runner, Running
from dragoman.services.budgets import Begun
from dragoman.services.rests import GivenBack
from dragoman.services.standing import Record, Standing
from dragoman.text.fault_words import in_words

VIA = "runner"
"""The door through which started agents speak."""

OnStop = Literal["release", "keep"]
Speak = Callable[[Actor, bytes], Awaitable[str]]
"""Brings what an agent said to the hub; what is to be noted beside it, if anything."""

_BEATS_PER_LEASE = 3
_STORE_REST_SECONDS = 1.0
_OVERLOADED = "overloaded"


class Terms(Struct, frozen=True):
    """What holds for all attempts."""

    backoff: Backoff
    stop_seconds: float
    on_stop: OnStop
    leave_seconds: float = 60.0
    """How long a program may go on that has ended its attempt itself."""
    keep_ms: int = 3_600_000
    """How long an attempt that is kept waits for the next start."""


_OVER = frozenset((Standing.LEFT, Standing.LOST))


class _Stop(Struct, frozen=True):
    """That an agent has to end."""

    why: str
    otherwise: AnyCommand | None = None
    """What becomes of its task if it has not reported; None: that is for others to say."""


class Spent(Struct, frozen=True):
    """What an attempt has used."""

    task: str
    ms: int = 0
    output: int = 0
    cost: float = 0
    not_started: str = ""
    """Why its agent could not even be started."""
    given_back: GivenBack | None = None
    has_failed: bool = False
    is_kept: bool = False
    """Whether it goes on under the next start of the hub."""


class Attempt:
    """An attempt that was claimed for an agent which is to be started."""

    def __init__(
        self, hub: Hub, assignment: Assignment, runner: Runner, speak: Speak, terms: Terms
    ) -> None:
        self.assignment = assignment
        self.streams = frozenset((task_stream(assignment.task), agent_stream(assignment.agent)))
        """What is written there may be about it."""
        self._hub = hub
        self._runner = runner
        self._speak = speak
        self._terms = terms
        # Bound to its fencing token: whatever comes late, of this process or another, is refused.
        self._actor = Actor("agent", assignment.agent, VIA, assignment.task, assignment.fence)
        self._record = Record(hub.store, assignment, self._actor)
        self._news = asyncio.Event()
        self._news.set()  # what has happened since it was claimed was told to nobody
        self._is_halted = False
        self._is_held = True
        self._hurry = asyncio.Event()
        self._begun = asyncio.get_running_loop().time()
        self._running: Running | None = None
        self._noted = ""
        """What there was to note beside the last of its messages that was not simply taken."""

    @property
    def begun(self) -> Begun:
        """Which of all attempts it is."""
        return Begun(self.assignment.task, self.assignment.attempt)

    @property
    def ms(self) -> int:
        """How long it has taken so far."""
        return round((asyncio.get_running_loop().time() - self._begun) * 1_000)

    @property
    def said(self) -> int:
        """How much its agent has printed so far."""
        return 0 if self._running is None else self._running.said

    @property
    def outlasts_hub(self) -> bool:
        """Whether its agent lives elsewhere, and goes on while the hub is away."""
        running = self._running
        return self._terms.on_stop == "keep" and running is not None and not running.is_beating

    def look(self) -> None:
        """Something has happened to its task or its agent."""
        self._news.set()

    def halt(self) -> None:
        """The hub stops: do not wait any longer."""
        self._is_halted = True
        self._news.set()

    def hurry(self) -> None:
        """The hub stops at once: whoever has to end may not clean up."""
        self._hurry.set()
        self.halt()

    async def live(self, limit_ms: int, before: Callable[[], Awaitable[None]]) -> Spent:
        """The whole of it, in at most so many milliseconds (0: any).

        `before` is to be done before its agent begins; when it cannot be (OSError), nobody does.
        """
        task = self.assignment.task
        try:
            await before()
            running = self._running = await self._runner.start(self.assignment, self._hear)
        except OSError as error:
            if self._is_halted:  # it was broken off: its agent is not to blame
                return Spent(task, self.ms, is_kept=await self._settle(self._at_stop()))
            problem = in_words(error)
            why = f"not started: {problem}"[:REASON]
            await self._settle(ReleaseTask(task, why, self.assignment.fence, unstarted=True))
            return Spent(task, not_started=problem, has_failed=True)
        ended = asyncio.ensure_future(running.wait())
        try:
            # A claim alone says nothing of an agent: from here on there is one.
            await self._beat()
            stop = await self._watched(ended, running, self._begun + (limit_ms / 1_000 or inf))
            if stop is None or ended.done():
                otherwise = self._last_word((await ended).problem)
            else:
                otherwise = stop.otherwise
                if not self._stays:
                    await self._stop(running, stop.why)
                    await ended
            is_kept = await self._settle(otherwise)
        finally:
            if not ended.done() and not self._stays:
                await running.stop(0)
                await ended
            ended.cancel()
            await asyncio.to_thread(running.forget)
        cost = await asyncio.to_thread(self._record.cost)
        given_back = await asyncio.to_thread(self._record.given_back)
        has_failed = await asyncio.to_thread(self._record.has_failed)
        return Spent(
            task,
            self.ms,
            running.said,
            cost,
            given_back=given_back,
            has_failed=has_failed,
            is_kept=is_kept,
        )

    async def _stop(self, running: Running, why: str) -> None:
        """End it; until nothing of it is left the task stays its own, if it still is."""
        stopping = asyncio.ensure_future(running.stop(self._terms.stop_seconds, why))
        hurried = asyncio.ensure_future(self._hurry.wait())
        while not stopping.done() and not hurried.done():
            await asyncio.wait(
                (stopping, hurried),
                timeout=self._beat_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not stopping.done() and self._is_held and running.is_beating:
                self._is_held = await self._beat()
        hurried.cancel()
        if not stopping.done():
            await running.stop(0)
        await stopping

    @property
    def _stays(self) -> bool:
        return self._is_halted and self.outlasts_hub

    @property
    def _beat_seconds(self) -> float:
        return self.assignment.ttl_ms / 1_000 / _BEATS_PER_LEASE

    async def _watched(
        self, ended: "asyncio.Future[Ended]", running: Running, deadline: float
    ) -> _Stop | None:
        """Until it has to be stopped; None: it has ended."""
        clock = asyncio.get_running_loop().time
        next_beat = clock() + self._beat_seconds
        while not self._is_halted:
            await self._next(ended, min(next_beat, deadline) - clock())
            if ended.done():
                return None
            if clock() >= deadline:
                if not self._is_held:
                    return _Stop("it has ended its attempt, and may go on no longer (leave_ms)")
                too_long = "it took longer than an attempt may (attempt_ms)"
                return _Stop(too_long, self._failed(too_long))
            is_refused = False
            if clock() >= next_beat:
                next_beat = clock() + self._beat_seconds
                is_refused = self._is_held and running.is_beating and not await self._beat()
            standing = await asyncio.to_thread(self._record.standing, was_held=self._is_held)
            why_not = await asyncio.to_thread(self._record.why_no_holder)
            if standing is Standing.HELD and why_not:
                self._is_held = False
                task, fence = self.assignment.task, self.assignment.fence
                return _Stop(why_not, ReleaseTask(task, why_not, fence))
            if standing is Standing.LEFT and running.is_beating:
                if self._is_held:
                    deadline = min(deadline, clock() + self._terms.leave_seconds)
                self._is_held = False
            elif standing in _OVER or is_refused or self._ends_by_word(standing, running):
                self._is_held = standing is Standing.REPORTED and not is_refused
                return _Stop("the task is not its own any more")
        return _Stop("the hub stops", self._at_stop())

    def _at_stop(self) -> KeepLease | ReleaseTask:
        """What becomes of its task when the hub stops."""
        task, fence = self.assignment.task, self.assignment.fence
        if self._terms.on_stop == "keep":
            return KeepLease(task, fence, self._terms.keep_ms)
        return ReleaseTask(task, "hub_stopped", fence)

    def _ends_by_word(self, standing: Standing, running: Running) -> bool:
        """One elsewhere ends with its report: nobody sees what it does after that."""
        return standing is Standing.REPORTED and not running.is_beating

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

    def _last_word(self, problem: str) -> ReportOutcome:
        """What is recorded of an agent that has ended and said nothing about its work."""
        task, fence = self.assignment.task, self.assignment.fence
        if self.assignment.must_report:
            # Why what it gave is no result tells more than that it gave none.
            why = problem or self._noted
            return self._failed(f"it ended without a result{why and f': {why}'}")
        if problem:
            return self._failed(f"{problem}, without a report")
        notes = "the agent ended well, without a report: look at what it has done"
        return ReportOutcome(task, "needs_review", notes, fence=fence, apply=True)

    def _failed(self, why: str) -> ReportOutcome:
        task, fence = self.assignment.task, self.assignment.fence
        return ReportOutcome(
            task, "failed", why, fence=fence, apply=True, backoff=self._terms.backoff
        )

    async def _settle(self, otherwise: AnyCommand | None) -> bool:
        """End the session: what was reported takes effect, and otherwise this; whether the task is
        kept for the next start.
        """
        assignment = self.assignment
        end = EndAttempt(assignment.task, assignment.session, self._terms.backoff)
        try:
            receipt = await self._insist(end)
            if receipt.status == "in-progress" and otherwise is not None:
                # What becomes of an agent that says nothing is the hub's word, not the agent's.
                await self._insist(otherwise)
                return isinstance(otherwise, KeepLease)
        except Refused:
            pass  # the lease was lost meanwhile: another attempt says what becomes of the task
        return False

    async def _insist(self, command: AnyCommand) -> Receipt:
        """Ask until there is an answer; a store that is away when the hub stops is not waited for.

        What is not settled then is recovered when the lease ends.
        """
        while True:
            try:
                return (await self._hub.do_soon(SYSTEM, command)).receipts[0]
            except DragomanError as error:
                is_passing = isinstance(error, StoreError) or error.code == _OVERLOADED
                if not is_passing or self._is_halted:
                    raise
            await asyncio.sleep(_STORE_REST_SECONDS)

    async def _hear(self, said: bytes) -> str:
        """A message of the agent; it is not lost while the store is away and the agent waits."""
        while True:
            try:
                noted = await self._speak(self._actor, said)
            except StoreError as error:
                if not self._is_halted:
                    await asyncio.sleep(_STORE_REST_SECONDS)
                    continue
                noted = f"this message was lost: {error.detail}"
            except DragomanError as error:
                noted = f"this message could not be taken: {error}"
            self._noted = noted or self._noted
            return noted
