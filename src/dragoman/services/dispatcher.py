"""The dispatcher: gives ready work to agents that can be started, and sees each attempt through.

It looks when something was committed (a hint), when an attempt has ended, and at regular times; it
has no other knowledge than the store's, so nothing is lost when it is killed. A task is not given
out while anything of an earlier attempt on it is still running here.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actors import SYSTEM
from dragoman.core.authority import why_no_holder
from dragoman.core.commands import ClaimTask, KeepLease, RegisterAgent
from dragoman.core.errors import DragomanError, Refusal, Refused, StoreUnavailable
from dragoman.core.states.task import Task
from dragoman.engine.hub import Hub
from dragoman.engine.reads.ask import TaskView, find_agent, find_task
from dragoman.engine.runner import Assignment
from dragoman.engine.trouble import NONE, Trouble, trouble_of
from dragoman.services.attempt import Attempt, Speak, Terms
from dragoman.services.booking import Booking, UsageKeeper
from dragoman.services.budgets import Begun, whole
from dragoman.services.desk import Agent, AgentState, Desk
from dragoman.services.queues import first_of
from dragoman.services.rests import LeftAlone
from dragoman.services.sessions import place_in, session_name
from dragoman.services.taking_over import Estate, Forget, Sweep
from dragoman.services.turns import most_urgent, who_gets
from dragoman.services.waking import Waking

_MOST_WAITS = 16
"""Tasks of a queue that wait for another agent are skipped up to this number in one round; then an
agent that has failed on all of them gets nothing else from that queue."""


class Policy(Struct, frozen=True):
    """Policy of dispatch."""

    hub: str
    """Name of the hub among those that share a store; it prefixes the names of its sessions."""
    concurrency: int
    ttl_ms: int
    poll_ms: int
    grace_ms: int
    terms: Terms


class Outside(Struct, frozen=True):
    """Ports that the dispatcher needs."""

    speak: Speak
    sweep: Sweep
    forget: Forget
    usage: UsageKeeper
    new_id: Callable[[], str]
    tell: Callable[[str], None]
    """Shows at the hub's terminal what keeps an agent from working."""
    asked_at: Callable[[Task], int] = lambda _: 0
    """Time of the last unanswered request for a worker on a task; 0: none."""
    break_off: Callable[[], None] = lambda: None
    """Cancels long starts, like a checkout, when the hub stops."""


class _Claim(Struct, frozen=True):
    """A claim of a task for an agent, which may or may not have been committed."""

    desk: Desk
    task: str
    session: str


class Dispatcher:
    """Claims tasks and supervises runs in one event loop, from `run` until `stop`."""

    def __init__(
        self,
        hub: Hub,
        agents: Sequence[Agent],
        policy: Policy,
        outside: Outside,
    ) -> None:
        self._hub = hub
        self._desks = {agent.name: Desk(agent) for agent in agents}
        self._policy = policy
        self._outside = outside
        self._booking = Booking(hub, outside.usage, outside.tell)
        self._left_alone = LeftAlone(hub, policy.terms.backoff, outside.asked_at)
        self._waking = Waking(hub.store, policy.poll_ms / 1_000, self._attempts)
        self.is_stopping = False
        self._claims = deque[_Claim]()
        """Claims whose run has not started yet, because the store failed in between."""
        self._lives = set[asyncio.Task[None]]()
        self._trouble = NONE
        """Problem of the last round; empty: none."""

    # Interface

    def hint(self, streams: Collection[str]) -> None:
        """Look for work: these streams have new entries. (An `OnCommit`, for any
        thread.)"""
        if self._desks:
            self._waking.hint(streams)

    def stop(self) -> None:
        """Take no more work, and end when all runs have ended or were stopped."""
        self.is_stopping = True
        self._waking.wake()

    @property
    def trouble(self) -> Trouble:
        """Problem that keeps all work from being dispatched.

        An agent that cannot be started delays nobody else: see `agent_states`.
        """
        return self._trouble

    @property
    def running(self) -> int:
        """Number of runs that a stop waits for."""
        return sum(not attempt.outlasts_hub for attempt in self._attempts())

    def states(self) -> list[AgentState]:
        """Status of every agent."""
        return [
            AgentState(
                name,
                tuple(attempt.assignment.task for attempt in desk.attempts.values()),
                desk.used_beside(whole(self._booking.used(name))),
                self._why_idle(desk) or self._what_rests(desk),
            )
            for name, desk in self._desks.items()
        ]

    async def until_idle(self) -> None:
        """Wait until no agent is at work."""
        while self._lives:
            await asyncio.wait(self._lives)

    async def run(self) -> None:
        """Dispatch until `stop`; cancelling it stops all agents at once."""
        policy = self._policy
        outside = self._outside
        backoff = policy.terms.backoff
        estate = Estate(self._hub, policy.hub, backoff, outside.sweep, outside.forget)
        try:
            with self._waking.listening():
                while not await self._managed(lambda: self._open(estate)):
                    await self._waking.rest()
                if not self._desks:
                    await self._waking.woken()
                while not self.is_stopping:
                    self._waking.clear()
                    await self._managed(self._look)
                    await self._waking.rest()
                await self._drain()
        finally:  # a cancellation or a fault leaves no agent behind
            for attempt in self._attempts():
                attempt.hurry()
            self._outside.break_off()
            await self.until_idle()

    async def _managed(self, work: Callable[[], Awaitable[None]]) -> bool:
        """Do a piece of work; whether it was done, or need not be any more. A fault is kept in
        `problem`.
        """
        try:
            await work()
        except (DragomanError, OSError) as error:
            self._trouble = trouble_of(error)
            return self.is_stopping
        self._trouble = NONE
        return True

    async def _open(self, estate: Estate) -> None:
        """Register the agents, and recover what an earlier hub of this name left."""
        unknown = await asyncio.to_thread(
            lambda: [name for name in self._desks if find_agent(self._hub.store, name) is None]
        )
        if unknown:
            known = (RegisterAgent(name, speaks=self._desks[name].agent.speaks) for name in unknown)
            await self._hub.do_soon(SYSTEM, *known)
        await self._review()
        await estate.settle(self._go_on, self._note)
        await self._booking.settle({attempt.begun for attempt in self._attempts()})

    async def _go_on(self, view: TaskView) -> str:
        """Resume an attempt of an earlier hub; the reason why it cannot be resumed, or nothing."""
        lease = view.lease
        assert lease is not None, "what nobody holds was not left by anybody"
        desk = self._desks.get(lease.holder)
        if desk is None:
            return "the hub no longer starts its agent"
        known = await asyncio.to_thread(find_agent, self._hub.store, lease.holder)
        if cannot_hold := why_no_holder(known):
            return cannot_hold
        where = place_in(lease.session, self._policy.hub)
        if where != desk.agent.elsewhere:
            # The agent may still work there: only a new fence keeps two out of one attempt.
            return "its agent has moved since the attempt began"
        if not where and not self._has_room(desk):
            return "the limit of concurrent agents is reached"
        if not where and self._why_idle(desk):
            return "its agent is paused, or has used up its daily budget"
        left_ms = self._time_left(desk.agent, view)
        if left_ms is None:
            return "the time of its attempt (attempt_ms) is over"
        # It has waited for the hub; from now on it needs heartbeats.
        kept = KeepLease(view.task.id, lease.fence, lease.ttl_ms)
        try:
            await self._hub.do_soon(SYSTEM, kept)
        except Refused:
            return "it was kept for longer than keep_ms"
        await self._begin(desk, view, left_ms)
        return ""

    def _note(self, view: TaskView) -> None:
        """Count an orphaned attempt, if its hub was killed before it could."""
        assert view.lease is not None, "what nobody holds was not left by anybody"
        self._booking.begin(view.lease.holder, Begun(view.task.id, view.task.attempts))

    def _time_left(self, agent: Agent, view: TaskView) -> int | None:
        """Time that is left of a resumed attempt (0: no limit); None: it is over."""
        left = agent.attempt_ms - max(self._hub.clock.now() - view.task.moved_at, 0)
        if left <= 0:
            return None if agent.attempt_ms else 0
        return left

    # Dispatch

    async def _look(self) -> None:
        """Claim tasks for free agents, the most urgent first, until nothing fits."""
        await self._review()
        await self._begin_claimed()
        passed_over = await self._left_alone.tasks(self._waking.now)
        waits = Counter[str]()
        while not self.is_stopping and (free := list(self._free())):
            queues = {queue for desk in free for queue in desk.agent.queues}
            queues -= {queue for queue, count in waits.items() if count >= _MOST_WAITS}
            besides = passed_over | {attempt.assignment.task for attempt in self._attempts()}
            now = self._hub.clock.now()
            first = await asyncio.to_thread(first_of, self._hub.store, now, sorted(queues), besides)
            found = most_urgent(free, first, self._booking.turn)
            if found is None:
                break
            desk = await self._whose_turn(found.task, found.equals)
            if desk is None:
                waits[found.queue] += 1
            if desk is None or not await self._claim(desk, found.task):
                passed_over.add(found.task)
        await self._booking.save()  # after the last: without a budget no need to wait

    async def _whose_turn(self, task: str, equals: Sequence[Desk]) -> Desk | None:
        able = [desk for desk in self._desks.values() if not self._why_idle(desk)]
        if len(able) == 1:
            return equals[0]
        view = await asyncio.to_thread(find_task, self._hub.store, task)
        return None if isinstance(view, Refusal) else who_gets(view.task, equals, able)

    async def _review(self) -> None:
        desks = self._desks.values()
        await self._booking.review([(desk.agent, desk.so_far) for desk in desks])

    def _free(self) -> Iterator[Desk]:
        for desk in self._desks.values():
            if self._has_room(desk) and not self._why_idle(desk):
                yield desk

    def _has_room(self, desk: Desk) -> bool:
        """Check whether one more run may start, for this agent and altogether."""
        running = sum(len(one.attempts) for one in self._desks.values())
        is_full = running >= self._policy.concurrency
        return not is_full and len(desk.attempts) < desk.agent.concurrency

    def _why_idle(self, desk: Desk) -> str:
        if self._waking.now < desk.rests_until:
            return desk.problem
        return self._booking.why_idle(desk.agent, desk.so_far())

    def _what_rests(self, desk: Desk) -> str:
        """Cooldown of the tasks that an idle agent would otherwise work on."""
        if desk.attempts:
            return ""
        return self._left_alone.words(desk.agent.queues, self._waking.now)

    async def _claim(self, desk: Desk, task: str) -> bool:
        """Claim a task for an agent and start the run; False when another claim came first."""
        agent = desk.agent
        session = session_name(self._policy.hub, self._outside.new_id(), agent.elsewhere)
        command = ClaimTask(task, agent.name, session, self._policy.ttl_ms, agent.queues)
        self._claims.append(_Claim(desk, task, session))
        try:
            await self._hub.do_soon(SYSTEM, command)
        except Refused:
            self._claims.pop()
            return False
        await self._begin_claimed()
        return True

    async def _begin_claimed(self) -> None:
        """Start the runs of claimed tasks; one that cannot start yet is tried in the next round."""
        while self._claims:
            claim = self._claims.popleft()
            try:
                view = await asyncio.to_thread(find_task, self._hub.store, claim.task)
                if isinstance(view, TaskView) and _is_in(view, claim.session):
                    await self._begin(claim.desk, view, claim.desk.agent.attempt_ms)
            except StoreUnavailable:
                self._claims.appendleft(claim)
                raise

    async def _begin(self, desk: Desk, view: TaskView, limit_ms: int) -> None:
        task, lease = view.task, view.lease
        assert lease is not None, "what nobody holds is not begun"
        told = await asyncio.to_thread(desk.agent.prompt, task, desk.agent.name)
        assignment = Assignment(
            agent=desk.agent.name,
            task=task.id,
            aof_id=task.aof_id,
            title=task.title,
            attempt=task.attempts,
            fence=lease.fence,
            session=lease.session,
            ttl_ms=lease.ttl_ms,
            prompt=told,
            must_report=desk.agent.must_report,
            resume_from=task.checkpoint.commit if task.checkpoint else "",
        )
        attempt = Attempt(
            self._hub, assignment, desk.agent.runner, self._outside.speak, self._policy.terms
        )
        desk.attempts[assignment.session] = attempt
        self._booking.begin(desk.agent.name, attempt.begun)
        life = asyncio.create_task(self._see_through(desk, attempt, limit_ms))
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    async def _see_through(self, desk: Desk, attempt: Attempt, limit_ms: int) -> None:
        agent = desk.agent
        try:
            spent = await attempt.live(limit_ms, partial(self._booking.save_before, agent))
            loop = asyncio.get_running_loop()
            now = loop.time()
            desk.note_start(spent.not_started, now, self._outside.tell)
            rest = self._left_alone.note(spent.task, now, spent.given_back)
            until = desk.rests_until if spent.not_started else rest
            if until is not None:  # else nothing would wake the dispatcher at that time
                loop.call_at(until, self._waking.wake)
            # Recorded without a pause in between: the usage must not count as running as well.
            del desk.attempts[attempt.assignment.session]
            if spent.not_started:
                self._booking.take_back(agent.name)
            else:
                self._booking.spend(agent.name, ms=spent.ms, output=spent.output)
            self._booking.judge(agent.name, has_failed=spent.has_failed)
            if not spent.is_kept:
                self._booking.close(agent.name, attempt.begun, spent.cost)
            await self._booking.save()
        except (DragomanError, OSError) as error:
            whose = f"{agent.name} on {attempt.assignment.task}"
            found = trouble_of(error)
            self._trouble = replace(found, words=f"{whose}: {found.words}")
        finally:
            desk.attempts.pop(attempt.assignment.session, None)
            self._waking.wake()

    # Shutdown

    def _attempts(self) -> Iterator[Attempt]:
        for desk in self._desks.values():
            yield from desk.attempts.values()

    async def _drain(self) -> None:
        """Let agents finish within the grace time, then stop them; do not await remote agents."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._policy.grace_ms / 1_000
        while self.running and (left := end - loop.time()) > 0:
            # One that is just being started may turn out to be remote.
            await asyncio.wait(
                self._lives,
                timeout=min(left, self._policy.poll_ms / 1_000),
                return_when=asyncio.FIRST_COMPLETED,
            )
        for attempt in self._attempts():
            attempt.halt()
        self._outside.break_off()
        await self.until_idle()


def _is_in(view: TaskView, session: str) -> bool:
    return view.lease is not None and view.lease.session == session
