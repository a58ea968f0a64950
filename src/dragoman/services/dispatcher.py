"""The dispatcher: gives ready work to agents that can be started, and sees each attempt through.

It looks when something was committed (a hint), when an attempt has ended, and at regular times; it
has no other knowledge than the store's, so nothing is lost when it is killed. What an earlier hub
has left is settled before anything else: a program that it had started has lost its attempt, and
work that was claimed but never started is started in that same attempt.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

import msgspec
from msgspec import Struct

from dragoman.core.actors import SYSTEM, Actor
from dragoman.core.commands import ClaimTask, EndAttempt, ReleaseTask, ReportOutcome, WarnTask
from dragoman.core.deadlines import Backoff, rest_after
from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.core.ids import task_stream
from dragoman.core.lease import Lease
from dragoman.core.task import Task
from dragoman.engine.ask import TaskView, find_task, list_tasks
from dragoman.engine.hub import Hub
from dragoman.engine.ports import BoardQuery, ReadyKey, Session
from dragoman.engine.runner import Assignment, Runner
from dragoman.services.attempt import VIA, Attempt, Speak, Spent, Terms
from dragoman.services.budgets import Budget, Used, of_today, spend, why_paused

_PAUSE_SECONDS = 0.005
"""Between two looks, so that a busy hub costs the dispatcher little."""
_PROMOTED_AT_ONCE = 100
_PAGE = 500
_REST = Backoff(base_ms=1_000, cap_ms=300_000)
"""How long an agent is left alone that could not be started."""


class Agent(Struct, frozen=True):
    """An agent that can be started."""

    name: str
    runner: Runner
    queues: tuple[str, ...]
    """Whose tasks it takes: names that tasks are reserved for, and "" for those of anyone."""
    concurrency: int = 1
    attempt_ms: int = 0
    budget: Budget = Budget()


class Policy(Struct, frozen=True):
    """What holds for all of them."""

    hub: str
    """The hub's name among those that share a store: it begins the names of its sessions."""
    concurrency: int
    ttl_ms: int
    poll_ms: int
    grace_ms: int
    terms: Terms


class UsageKeeper(Protocol):
    """Where it is kept what agents have used."""

    def load(self) -> bytes:
        """What was saved last; empty before the first time."""
        ...

    def save(self, data: bytes) -> None:
        """Keep it, durably."""
        ...


class Outside(Struct, frozen=True):
    """What is handed in."""

    speak: Speak
    prompt: Callable[[Task, str], str]
    """What an agent is told about a task."""
    sweep: Callable[[], Collection[str]]
    """Ends what an earlier hub has left running; the sessions that it had started."""
    usage: UsageKeeper
    new_id: Callable[[], str]


class AgentState(Struct, frozen=True):
    """How an agent stands, for whoever looks."""

    name: str
    running: tuple[str, ...]
    """The tasks that it works on."""
    used: Used
    paused: str = ""
    """Why it takes no work just now."""


class _Desk:
    """What is known of one agent while the dispatcher runs."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.attempts: dict[str, Attempt] = {}
        """By the stream of the task."""
        self.failures = 0
        """How often in a row it could not be started."""
        self.problem = ""
        self.rests_until = 0.0


class Dispatcher:
    """Runs in one event loop, from `run` until `stop`."""

    def __init__(
        self,
        hub: Hub,
        agents: Sequence[Agent],
        policy: Policy,
        outside: Outside,
    ) -> None:
        self._hub = hub
        self._desks = {agent.name: _Desk(agent) for agent in agents}
        self._policy = policy
        self._outside = outside
        self._used = _decode_usage(outside.usage.load())
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken = asyncio.Event()
        self._is_stopping = False
        self._lives = set[asyncio.Task[None]]()
        self.problem = ""
        """Why the last look could not be finished; empty: it was."""

    # What others call

    def hint(self, streams: Collection[str]) -> None:
        """Something was written into these streams. (An `OnCommit`: it comes from any thread.)"""
        loop = self._loop
        if loop is not None and self._desks:
            with suppress(RuntimeError):  # the loop has been closed: nobody looks any more
                loop.call_soon_threadsafe(self._look_at, tuple(streams))

    def stop(self) -> None:
        """Take no more work, and end when what runs has ended or was ended."""
        self._is_stopping = True
        self._woken.set()

    def states(self) -> list[AgentState]:
        """How every agent stands."""
        now = self._hub.clock.now()
        return [
            AgentState(
                name,
                tuple(attempt.assignment.task for attempt in desk.attempts.values()),
                of_today(self._used.get(name, Used()), now),
                self._why_idle(desk),
            )
            for name, desk in self._desks.items()
        ]

    async def until_idle(self) -> None:
        """Until no agent is at work."""
        while self._lives:
            await asyncio.wait(self._lives)

    async def run(self) -> None:
        """Dispatch until `stop`; whoever cancels it does not wait for agents."""
        if not self._desks:
            await self._woken.wait()
            return
        self._loop = asyncio.get_running_loop()
        try:
            await self._take_over()
            while not self._is_stopping:
                self._woken.clear()
                await self._look()
                await self._rest()
            await self._drain()
        finally:  # whoever cancels this, or a fault, leaves no agent behind
            self._loop = None
            for attempt in self._attempts():
                attempt.hurry()
            await self.until_idle()

    # Waiting

    def _look_at(self, streams: tuple[str, ...]) -> None:
        for desk in self._desks.values():
            for stream in desk.attempts.keys() & streams:
                desk.attempts[stream].look()
        if any(stream.startswith(task_stream("")) for stream in streams):
            self._woken.set()

    async def _rest(self) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        with suppress(TimeoutError):
            async with asyncio.timeout(self._policy.poll_ms / 1_000):
                await self._woken.wait()

    # Giving out work

    async def _look(self) -> None:
        """Claim for whoever is free, the most urgent first, until nothing fits."""
        passed_over = set[str]()
        try:
            while not self._is_stopping and (free := list(self._free(passed_over))):
                queues = {queue for desk in free for queue in desk.agent.queues}
                first = await asyncio.to_thread(self._first_of, sorted(queues))
                desk = _most_urgent(free, first)
                if desk is None:
                    break
                if not await self._claim(desk):
                    passed_over.add(desk.agent.name)
            self.problem = ""
        except DragomanError as error:
            self.problem = error.detail

    def _free(self, passed_over: Collection[str]) -> Iterator[_Desk]:
        if sum(len(desk.attempts) for desk in self._desks.values()) >= self._policy.concurrency:
            return
        for name, desk in self._desks.items():
            has_room = len(desk.attempts) < desk.agent.concurrency
            if has_room and name not in passed_over and not self._why_idle(desk):
                yield desk

    def _why_idle(self, desk: _Desk) -> str:
        loop = self._loop
        if loop is not None and loop.time() < desk.rests_until:
            return desk.problem
        used = of_today(self._used.get(desk.agent.name, Used()), self._hub.clock.now())
        return why_paused(desk.agent.name, desk.agent.budget, used)

    def _first_of(self, queues: Sequence[str]) -> Mapping[str, ReadyKey]:
        """The first task of each queue that has one."""
        now = self._hub.clock.now()

        def work(session: Session) -> dict[str, ReadyKey]:
            session.promote(now, _PROMOTED_AT_ONCE)
            return {queue: keys[0] for queue in queues if (keys := session.ready(queue, None, 1))}

        return self._hub.store.transact(work)

    async def _claim(self, desk: _Desk) -> bool:
        """Claim the next task for an agent and let it begin; False when another was faster."""
        agent, session = desk.agent, f"{self._policy.hub}.{self._outside.new_id()}"
        command = ClaimTask("", agent.name, session, self._policy.ttl_ms, agent.queues)
        try:
            done = await self._hub.do_soon(SYSTEM, command)
        except Refused:
            return False
        view = find_task(self._hub.store, done.receipts[0].task)
        if not isinstance(view, Refusal):
            self._begin(desk, view)
        return True

    def _begin(self, desk: _Desk, view: TaskView) -> None:
        task, lease = view.task, view.lease
        if lease is None or lease.holder != desk.agent.name:
            return
        assignment = Assignment(
            agent=desk.agent.name,
            task=task.id,
            aof_id=task.aof_id,
            title=task.title,
            attempt=task.attempts,
            fence=lease.fence,
            session=lease.session,
            ttl_ms=lease.ttl_ms,
            prompt=self._outside.prompt(task, desk.agent.name),
        )
        attempt = Attempt(
            self._hub, assignment, desk.agent.runner, self._outside.speak, self._policy.terms
        )
        desk.attempts[task_stream(task.id)] = attempt
        life = asyncio.create_task(self._see_through(desk, attempt))
        self._lives.add(life)
        life.add_done_callback(self._lives.discard)

    async def _see_through(self, desk: _Desk, attempt: Attempt) -> None:
        agent, stream = desk.agent, task_stream(attempt.assignment.task)
        try:
            spent = await attempt.live(agent.attempt_ms)
            self._note_start(desk, spent)
            if not spent.not_started:
                await self._book(agent, spent)
        except (DragomanError, OSError) as error:
            self.problem = f"{agent.name} on {attempt.assignment.task}: {error}"
        finally:
            del desk.attempts[stream]
            self._woken.set()

    def _note_start(self, desk: _Desk, spent: Spent) -> None:
        if not spent.not_started:
            desk.failures, desk.problem = 0, ""
            return
        desk.failures += 1
        rest = rest_after(desk.failures, _REST) / 1_000
        desk.problem = f"{desk.agent.name} could not be started: {spent.not_started}"
        desk.rests_until = asyncio.get_running_loop().time() + rest

    async def _book(self, agent: Agent, spent: Spent) -> None:
        """Keep what was used; when that was the last of it, say so where a person looks."""
        before = of_today(self._used.get(agent.name, Used()), self._hub.clock.now())
        used = spend(before, ms=spent.ms, output=spent.output, cost=spent.cost)
        why = why_paused(agent.name, agent.budget, used)
        used = msgspec.structs.replace(used, told=bool(why))
        self._used[agent.name] = used
        if agent.budget != Budget():  # nobody asks for it otherwise: spare the disk
            await asyncio.to_thread(self._outside.usage.save, msgspec.json.encode(self._used))
        if why and not before.told:
            await self._hub.do_soon(SYSTEM, WarnTask(spent.task, "budget", why))

    # The beginning and the end

    async def _take_over(self) -> None:
        """Settle what an earlier hub of this name has left."""
        started = await asyncio.to_thread(self._outside.sweep)
        for view in self._left_behind():
            lease = view.lease
            assert lease is not None
            task, desk = view.task.id, self._desks.get(lease.holder)
            backoff = self._policy.terms.backoff
            done = await self._hub.do_soon(SYSTEM, EndAttempt(task, lease.session, backoff))
            if done.receipts[0].status != "in-progress":
                continue
            if lease.session in started:
                why = "the hub was killed while the agent was at work"
                await self._give_back(
                    lease, ReportOutcome(task, "failed", why, apply=True, backoff=backoff)
                )
            elif desk is not None:
                self._begin(desk, view)
            else:
                await self._give_back(lease, ReleaseTask(task, "its agent is not started any more"))

    async def _give_back(self, lease: Lease, command: ReportOutcome | ReleaseTask) -> None:
        """End an attempt in the place of its agent."""
        actor = Actor("agent", lease.holder, VIA, command.task, lease.fence)
        with suppress(Refused):  # its lease has ended meanwhile: recovery sees to it
            await self._hub.do_soon(actor, command)

    def _left_behind(self) -> Iterator[TaskView]:
        ours, query = f"{self._policy.hub}.", BoardQuery(status="in-progress", limit=_PAGE)
        while page := list_tasks(self._hub.store, query):
            for view in page:
                if view.lease is not None and view.lease.session.startswith(ours):
                    yield view
            query = BoardQuery(status="in-progress", before=page[-1].number, limit=_PAGE)

    def _attempts(self) -> Iterator[Attempt]:
        for desk in self._desks.values():
            yield from desk.attempts.values()

    async def _drain(self) -> None:
        """Let agents finish for a while, then stop them."""
        if self._lives:
            await asyncio.wait(self._lives, timeout=self._policy.grace_ms / 1_000)
        for attempt in self._attempts():
            attempt.halt()
        await self.until_idle()


def _most_urgent(free: Sequence[_Desk], first: Mapping[str, ReadyKey]) -> _Desk | None:
    """Whose next task comes first; among equals, who has least to do."""
    ranked = [
        (min(keys), len(desk.attempts) / desk.agent.concurrency, order)
        for order, desk in enumerate(free)
        if (keys := [first[queue] for queue in desk.agent.queues if queue in first])
    ]
    return free[min(ranked)[2]] if ranked else None


def _decode_usage(data: bytes) -> dict[str, Used]:
    try:
        return msgspec.json.decode(data, type=dict[str, Used]) if data else {}
    except msgspec.MsgspecError:  # a damaged count must not stop the work: it begins anew
        return {}
