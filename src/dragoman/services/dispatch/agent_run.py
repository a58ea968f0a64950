"""Runs one attempt: starts the agent, renews its lease, submits its messages, stops and settles.

The run holds its task until nothing of its program is left, so that no successor begins before
that. A program that has ended its attempt itself, by a report that took effect, may go on for a
while, if only to read the answer to it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from enum import Enum, auto
from math import inf

from msgspec import Struct

from dragoman.core.actor import HUB_ACTOR, Actor
from dragoman.core.attempt import (
    EndAttempt,
    LimitAttempt,
    ReleaseTask,
    RenewLease,
    ReportOutcome,
)
from dragoman.core.attempt_state import TaskClaimed, TaskRequeued
from dragoman.core.authority import holder_objection
from dragoman.core.backoff import Backoff
from dragoman.core.base import Command
from dragoman.core.errors import DragomanError, Refusal, Refused, StoreError
from dragoman.core.event_table import EVENT_NAMES, STATUS_CHANGE_NAMES
from dragoman.core.ids import agent_stream, task_stream
from dragoman.core.limits import MAX_REASON
from dragoman.core.read import Receipt
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Assignment, Run, RunExit, Runner, Store
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.entries import decode_event, stream_entries
from dragoman.engine.queries.tasks import find_task
from dragoman.ledger.entry import Entry, read_line
from dragoman.services.dispatch.budget_enforcer import attempt_cost
from dragoman.services.dispatch.cooldown import ReleaseEvent
from dragoman.text.error_messages import describe_exception

_CLAIMED = EVENT_NAMES[TaskClaimed]

_REQUEUED = EVENT_NAMES[TaskRequeued]

_ENDING_EVENTS = STATUS_CHANGE_NAMES - {_CLAIMED}
"""Events that end an attempt."""


class AttemptStatus(Enum):
    """Status of an attempt."""

    HELD = auto()
    REPORTED = auto()
    """Held, and its agent has reported; the report has not taken effect."""
    RELEASED = auto()
    """Ended by its own agent."""
    LOST = auto()
    """Ended by somebody else, or superseded by another attempt."""


class AttemptRecord:
    """Ledger entries of one attempt."""

    def __init__(self, store: Store, assignment: Assignment, actor: Actor) -> None:
        """`actor` is its agent, as it acts in this attempt."""
        self._store = store
        self._assignment = assignment
        self._actor = actor

    def status(self, *, was_held: bool) -> AttemptStatus:
        """Current status; as before while the store cannot be read."""
        fence = self._assignment.fence
        try:
            view = find_task(self._store, self._assignment.task)
            if isinstance(view, Refusal):
                return AttemptStatus.HELD
            if view.lease is not None and view.lease.fence == fence:
                return AttemptStatus.HELD if view.task.reported is None else AttemptStatus.REPORTED
            if view.task.fence == fence and self._ended_by_agent(self._transitions()):
                return AttemptStatus.RELEASED
        except DragomanError:
            return AttemptStatus.HELD if was_held else AttemptStatus.RELEASED
        return AttemptStatus.LOST

    def check_may_hold(self) -> str:
        """Reason why its agent may hold no task any more; empty: it may."""
        try:
            return holder_objection(find_agent(self._store, self._assignment.agent))
        except DragomanError:
            return ""

    def find_release(self) -> ReleaseEvent | None:
        """The release by its own agent, if its last transition made the task ready again. A failure
        has a backoff anyway, and a forced stop with a checkpoint is followed at once.
        """
        try:
            view = find_task(self._store, self._assignment.task)
            if isinstance(view, Refusal) or view.task.fence != self._assignment.fence:
                return None
            task, transitions = view.task, self._transitions()
        except DragomanError:
            return None
        checkpoint = task.checkpoint
        was_forced = (
            checkpoint is not None and checkpoint.is_forced and checkpoint.at == task.moved_at
        )
        is_ready = task.status == "ready" and not task.not_before and not was_forced
        if is_ready and len(transitions) == 1 and self._ended_by_agent(transitions):
            return ReleaseEvent(self._assignment.agent, task.reserved_for)
        return None

    def has_failed(self) -> bool:
        """Check whether its task was requeued for a retry."""
        try:
            return any(entry.event == _REQUEUED for entry in self._transitions()[:1])
        except DragomanError:
            return False

    def cost(self) -> float:
        """Cost that its agent reported; `StoreError` when the store cannot be read."""
        return attempt_cost(self._store, self._assignment.task, self._assignment.attempt)

    def _transitions(self) -> list[Entry]:
        """Transitions of the task from its claim until the next one."""
        transitions, is_ours = list[Entry](), False
        for entry in stream_entries(self._store, task_stream(self._assignment.task)):
            if entry.event == _CLAIMED:
                claimed = decode_event(entry)
                is_ours = isinstance(claimed, TaskClaimed) and (
                    claimed.fence == self._assignment.fence
                )
            elif is_ours and entry.event in _ENDING_EVENTS:
                transitions.append(entry)
        return transitions

    def _ended_by_agent(self, transitions: Sequence[Entry]) -> bool:
        """Check whether the attempt was ended by its own agent."""
        return bool(transitions) and read_line(transitions[0].line).actor == self._actor.label


VIA = "agent-output"
"""The surface that messages of started agents come through."""

SubmitMessage = Callable[[Actor, bytes], Awaitable[str]]
"""Submits a message of an agent; returns a note for its log, or nothing."""

_HEARTBEATS_PER_LEASE = 3
_STORE_RETRY_SECONDS = 1.0
_OVERLOADED = "overloaded"


class RunPolicy(Struct, frozen=True):
    """Policy that holds for all runs."""

    backoff: Backoff
    stop_seconds: float
    exit_grace_seconds: float = 60.0
    """Time that a program may go on after its own report ended the attempt."""
    pauses_limited: bool = True
    """Pause an agent that has met a usage limit, instead of counting a failure."""


_ENDED = frozenset((AttemptStatus.RELEASED, AttemptStatus.LOST))


class _StopOrder(Struct, frozen=True):
    """An order to stop the agent."""

    reason: str
    fallback: Command | None = None
    """Command for the task if the agent has not reported; None: others decide."""


class RunResult(Struct, frozen=True):
    """Outcome of a run: what it used, and how it ended."""

    task: str
    elapsed_ms: int = 0
    output_bytes: int = 0
    cost: float = 0
    start_problem: str = ""
    """Reason why the agent could not even be started; empty: it was."""
    release: ReleaseEvent | None = None
    has_failed: bool = False


class AgentRun:
    """Supervises an attempt that was claimed for an agent that is to be started."""

    def __init__(
        self,
        hub: Hub,
        assignment: Assignment,
        runner: Runner,
        submit_message: SubmitMessage,
        policy: RunPolicy,
    ) -> None:
        self.assignment = assignment
        self.streams = frozenset((task_stream(assignment.task), agent_stream(assignment.agent)))
        """Streams whose entries may be about this attempt."""
        self._hub = hub
        self._runner = runner
        self._submit_message = submit_message
        self._policy = policy
        # Bound to the fencing token: a late message, of this process or another, is refused.
        self._actor = Actor("agent", assignment.agent, VIA, assignment.task, assignment.fence)
        self._record = AttemptRecord(hub.store, assignment, self._actor)
        self._changed = asyncio.Event()
        self._changed.set()  # entries written since the claim were reported to nobody
        self._is_halted = False
        self._is_held = True
        self._kill_requested = asyncio.Event()
        self._started_at = asyncio.get_running_loop().time()
        self._running: Run | None = None
        self._seen_output_bytes = 0
        self._last_note = ""
        """Note on the last of its messages that was refused or had warnings."""

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the start."""
        return round((asyncio.get_running_loop().time() - self._started_at) * 1_000)

    @property
    def output_bytes(self) -> int:
        return 0 if self._running is None else self._running.output_bytes

    @property
    def has_started(self) -> bool:
        """True once its agent was started."""
        return self._running is not None

    def notify(self) -> None:
        """Wake up: the task or the agent has changed."""
        self._changed.set()

    def request_stop(self) -> None:
        """Stop waiting: the hub stops."""
        self._is_halted = True
        self._changed.set()

    def request_kill(self) -> None:
        """Stop at once: the agent gets no time to clean up."""
        self._kill_requested.set()
        self.request_stop()

    async def run(self, limit_ms: int, before_start: Callable[[], Awaitable[None]]) -> RunResult:
        """Run the attempt from start to settlement, in at most `limit_ms` milliseconds (0: no
        limit).

        `before_start` is awaited before the agent starts; if it fails (OSError), no agent is
        started.
        """
        task = self.assignment.task
        try:
            await before_start()
            running = self._running = await self._runner.start(
                self.assignment, self._handle_message
            )
        except OSError as error:
            if self._is_halted:  # the start was cancelled: the agent is not to blame
                await self._settle(self._hub_stop_command())
                return RunResult(task, self.elapsed_ms)
            problem = describe_exception(error)
            reason = f"not started: {problem}"[:MAX_REASON]
            await self._settle(
                ReleaseTask(task, reason, self.assignment.fence, failed_to_start=True)
            )
            return RunResult(task, start_problem=problem, has_failed=True)
        ended = asyncio.ensure_future(running.wait())
        try:
            # A claim alone says nothing of an agent; the first heartbeat shows that there is one.
            await self._heartbeat()
            order = await self._watch(ended, running, self._started_at + (limit_ms / 1_000 or inf))
            if order is None or ended.done():
                fallback = self._unreported_outcome(await ended)
            else:
                fallback = order.fallback
                await self._stop_agent(running, order.reason)
                await ended
            await self._settle(fallback)
        finally:
            if not ended.done():
                await running.stop(0)
                await ended
            await asyncio.to_thread(running.forget)
        cost = await asyncio.to_thread(self._record.cost)
        release = await asyncio.to_thread(self._record.find_release)
        has_failed = await asyncio.to_thread(self._record.has_failed)
        return RunResult(
            task,
            self.elapsed_ms,
            running.output_bytes,
            cost,
            release=release,
            has_failed=has_failed,
        )

    async def _stop_agent(self, running: Run, reason: str) -> None:
        """Stop the agent; until nothing of it is left, it keeps the lease if it still has it."""
        stopping = asyncio.ensure_future(running.stop(self._policy.stop_seconds, reason))
        killed = asyncio.ensure_future(self._kill_requested.wait())
        while not stopping.done() and not killed.done():
            await asyncio.wait(
                (stopping, killed),
                timeout=self._heartbeat_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not stopping.done() and self._is_held and running.renews_lease:
                self._is_held = await self._heartbeat()
        killed.cancel()
        if not stopping.done():
            await running.stop(0)
        await stopping

    @property
    def _heartbeat_seconds(self) -> float:
        return self.assignment.ttl_ms / 1_000 / _HEARTBEATS_PER_LEASE

    async def _watch(
        self, ended: "asyncio.Future[RunExit]", running: Run, deadline: float
    ) -> _StopOrder | None:
        """Watch the run until the agent has to be stopped; None: it has ended."""
        clock = asyncio.get_running_loop().time
        next_heartbeat = clock() + self._heartbeat_seconds
        while not self._is_halted:
            await self._wait_change(ended, min(next_heartbeat, deadline) - clock())
            if ended.done():
                return None
            if clock() >= deadline:
                if not self._is_held:
                    return _StopOrder("the grace period after its report is over (exit_grace_ms)")
                reason = "it took longer than an attempt may (attempt_ms or attempts.max_ms)"
                return _StopOrder(reason, self._failure_report(reason))
            is_refused = False
            if clock() >= next_heartbeat:
                next_heartbeat = clock() + self._heartbeat_seconds
                is_refused = self._is_held and running.renews_lease and not await self._heartbeat()
            status = await asyncio.to_thread(self._record.status, was_held=self._is_held)
            hold_problem = await asyncio.to_thread(self._record.check_may_hold)
            if status is AttemptStatus.HELD and hold_problem:
                self._is_held = False
                task, fence = self.assignment.task, self.assignment.fence
                return _StopOrder(hold_problem, ReleaseTask(task, hold_problem, fence))
            if status is AttemptStatus.RELEASED and running.renews_lease:
                if self._is_held:
                    deadline = min(deadline, clock() + self._policy.exit_grace_seconds)
                self._is_held = False
            elif status in _ENDED or is_refused or self._ends_with_report(status, running):
                self._is_held = status is AttemptStatus.REPORTED and not is_refused
                return _StopOrder("it no longer holds the task")
        return _StopOrder("the hub stops", self._hub_stop_command())

    def _hub_stop_command(self) -> ReleaseTask:
        return ReleaseTask(self.assignment.task, "hub_stopped", self.assignment.fence)

    def _ends_with_report(self, status: AttemptStatus, running: Run) -> bool:
        """Check whether the run ends with the report: nobody sees what a remote agent does after
        that.
        """
        return status is AttemptStatus.REPORTED and not running.renews_lease

    async def _wait_change(self, ended: "asyncio.Future[RunExit]", seconds: float) -> None:
        """Wait until something has changed, or the time is over."""
        changed = asyncio.ensure_future(self._changed.wait())
        await asyncio.wait(
            (ended, changed), timeout=max(seconds, 0), return_when=asyncio.FIRST_COMPLETED
        )
        changed.cancel()
        if not self._is_halted:
            self._changed.clear()

    async def _heartbeat(self) -> bool:
        """Send a heartbeat; False when the lease is lost."""
        try:
            await self._hub.submit_async(
                self._actor,
                RenewLease(self.assignment.task, self.assignment.fence, self._has_new_output()),
            )
        except Refused as refused:
            return refused.code == _OVERLOADED
        except StoreError:  # the lease may outlast the fault; the next heartbeat shows
            return True
        return True

    def _has_new_output(self) -> bool:
        """True if the agent has written output since the last heartbeat: more of it than becomes
        events of the trace is progress all the same."""
        seen, self._seen_output_bytes = self._seen_output_bytes, self.output_bytes
        return self.output_bytes > seen

    def _unreported_outcome(self, ended: RunExit) -> Command:
        """Outcome to record for an agent that ended without a report."""
        task, fence, problem = self.assignment.task, self.assignment.fence, ended.problem
        if ended.limited_until is not None and self._policy.pauses_limited:
            return LimitAttempt(task, ended.limited_until, problem, fence)
        if self.assignment.must_report:
            # The reason why its output is no result explains more than that there was none.
            reason = problem or self._last_note
            return self._failure_report(f"it ended without a result{reason and f': {reason}'}")
        if problem:
            return self._failure_report(f"{problem}, without a report")
        notes = "the agent exited with code 0, without a report: check its work"
        return ReportOutcome(task, "needs_review", notes, fence=fence, apply=True)

    def _failure_report(self, reason: str) -> ReportOutcome:
        task, fence = self.assignment.task, self.assignment.fence
        return ReportOutcome(
            task, "failed", reason, fence=fence, apply=True, backoff=self._policy.backoff
        )

    async def _settle(self, fallback: Command | None) -> None:
        """End the session: its report takes effect, otherwise `fallback` does."""
        assignment = self.assignment
        end = EndAttempt(assignment.task, assignment.session, self._policy.backoff)
        try:
            receipt = await self._submit_with_retry(end)
            if receipt.status == "in-progress" and fallback is not None:
                # The hub decides about the task of an agent that reports nothing; the agent does
                # not.
                await self._submit_with_retry(fallback)
        except Refused:
            pass  # the lease was lost meanwhile: another attempt decides about the task

    async def _submit_with_retry(self, command: Command) -> Receipt:
        """Submit a command until there is an answer; a store that is away when the hub stops is not
        awaited.

        What is not settled then is recovered when the lease ends.
        """
        while True:
            try:
                return (await self._hub.submit_async(HUB_ACTOR, command)).receipts[0]
            except DragomanError as error:
                is_transient = isinstance(error, StoreError) or error.code == _OVERLOADED
                if not is_transient or self._is_halted:
                    raise
            await asyncio.sleep(_STORE_RETRY_SECONDS)

    async def _handle_message(self, message: bytes) -> str:
        """Submit a message of the agent, which waits while the store is unavailable."""
        while True:
            try:
                note = await self._submit_message(self._actor, message)
            except StoreError as error:
                if not self._is_halted:
                    await asyncio.sleep(_STORE_RETRY_SECONDS)
                    continue
                note = f"this message was lost: {error.detail}"
            except DragomanError as error:
                note = f"this message was not processed: {error}"
            self._last_note = note or self._last_note
            return note
