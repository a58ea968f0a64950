"""Those who give work out and look at what comes of it, and the programs that the hub starts."""

import asyncio
from typing import Any, ClassVar

import msgspec

from dragoman.core.commands import CreateTask, DescribeAgent, MoveTask, RegisterAgent
from dragoman.core.events import Role, Status
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.task import Task
from dragoman.engine.request import Accepted
from dragoman.engine.runner import Assignment, Hear
from dragoman.protocols.agentmail import compose
from tests.simulation import agents, messages
from tests.simulation.faulty_store import HubDied
from tests.simulation.programs import Script
from tests.simulation.taking_part import Agent
from tests.simulation.world import HOUR, World, do, is_yes, operate, send

_WAYS: dict[Status, tuple[Status, ...]] = {
    "review": ("done", "done", "done", "ready", "cancelled"),
    "blocked": ("ready", "ready", "cancelled"),
    "deadletter": ("ready",),
}
"""What waits for a person, and where it may go."""


class Orchestrator(Agent):
    """Makes tasks, waves, intents and requests for workers."""

    role: ClassVar[Role] = "orchestrator"
    has_shared = False
    """Whether a part of a task was given to somebody: that is what is tried first, in any seed."""

    async def work(self) -> None:
        """One piece of work for others, unless there is too much of it already."""
        if self.world.is_calm or len(self.tasks("ready")) > 12:
            return
        drawn = self.chance.random()
        if drawn < 0.1 or not self.has_shared:
            await self._share_task()
        elif drawn < 0.6:
            await self._make_task()
        elif drawn < 0.75:
            await self._start_wave()
        elif drawn < 0.9:
            await self._delegate()
        else:
            await self._spawn()

    async def _share_task(self) -> None:
        """A task, and a part of it that somebody in particular is asked for."""
        to = self.chance.choice(agents.AOF_WORKERS)
        whole, part = await self._made(), await self._made(to)
        word, due = self.world.word(), self.now + self.chance.randrange(12 * HOUR)
        said = messages.aof_request(
            self.name, part.aof_id, whole.aof_id, at=self.now, due=due, word=word, to=to
        )
        self.has_shared |= is_yes(await self.insist("delegate", send(said, self.actor)))

    async def _made(self, assignee: str = "") -> Task:
        word = self.world.word()
        command = CreateTask(f"Work {word}", ready=True, assignee=assignee)
        call = do(self.actor, command, key=word)
        answer = await self.promised("create", call, word, "task.created")
        assert isinstance(answer, Accepted), answer
        task = self.world.auditor.task(answer.receipts[0].task)
        assert task is not None
        return task

    async def _make_task(self) -> None:
        word, ready = self.world.word(), self.tasks("ready")
        waits = (self.chance.choice(ready).id,) if ready and self.chance.random() < 0.2 else ()
        command = CreateTask(
            f"Work {word}",
            ready=True,
            blocked_by=waits,
            assignee=self.chance.choice(("",) * 8 + agents.AOF_WORKERS[:1] + agents.PROGRAMS[:1]),
            review_required=self.chance.random() < 0.5,
            max_attempts=self.chance.choice((1, 3, 5)),
        )
        await self.promised("create", do(self.actor, command, key=word), word, "task.created")

    async def _start_wave(self) -> None:
        number = self.world.number()
        beads = [
            {"id": f"ol-{number}.{part}", "files": [f"src/{self.chance.randrange(3)}/"]}
            for part in range(self.chance.randrange(2, 5))
        ]
        said = {
            "wave_id": f"wave-{number}",
            "beads": beads,
            "parallel": self.chance.randrange(1, 3),
            "retries": {"TESTS_FAIL": 1},
        }
        await self.insist("wave", operate("wave.start", said, self.actor))

    async def _delegate(self) -> None:
        word = self.world.word()
        said = {"goal": f"translate {word}", "intent_id": f"i-{self.world.number()}"}
        await self.promised(
            "intent", operate("ccos.delegate", said, self.actor), word, "task.created"
        )

    async def _spawn(self) -> None:
        number = self.world.number()
        draft = compose.spawn_request(f"ol-{number}", orchestrator=self.name, resume=False)
        said = messages.letter(draft, f"m-{number}")
        await self.insist("spawn", send(said, self.actor))


class Reviewer(Agent):
    """A person who looks at what waits for one."""

    role: ClassVar[Role] = "human"

    async def work(self) -> None:
        """Some of what waits."""
        for status, ways in _WAYS.items():
            for task in self.tasks(status)[:4]:
                to = self.chance.choice(ways)
                word = self.world.word()
                await self.insist("move", do(self.actor, MoveTask(task.id, to), key=word))
        if self.chance.random() < 0.1 and (some := self.tasks("ready") + self.tasks("in-progress")):
            gone = MoveTask(self.chance.choice(some).id, "cancelled")
            await self.insist("cancel", do(self.actor, gone))


class Coordinator(Agent):
    """Sees to handoffs that do not go on."""

    role: ClassVar[Role] = "coordinator"

    async def work(self) -> None:
        """One of them."""
        records = self.world.auditor.store.handoffs("", 1_000)
        long_ago = to_rfc3339(self.now - 2 * HOUR)
        late = [one for one in records if one.is_active and one.initiated_at < long_ago]
        if not late or self.world.is_calm:
            return
        one, drawn = self.chance.choice(late), self.chance.random()
        said: dict[str, Any] = {"handoff_id": one.id}
        if drawn < 0.4:
            said |= {"action": "extend_sla", "by": "30m"}
        elif drawn < 0.7:
            said |= {"action": "reassign", "to_agent": self.chance.choice(agents.HANDOFF_WORKERS)}
        else:
            said |= {"action": "reject", "reason": "other", "detail": "nobody goes on with it"}
        await self.insist("see_to", operate("acp_handoff", said, self.actor))


async def introduce(world: World) -> None:
    """A person makes everybody known, before anything goes wrong."""
    hera = Reviewer(world, "hera")
    people: tuple[tuple[str, Role], ...] = (
        ("olga", "orchestrator"),
        ("cora", "coordinator"),
        ("hera", "human"),
    )
    known = [RegisterAgent(name, role=role) for name, role in people]
    known += [RegisterAgent(name) for _, names in agents.CAST for name in names]
    skills = [DescribeAgent(name, ("translate",), trust="T2") for name in agents.DELEGATES]
    await hera.insist("introduce", do(hera.actor, *known, *skills, key="introduce"))


def everybody(world: World) -> list[Agent]:
    """All who take part."""
    return [
        *agents.cast_of(world),
        Orchestrator(world, "olga"),
        Reviewer(world, "hera"),
        Coordinator(world, "cora"),
    ]


def script_of(world: World) -> Script:
    """What a started program does: it speaks AOF on its standard output, and ends somehow."""
    chance = world.chances("programs")

    async def script(of: Assignment, hear: Hear) -> str:
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(chance.uniform(0, 1_200))
            word = world.word()
            await _say(hear, messages.aof_update(of.agent, of.aof_id, world.clock.now(), word))
        await asyncio.sleep(chance.uniform(0, 1_200))
        if world.slip(chance, 5):
            world.done["programs that failed"] += 1
            return "exit code 1"
        if world.slip(chance, 2):
            world.done["programs that hung"] += 1
            await asyncio.sleep(chance.uniform(1, 12) * HOUR / 1_000)
        if chance.random() < 0.9:
            outcome = chance.choice(("done", "done", "done", "blocked", "partial"))
            at, word = world.clock.now(), world.word()
            await _say(hear, messages.aof_report(of.agent, of.aof_id, at, word, outcome))
        return ""

    return script


async def _say(hear: Hear, said: messages.Said) -> None:
    try:
        await hear(b"AOF/1 " + msgspec.json.encode(said))
    except HubDied:
        return  # nobody reads what it prints any more
