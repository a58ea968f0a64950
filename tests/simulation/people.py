"""Orchestrator, reviewer and coordinator, and the script of started programs."""

import asyncio
from typing import Any, ClassVar

import msgspec

from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.base import Role, Status
from dragoman.core.task_state import CreateTask, MoveTask, Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Assignment, OnMessage
from dragoman.engine.request import Committed
from dragoman.protocols.agentmail import compose
from tests.simulation import agents, messages
from tests.simulation.faulty_store import HubDied
from tests.simulation.participant import Participant
from tests.simulation.programs import Script
from tests.simulation.world import (
    HOUR,
    World,
    command_call,
    is_accepted,
    message_call,
    operation_call,
)

_TARGETS: dict[Status, tuple[Status, ...]] = {
    "review": ("done", "done", "done", "ready", "cancelled"),
    "blocked": ("ready", "ready", "cancelled"),
    "deadletter": ("ready",),
}
"""Status that waits for a human -> statuses to move the task to."""


class Orchestrator(Participant):
    """Orchestrator that creates tasks, waves, intents and spawn requests."""

    role: ClassVar[Role] = "orchestrator"
    has_delegated_part = False
    """True once a part of a task was delegated: that is the first action of every seed."""

    async def work(self) -> None:
        """Create one piece of work for others, unless there is too much of it already."""
        if self.world.is_calm or len(self.tasks("ready")) > 12:
            return
        drawn = self.rng.random()
        if drawn < 0.1 or not self.has_delegated_part:
            await self._delegate_part()
        elif drawn < 0.6:
            await self._create_task()
        elif drawn < 0.75:
            await self._start_wave()
        elif drawn < 0.9:
            await self._delegate()
        else:
            await self._spawn()

    async def _delegate_part(self) -> None:
        """Create a task and a part of it, and delegate the part."""
        to = self.rng.choice(agents.AOF_WORKERS)
        whole, part = await self._create_assigned_task(), await self._create_assigned_task(to)
        word, due = self.world.new_word(), self.now + self.rng.randrange(12 * HOUR)
        message = messages.aof_request(
            self.name, part.aof_id, whole.aof_id, at=self.now, due=due, word=word, to=to
        )
        self.has_delegated_part |= is_accepted(
            await self.call_with_retries("delegate", message_call(message, self.actor))
        )

    async def _create_assigned_task(self, assignee: str = "") -> Task:
        word = self.world.new_word()
        command = CreateTask(f"Work {word}", ready=True, assignee=assignee)
        call = command_call(self.actor, command, key=word)
        answer = await self.expect_recorded("create", call, word, "task.created")
        assert isinstance(answer, Committed), answer
        task = self.world.auditor.task(answer.receipts[0].task)
        assert task is not None
        return task

    async def _create_task(self) -> None:
        word, ready = self.world.new_word(), self.tasks("ready")
        blockers = (self.rng.choice(ready).id,) if ready and self.rng.random() < 0.2 else ()
        command = CreateTask(
            f"Work {word}",
            ready=True,
            blocked_by=blockers,
            assignee=self.rng.choice(("",) * 8 + agents.AOF_WORKERS[:1] + agents.PROGRAMS[:1]),
            review_required=self.rng.random() < 0.5,
            max_attempts=self.rng.choice((1, 3, 5)),
        )
        await self.expect_recorded(
            "create", command_call(self.actor, command, key=word), word, "task.created"
        )

    async def _start_wave(self) -> None:
        number = self.world.new_number()
        beads = [
            {"id": f"ol-{number}.{part}", "files": [f"src/{self.rng.randrange(3)}/"]}
            for part in range(self.rng.randrange(2, 5))
        ]
        arguments = {
            "wave_id": f"wave-{number}",
            "beads": beads,
            "parallel": self.rng.randrange(1, 3),
            "retries": {"TESTS_FAIL": 1},
        }
        await self.call_with_retries("wave", operation_call("wave.start", arguments, self.actor))

    async def _delegate(self) -> None:
        word = self.world.new_word()
        arguments = {"goal": f"translate {word}", "intent_id": f"i-{self.world.new_number()}"}
        await self.expect_recorded(
            "intent", operation_call("ccos.delegate", arguments, self.actor), word, "task.created"
        )

    async def _spawn(self) -> None:
        number = self.world.new_number()
        draft = compose.draft("SPAWN_REQUEST", f"ol-{number}", orchestrator=self.name, resume=False)
        message = messages.letter(draft, f"m-{number}")
        await self.call_with_retries("spawn", message_call(message, self.actor))


class Reviewer(Participant):
    """Human that decides about tasks which wait for one."""

    role: ClassVar[Role] = "human"

    async def work(self) -> None:
        """Decide about some of the waiting tasks."""
        for status, targets in _TARGETS.items():
            for task in self.tasks(status)[:4]:
                to = self.rng.choice(targets)
                word = self.world.new_word()
                await self.call_with_retries(
                    "move", command_call(self.actor, MoveTask(task.id, to), key=word)
                )
        if self.rng.random() < 0.1 and (
            open_tasks := self.tasks("ready") + self.tasks("in-progress")
        ):
            gone = MoveTask(self.rng.choice(open_tasks).id, "cancelled")
            await self.call_with_retries("cancel", command_call(self.actor, gone))


class Coordinator(Participant):
    """Coordinator of handoffs that are stuck."""

    role: ClassVar[Role] = "coordinator"

    async def work(self) -> None:
        """Extend, reassign or reject one stuck handoff."""
        records = self.world.auditor.store.handoffs("", 1_000)
        long_ago = to_rfc3339(self.now - 2 * HOUR)
        late = [one for one in records if one.is_active and one.initiated_at < long_ago]
        if not late or self.world.is_calm:
            return
        one, drawn = self.rng.choice(late), self.rng.random()
        message: dict[str, Any] = {"handoff_id": one.id}
        if drawn < 0.4:
            message |= {"action": "extend_sla", "by": "30m"}
        elif drawn < 0.7:
            message |= {"action": "reassign", "to_agent": self.rng.choice(agents.HANDOFF_WORKERS)}
        else:
            message |= {"action": "reject", "reason": "other", "detail": "nobody goes on with it"}
        await self.call_with_retries("see_to", operation_call("acp_handoff", message, self.actor))


async def register_all(world: World) -> None:
    """Register all participants, before anything goes wrong."""
    hera = Reviewer(world, "hera")
    roles: tuple[tuple[str, Role], ...] = (
        ("olga", "orchestrator"),
        ("cora", "coordinator"),
        ("hera", "human"),
    )
    registrations = [RegisterAgent(name, role=role) for name, role in roles]
    registrations += [RegisterAgent(name) for _, names in agents.AGENT_KINDS for name in names]
    skills = [DescribeAgent(name, ("translate",), trust="T2") for name in agents.DELEGATES]
    await hera.call_with_retries(
        "introduce", command_call(hera.actor, *registrations, *skills, key="introduce")
    )


def create_participants(world: World) -> list[Participant]:
    """Create all participants."""
    return [
        *agents.create_agents(world),
        Orchestrator(world, "olga"),
        Reviewer(world, "hera"),
        Coordinator(world, "cora"),
    ]


def program_script(world: World) -> Script:
    """Script of a started program: it prints AOF messages, and ends in one of several ways."""
    rng = world.rng_of("programs")

    async def script(of: Assignment, on_output: OnMessage) -> str:
        for _ in range(rng.randrange(3)):
            await asyncio.sleep(rng.uniform(0, 1_200))
            word = world.new_word()
            await _print_message(
                on_output, messages.aof_update(of.agent, of.aof_id, world.clock.now(), word)
            )
        await asyncio.sleep(rng.uniform(0, 1_200))
        if world.goes_wrong(rng, 5):
            world.done["programs that failed"] += 1
            return "exit code 1"
        if world.goes_wrong(rng, 2):
            world.done["programs that hung"] += 1
            await asyncio.sleep(rng.uniform(1, 12) * HOUR / 1_000)
        if rng.random() < 0.9:
            outcome = rng.choice(("done", "done", "done", "blocked", "partial"))
            at, word = world.clock.now(), world.new_word()
            await _print_message(
                on_output, messages.aof_report(of.agent, of.aof_id, at, word, outcome)
            )
        return ""

    return script


async def _print_message(on_output: OnMessage, message: messages.Message) -> None:
    try:
        await on_output(b"AOF/1 " + msgspec.json.encode(message))
    except HubDied:
        return  # the hub that read the output is dead
