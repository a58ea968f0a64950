"""The dispatcher: claims ready tasks for agents that can be started, and supervises each run.

It looks for work after a commit (a hint), when a run has ended, and at regular times. All its
knowledge is in the store, so nothing is lost when it is killed. A task is not dispatched while an
earlier attempt on it is still running here.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.agent import RegisterAgent
from dragoman.core.attempt import ClaimTask
from dragoman.core.errors import DragomanError, Refusal, Refused, StoreUnavailable
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Assignment
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.service_health import HEALTHY, HealthProblem, problem_from_error
from dragoman.services.dispatch.agent_run import AgentRun, RunPolicy, SubmitMessage
from dragoman.services.dispatch.agent_slots import (
    AgentSlots,
    AgentSpec,
    AgentState,
    choose_agent,
    find_next_task,
    first_ready,
)
from dragoman.services.dispatch.budget_enforcer import Budget, BudgetEnforcer, UsageStore
from dragoman.services.dispatch.cooldown import Cooldowns
from dragoman.services.dispatch.orphan_recovery import ForgetSession, OrphanedAttempts, StopOrphans
from dragoman.services.dispatch.wakeups import DispatchWakeups

# --- policy and ports -------------------------------------------------------------------------

_MAX_SKIPPED_PER_QUEUE = 16
"""Tasks of a queue that wait for another agent are skipped up to this number in one round; then an
agent that has failed on all of them gets nothing else from that queue."""


class DispatchPolicy(Struct, frozen=True):
    """Policy of dispatch."""

    hub_name: str
    """Name of the hub among those that share a store; it prefixes the names of its sessions."""
    concurrency: int
    ttl_ms: int
    poll_ms: int
    drain_ms: int
    run_policy: RunPolicy


class DispatcherPorts(Struct, frozen=True):
    """Ports that the dispatcher needs."""

    submit_message: SubmitMessage
    stop_orphans: StopOrphans
    forget_session: ForgetSession
    usage: UsageStore
    new_id: Callable[[], str]
    warn: Callable[[str], None]
    """Shows at the hub's terminal what keeps an agent from working."""
    cancel_starts: Callable[[], None] = lambda: None
    """Cancels long starts, like a checkout, when the hub stops."""
    on_run_end: Callable[[], None] = lambda: None
    """Called when nothing of a run is left: the checks of its work may begin."""


class _PendingClaim(Struct, frozen=True):
    """A claim of a task for an agent, which may or may not have been committed."""

    slots: AgentSlots
    task: str
    session: str


# --- dispatcher -------------------------------------------------------------------------------


class Dispatcher:
    """Claims tasks and supervises runs in one event loop, from `run` until `stop`."""

    def __init__(
        self,
        hub: Hub,
        agents: Sequence[AgentSpec],
        policy: DispatchPolicy,
        ports: DispatcherPorts,
    ) -> None:
        self._hub = hub
        self._slots = {agent.name: AgentSlots(agent) for agent in agents}
        self._policy = policy
        self._ports = ports
        self._budgets = BudgetEnforcer(hub, ports.usage, ports.warn)
        self._cooldowns = Cooldowns(policy.run_policy.backoff)
        self._wakeups = DispatchWakeups(hub.store, policy.poll_ms / 1_000, self._runs)
        self.is_stopping = False
        self._pending_claims = deque[_PendingClaim]()
        """Claims whose run has not started yet, because the store failed in between."""
        self._run_tasks = set[asyncio.Task[None]]()
        self._dispatch_count = 0
        self._problem = HEALTHY
        """Problem of the last round; empty: none."""

    # Interface

    def hint(self, streams: Collection[str]) -> None:
        """Look for work: these streams have new entries. (An `OnCommit`, for any
        thread.)"""
        if self._slots:
            self._wakeups.hint(streams)

    def stop(self) -> None:
        """Take no more work, and end when all runs have ended or were stopped."""
        self.is_stopping = True
        self._wakeups.wake()

    @property
    def problem(self) -> HealthProblem:
        """Problem that keeps all work from being dispatched.

        An agent that cannot be started delays nobody else: see `agent_states`.
        """
        return self._problem

    @property
    def running_count(self) -> int:
        """Number of runs that a stop waits for."""
        return sum(1 for _ in self._runs())

    def agent_states(self) -> list[AgentState]:
        """Status of every agent."""
        return [
            AgentState(
                name,
                tuple(run.assignment.task for run in slots.runs.values()),
                slots.total_usage(self._budgets.usage(name)),
                self._idle_reason(slots) or self._cooldown_reason(slots),
            )
            for name, slots in self._slots.items()
        ]

    async def replace_agents(self, agents: Sequence[AgentSpec]) -> None:
        """Start runs of these agents from now on; those that run go on as they began."""
        specs = {agent.name: agent for agent in agents}
        await self._register({name: agent.dialects for name, agent in specs.items()})
        for name, slots in tuple(self._slots.items()):
            slots.is_removed = name not in specs
            if slots.is_removed and not slots.runs:
                del self._slots[name]
        for name, agent in specs.items():
            slots = self._slots.setdefault(name, AgentSlots(agent))
            slots.agent = agent
            slots.start_retry_at = 0.0
        self._wakeups.wake()

    async def wait_idle(self) -> None:
        """Wait until no agent is at work."""
        while self._run_tasks:
            await asyncio.wait(self._run_tasks)

    async def run(self) -> None:
        """Dispatch until `stop`; cancelling it stops all agents at once."""
        policy = self._policy
        ports = self._ports
        backoff = policy.run_policy.backoff
        orphans = OrphanedAttempts(
            self._hub, policy.hub_name, backoff, ports.stop_orphans, ports.forget_session
        )
        try:
            with self._wakeups.listening():
                while not await self._try_work(lambda: self._start(orphans)):
                    await self._wakeups.wait_briefly()
                if not self._slots:
                    await self._wakeups.wait()
                while not self.is_stopping:
                    self._wakeups.clear()
                    await self._try_work(self._dispatch_ready)
                    await self._wakeups.wait_briefly()
                await self._drain()
        finally:  # a cancellation or a fault leaves no agent behind
            for agent_run in self._runs():
                agent_run.request_kill()
            self._ports.cancel_starts()
            await self.wait_idle()

    async def _try_work(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do a piece of work; whether it was done, or need not be any more. A fault is kept in
        `problem`.
        """
        try:
            await work()
        except (DragomanError, OSError) as error:
            self._problem = problem_from_error(error)
            return self.is_stopping
        self._problem = HEALTHY
        return True

    async def _start(self, orphans: OrphanedAttempts) -> None:
        """Register the agents, and recover what an earlier hub of this name left."""
        await self._register({name: slots.agent.dialects for name, slots in self._slots.items()})
        await self._review_budgets()
        await orphans.recover()

    async def _register(self, dialects: Mapping[str, tuple[str, ...]]) -> None:
        """Register the agents that are not known yet, with their dialects."""
        unregistered = await asyncio.to_thread(
            lambda: [name for name in dialects if find_agent(self._hub.store, name) is None]
        )
        if unregistered:
            registrations = (RegisterAgent(name, speaks=dialects[name]) for name in unregistered)
            await self._hub.submit_async(HUB_ACTOR, *registrations)

    # Dispatch

    async def _dispatch_ready(self) -> None:
        """Claim tasks for free agents, the most urgent first, until nothing fits."""
        await self._review_budgets()
        await self._start_claimed()
        skipped = {cooldown.task for cooldown in self._cooldowns.active(self._wakeups.now)}
        skipped_per_queue = Counter[str]()
        while not self.is_stopping and (free := list(self._free_slots())):
            queues = {queue for slots in free for queue in slots.agent.queues}
            queues -= {
                queue
                for queue, count in skipped_per_queue.items()
                if count >= _MAX_SKIPPED_PER_QUEUE
            }
            excluded = skipped | {attempt.assignment.task for attempt in self._runs()}
            now = self._hub.clock.now()
            first = await asyncio.to_thread(
                first_ready, self._hub.store, now, sorted(queues), excluded
            )
            next_task = find_next_task(free, first)
            if next_task is None:
                break
            agent_slots = await self._choose_agent(next_task.task, next_task.candidates)
            if agent_slots is None:
                skipped_per_queue[next_task.queue] += 1
            if agent_slots is None or not await self._claim_task(agent_slots, next_task.task):
                skipped.add(next_task.task)
        await self._budgets.save()  # after the last: without a budget no need to wait

    async def _choose_agent(self, task: str, candidates: Sequence[AgentSlots]) -> AgentSlots | None:
        available = [
            agent_slots
            for agent_slots in self._slots.values()
            if not self._idle_reason(agent_slots)
        ]
        if len(available) == 1:
            return candidates[0]
        view = await asyncio.to_thread(find_task, self._hub.store, task)
        return None if isinstance(view, Refusal) else choose_agent(view.task, candidates, available)

    async def _review_budgets(self) -> None:
        budgets = {name: slots.agent.budget for name, slots in self._slots.items()}
        starting = [name for name, slots in self._slots.items() if slots.is_starting]
        await self._budgets.review(budgets, starting)

    def _free_slots(self) -> Iterator[AgentSlots]:
        for slots in self._slots.values():
            if self._has_free_slot(slots) and not self._idle_reason(slots):
                yield slots

    def _has_free_slot(self, slots: AgentSlots) -> bool:
        """Check whether one more run may start, for this agent and altogether."""
        running = sum(len(one.runs) for one in self._slots.values())
        is_full = running >= self._policy.concurrency
        return not is_full and len(slots.runs) < slots.agent.concurrency

    def _idle_reason(self, slots: AgentSlots) -> str:
        if slots.is_removed:
            return "it is no longer in the settings"
        if self._wakeups.now < slots.start_retry_at:
            return slots.start_problem
        return self._budgets.idle_reason(slots.agent.name, slots.agent.budget)

    def _cooldown_reason(self, slots: AgentSlots) -> str:
        """Cooldown of the tasks that an idle agent would otherwise work on."""
        if slots.runs:
            return ""
        return self._cooldowns.describe_next(slots.agent.queues, self._wakeups.now)

    async def _claim_task(self, slots: AgentSlots, task: str) -> bool:
        """Claim a task for an agent and start the run; False when another claim came first."""
        agent = slots.agent
        session = f"{self._policy.hub_name}.{self._ports.new_id()}"
        command = ClaimTask(
            task, agent.name, session, self._policy.ttl_ms, agent.queues, checks=agent.checks
        )
        self._pending_claims.append(_PendingClaim(slots, task, session))
        try:
            await self._hub.submit_async(HUB_ACTOR, command)
        except Refused:
            self._pending_claims.pop()
            return False
        await self._start_claimed()
        return True

    async def _start_claimed(self) -> None:
        """Start the runs of claimed tasks; one that cannot start yet is tried in the next round."""
        while self._pending_claims:
            claim = self._pending_claims.popleft()
            try:
                view = await asyncio.to_thread(find_task, self._hub.store, claim.task)
                if isinstance(view, TaskView) and _is_session(view, claim.session):
                    await self._start_run(claim.slots, view)
            except StoreUnavailable:
                self._pending_claims.appendleft(claim)
                raise

    async def _start_run(self, slots: AgentSlots, view: TaskView) -> None:
        task, lease = view.task, view.lease
        assert lease is not None, "what nobody holds is not begun"
        prompt = await asyncio.to_thread(slots.agent.build_prompt, task, slots.agent.name)
        assignment = Assignment(
            agent=slots.agent.name,
            task=task.id,
            aof_id=task.aof_id,
            title=task.title,
            attempt=task.attempts,
            fence=lease.fence,
            session=lease.session,
            ttl_ms=lease.ttl_ms,
            prompt=prompt,
            must_report=slots.agent.must_report,
            resume_commit=task.checkpoint.commit if task.checkpoint else "",
        )
        run = AgentRun(
            self._hub,
            assignment,
            slots.agent.runner,
            self._ports.submit_message,
            self._policy.run_policy,
        )
        slots.runs[assignment.session] = run
        self._dispatch_count += 1
        slots.last_dispatch = self._dispatch_count
        self._budgets.record_start(slots.agent.name)
        run_task = asyncio.create_task(self._supervise(slots, run))
        self._run_tasks.add(run_task)
        run_task.add_done_callback(self._run_tasks.discard)

    async def _supervise(self, slots: AgentSlots, run: AgentRun) -> None:
        agent = slots.agent
        try:
            result = await run.run(agent.attempt_ms, partial(self._save_start, agent.budget))
            loop = asyncio.get_running_loop()
            now = loop.time()
            slots.record_start(result.start_problem, now, self._ports.warn)
            cooldown_until = self._cooldowns.record_end(result.task, now, result.release)
            retry_at = slots.start_retry_at if result.start_problem else cooldown_until
            if retry_at is not None:  # else nothing would wake the dispatcher at that time
                loop.call_at(retry_at, self._wakeups.wake)
            # Recorded without a pause in between: the usage must not count as running as well.
            del slots.runs[run.assignment.session]
            if result.start_problem:
                self._budgets.undo_start(agent.name)
            else:
                self._budgets.record_end(
                    agent.name,
                    ms=result.elapsed_ms,
                    output=result.output_bytes,
                    cost=result.cost,
                )
            slots.recent_failures = slots.recent_failures + 1 if result.has_failed else 0
            await self._budgets.save()
        except (DragomanError, OSError) as error:
            whose = f"{agent.name} on {run.assignment.task}"
            problem = problem_from_error(error)
            self._problem = replace(problem, message=f"{whose}: {problem.message}")
        finally:
            slots.runs.pop(run.assignment.session, None)
            if slots.is_removed and not slots.runs:
                self._slots.pop(agent.name, None)
            self._wakeups.wake()
            self._ports.on_run_end()

    async def _save_start(self, budget: Budget) -> None:
        """Save the usage before an agent with a budget starts; one without need not wait."""
        if budget != Budget():
            await self._budgets.save()

    # Shutdown

    def _runs(self) -> Iterator[AgentRun]:
        for slots in self._slots.values():
            yield from slots.runs.values()

    async def _drain(self) -> None:
        """Let agents finish within the grace time, then stop them."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._policy.drain_ms / 1_000
        while self.running_count and (remaining := deadline - loop.time()) > 0:
            await asyncio.wait(
                self._run_tasks, timeout=remaining, return_when=asyncio.FIRST_COMPLETED
            )
        for run in self._runs():
            run.request_stop()
        self._ports.cancel_starts()
        await self.wait_idle()


def _is_session(view: TaskView, session: str) -> bool:
    return view.lease is not None and view.lease.session == session
