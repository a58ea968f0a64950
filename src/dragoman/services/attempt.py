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
"""The surface that messages of started agents come through."""

OnStop = Literal["release", "keep"]
Speak = Callable[[Actor, bytes], Awaitable[str]]
"""Submits a message of an agent; returns a note for its log, or nothing."""

_BEATS_PER_LEASE = 3
_STORE_REST_SECONDS = 1.0
_OVERLOADED = "overloaded"


class Terms(Struct, frozen=True):
    """Policy that holds for all runs."""

    backoff: Backoff
    stop_seconds: float
    on_stop: OnStop
    leave_seconds: float = 60.0
    """Time that a program may go on after its own report ended the attempt."""
    keep_ms: int = 3_600_000
    """Time that a kept attempt waits for the next start of the hub."""


_OVER = frozenset((Standing.LEFT, Standing.LOST))


class _Stop(Struct, frozen=True):
    """An order to stop the agent."""

    why: str
    otherwise: AnyCommand | None = None
    """Command for the task if the agent has not reported; None: others decide."""


class Spent(Struct, frozen=True):
    """Outcome of a run: what it used, and how it ended."""

    task: str
    ms: int = 0
    output: int = 0
    cost: float = 0
    not_started: str = ""
    """Reason why the agent could not even be started; empty: it was."""
    given_back: GivenBack | None = None
    has_failed: bool = False
    is_kept: bool = False
    """True if it goes on under the next start of the hub."""


class Attempt:
    """Supervises an attempt that was claimed for an agent that is to be started."""

    def __init__(
        self, hub: Hub, assignment: Assignment, runner: Runner, speak: Speak, terms: Terms
    ) -> None:
        self.assignment = assignment
        self.streams = frozenset((task_stream(assignment.task), agent_stream(assignment.agent)))
        """Streams whose entries may be about this attempt."""
        self._hub = hub
        self._runner = runner
        self._speak = speak
        self._terms = terms
        # Bound to the fencing token: a late message, of this process or another, is refused.
        self._actor = Actor("agent", assignment.agent, VIA, assignment.task, assignment.fence)
        self._record = Record(hub.store, assignment, self._actor)
        self._news = asyncio.Event()
        self._news.set()  # entries written since the claim were reported to nobody
        self._is_halted = False
        self._is_held = True
        self._hurry = asyncio.Event()
        self._begun = asyncio.get_running_loop().time()
        self._running: Running | None = None
        self._noted = ""
        """Note on the last of its messages that was refused or had warnings."""

    @property
    def begun(self) -> Begun:
        """Identifies the attempt among all attempts."""
        return Begun(self.assignment.task, self.assignment.attempt)

    @property
    def ms(self) -> int:
        """Milliseconds since the start."""
        return round((asyncio.get_running_loop().time() - self._begun) * 1_000)

    @property
    def said(self) -> int:
        """Bytes of output so far."""
        return 0 if self._running is None else self._running.said

    @property
    def outlasts_hub(self) -> bool:
        """True if the agent lives elsewhere, and goes on while the hub is away."""
        running = self._running
        return self._terms.on_stop == "keep" and running is not None and not running.is_beating

    def look(self) -> None:
        """Wake up: the task or the agent has changed."""
        self._news.set()

    def halt(self) -> None:
        """Stop waiting: the hub stops."""
        self._is_halted = True
        self._news.set()

    def hurry(self) -> None:
        """Stop at once: the agent gets no time to clean up."""
        self._hurry.set()
        self.halt()

    async def live(self, limit_ms: int, before: Callable[[], Awaitable[None]]) -> Spent:
        """Run the attempt from start to settlement, in at most `limit_ms` milliseconds (0: no
        limit).

        `before_start` is awaited before the agent starts; if it fails (OSError), no agent is
        started.
        """
        task = self.assignment.task
        try:
            await before()
            running = self._running = await self._runner.start(self.assignment, self._hear)
        except OSError as error:
            if self._is_halted:  # the start was cancelled: the agent is not to blame
                return Spent(task, self.ms, is_kept=await self._settle(self._at_stop()))
            problem = in_words(error)
            why = f"not started: {problem}"[:REASON]
            await self._settle(ReleaseTask(task, why, self.assignment.fence, unstarted=True))
            return Spent(task, not_started=problem, has_failed=True)
        ended = asyncio.ensure_future(running.wait())
        try:
            # A claim alone says nothing of an agent; the first heartbeat shows that there is one.
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
        """Stop the agent; until nothing of it is left, it keeps the lease if it still has it."""
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
        """Watch the run until the agent has to be stopped; None: it has ended."""
        clock = asyncio.get_running_loop().time
        next_beat = clock() + self._beat_seconds
        while not self._is_halted:
            await self._next(ended, min(next_beat, deadline) - clock())
            if ended.done():
                return None
            if clock() >= deadline:
                if not self._is_held:
                    return _Stop("the grace period after its report is over (leave_ms)")
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
                return _Stop("it no longer holds the task")
        return _Stop("the hub stops", self._at_stop())

    def _at_stop(self) -> KeepLease | ReleaseTask:
        """Command for the task when the hub stops."""
        task, fence = self.assignment.task, self.assignment.fence
        if self._terms.on_stop == "keep":
            return KeepLease(task, fence, self._terms.keep_ms)
        return ReleaseTask(task, "hub_stopped", fence)

    def _ends_by_word(self, standing: Standing, running: Running) -> bool:
        """Check whether the run ends with the report: nobody sees what a remote agent does after
        that.
        """
        return standing is Standing.REPORTED and not running.is_beating

    async def _next(self, ended: "asyncio.Future[Ended]", seconds: float) -> None:
        """Wait until something has changed, or the time is over."""
        news = asyncio.ensure_future(self._news.wait())
        await asyncio.wait(
            (ended, news), timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED
        )
        news.cancel()
        if not self._is_halted:
            self._news.clear()

    async def _beat(self) -> bool:
        """Send a heartbeat; False when the lease is lost."""
        try:
            await self._hub.do_soon(
                self._actor, RenewLease(self.assignment.task, self.assignment.fence)
            )
        except Refused as refused:
            return refused.code == _OVERLOADED
        except StoreError:  # the lease may outlast the fault; the next heartbeat shows
            return True
        return True

    def _last_word(self, problem: str) -> ReportOutcome:
        """Outcome to record for an agent that ended without a report."""
        task, fence = self.assignment.task, self.assignment.fence
        if self.assignment.must_report:
            # The reason why its output is no result explains more than that there was none.
            why = problem or self._noted
            return self._failed(f"it ended without a result{why and f': {why}'}")
        if problem:
            return self._failed(f"{problem}, without a report")
        notes = "the agent exited with code 0, without a report: check its work"
        return ReportOutcome(task, "needs_review", notes, fence=fence, apply=True)

    def _failed(self, why: str) -> ReportOutcome:
        task, fence = self.assignment.task, self.assignment.fence
        return ReportOutcome(
            task, "failed", why, fence=fence, apply=True, backoff=self._terms.backoff
        )

    async def _settle(self, otherwise: AnyCommand | None) -> bool:
        """End the session: its report takes effect, otherwise `fallback` does; whether the task is
        kept for the next start.
        """
        assignment = self.assignment
        end = EndAttempt(assignment.task, assignment.session, self._terms.backoff)
        try:
            receipt = await self._insist(end)
            if receipt.status == "in-progress" and otherwise is not None:
                # The hub decides about the task of an agent that reports nothing; the agent does
                # not.
                await self._insist(otherwise)
                return isinstance(otherwise, KeepLease)
        except Refused:
            pass  # the lease was lost meanwhile: another attempt decides about the task
        return False

    async def _insist(self, command: AnyCommand) -> Receipt:
        """Submit a command until there is an answer; a store that is away when the hub stops is not
        awaited.

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
        """Submit a message of the agent, which waits while the store is unavailable."""
        while True:
            try:
                noted = await self._speak(self._actor, said)
            except StoreError as error:
                if not self._is_halted:
                    await asyncio.sleep(_STORE_REST_SECONDS)
                    continue
                noted = f"this message was lost: {error.detail}"
            except DragomanError as error:
                noted = f"this message was not processed: {error}"
            self._noted = noted or self._noted
            return noted
