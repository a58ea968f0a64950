"""Participants: they work, crash, fall silent and retry.

A step may be the last one of its piece of work (a crash, after which everything is forgotten) or
come after a silence that is longer than any lease. A call without an answer is repeated unchanged.
"""

import asyncio
from abc import ABC, abstractmethod
from typing import ClassVar

from dragoman.core.actor import Actor
from dragoman.core.attempt import ClaimTask
from dragoman.core.base import Role, Status
from dragoman.core.task_state import Task
from dragoman.engine.ports import TaskQuery
from dragoman.engine.queries.tasks import list_tasks
from dragoman.engine.request import Committed
from tests.simulation.world import NO_ANSWER, Answer, Call, World, command_call, is_accepted

_TRIES = 4


class Crashed(Exception):
    """Crash of a participant, which forgets what it was doing."""


class Participant(ABC):
    """Participant that does one piece of work after the other."""

    role: ClassVar[Role] = "agent"

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.rng = world.rng_of(name)
        self.actor = Actor(self.role, name, "http")

    async def run(self) -> None:
        """Work and pause until the simulation ends."""
        while True:
            await self.world.pause(self.rng)
            try:
                await self.work()
            except Crashed:
                self.world.done["crashes of agents"] += 1
                await self.world.pause(self.rng, 2)

    @abstractmethod
    async def work(self) -> None:
        """Do one piece of work."""

    async def step(self, seconds: float) -> None:
        """Let some time pass; perhaps far too much, perhaps crash."""
        world, rng = self.world, self.rng
        await asyncio.sleep(rng.uniform(0, seconds))
        if world.goes_wrong(rng):
            world.done["silences"] += 1
            await asyncio.sleep(rng.uniform(1, 3) * world.profile.ttl_ms / 1_000)
        if world.goes_wrong(rng):
            raise Crashed

    async def call_with_retries(
        self, label: str, call: Call, *, fence: tuple[str, int] | None = None
    ) -> Answer:
        """Call until there is an answer; crash if there is none after some tries."""
        delay = 5.0
        for _ in range(_TRIES):
            answer = await self.world.request(self.name, label, call, fence=fence)
            if answer is not NO_ANSWER:
                return answer
            await asyncio.sleep(self.rng.uniform(0, delay))
            delay *= 4
        raise Crashed

    async def expect_recorded(self, label: str, call: Call, word: str, event: str) -> Answer:
        """Call, and expect the word on record if the answer is an acceptance."""
        answer = await self.call_with_retries(label, call)
        if is_accepted(answer):
            self.world.auditor.expect_recorded(word, event)
        return answer

    def tasks(self, status: Status) -> list[Task]:
        """Tasks in this status, newest first, as the board lists them."""
        query = TaskQuery(status=status, limit=50)
        return [view.task for view in list_tasks(self.world.auditor.store, query)]

    @property
    def now(self) -> int:
        """Present time of the hub's clock."""
        return self.world.clock.now()


class Worker(Participant):
    """Participant that holds tasks by claims, and sends heartbeats."""

    async def claim(self, name: str = "") -> tuple[Actor, str, str] | None:
        """Begin an attempt; return its credential, the AOF id of its task, and its session."""
        word, ttl = self.world.new_word(), self.world.profile.ttl_ms
        session = f"s-{self.world.new_number()}"
        command = ClaimTask(name, self.name, session, ttl)
        answer = await self.call_with_retries("claim", command_call(self.actor, command, key=word))
        if not isinstance(answer, Committed):
            return None
        receipt = answer.receipts[0]
        task = self.world.auditor.task(receipt.task)
        assert task is not None
        bound = Actor("agent", self.name, "http", receipt.task, receipt.fence)
        return bound, task.aof_id, session

    def fence(self, actor: Actor) -> tuple[str, int]:
        """Task and fence of an attempt."""
        assert actor.fence is not None
        return actor.task, actor.fence
