"""One process of the hub, from its start until it is killed or stopped.

All of it is real except what is outside of the process: the clock, the ids, the disk, the programs
of agents, and the receiver of notifications.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from dragoman.bootstrap.dialects import HandoffPorts, build_dialects, trace_choices
from dragoman.config import Settings
from dragoman.core.actor import Actor
from dragoman.core.errors import DragomanError
from dragoman.engine.group_commit import Engine, QueuedRequest
from dragoman.engine.hub import Hub
from dragoman.engine.ports import Store
from dragoman.engine.request import Rejected
from dragoman.engine.router import Router
from dragoman.engine.store_facts import StoreFacts
from dragoman.engine.subscribe import CommitHints
from dragoman.notify.notification import Notification, NotificationBuilder
from dragoman.services.dispatch.agent_run import RunPolicy
from dragoman.services.dispatch.agent_slots import AgentSpec
from dragoman.services.dispatch.budget_enforcer import Budget
from dragoman.services.dispatch.dispatcher import Dispatcher, DispatcherPorts, DispatchPolicy
from dragoman.services.notifier import Notifier
from dragoman.services.workq import HubWorkq
from dragoman.system.clock import SequentialIds
from tests.hub_services import Disk, build_services
from tests.simulation.faulty_store import FaultRates, FaultyStore, HubDied
from tests.simulation.programs import Machine, Script, ScriptedRunner
from tests.simulation.virtual_time import VirtualClock

SECRET = b"a secret of the simulation"


class InlineEngine(Engine):
    """Engine whose writer has no thread of its own: a batch runs when it is handed in."""

    def _enqueue(self, loop_queue: Any, requests: list[QueuedRequest]) -> None:
        try:
            outcomes = self._run_batch([request for request, _ in requests])
        except HubDied as died:
            for _, future in requests:  # the callers that wait in this process are dead, too
                future.set_exception(died)
            return
        answers = [(future, one) for (_, future), one in zip(requests, outcomes, strict=True)]
        loop_queue.deliver(answers)


class NoUsage:
    """Usage store that keeps nothing: no agent has a budget."""

    def load(self) -> bytes:
        """Return no saved usage."""
        return b""

    def save(self, data: bytes) -> None:
        """Save nothing."""


class Listener(Struct, frozen=True):
    """Receiver of notifications that is unavailable now and then."""

    disk: Disk
    is_away: Callable[[], bool]
    name: str = "listener"

    def deliver(self, notification: Notification, now: int) -> str:
        """Store the notification, or fail."""
        del now
        if self.is_away():
            return "it does not answer"
        self.disk.delivered.append(notification)
        return ""


class Environment(Struct, frozen=True):
    """Environment that a process of the hub finds at its start."""

    clock: VirtualClock
    fault_rates: FaultRates
    rng: Random
    ids: SequentialIds
    disk: Disk
    machine: Machine
    script: Script
    programs: Sequence[str]
    """Names of agents that the dispatcher starts."""
    ttl_ms: int


class HubProcess:
    """Running hub."""

    def __init__(
        self, store: Store, environment: Environment, on_death: "Callable[[HubProcess], None]"
    ) -> None:
        """Start the hub; `on_death` is called when it is killed in the middle of something."""
        clock, rng = environment.clock, environment.rng

        def died() -> None:
            asyncio.get_running_loop().call_soon(on_death, self)

        self.store = FaultyStore(store, environment.fault_rates, rng, lambda: clock.passed, died)
        hints, faulty = CommitHints(), cast(Store, self.store)
        engine = InlineEngine(faulty, clock, SECRET, on_commit=hints.notify)
        self.hub = hub = Hub(engine, environment.ids)
        settings, disk = Settings(), environment.disk
        workq = HubWorkq(hub)
        traces = trace_choices(settings, hub.redaction.redactor, hub, lambda: "")
        known_dialects = build_dialects(
            settings,
            lambda: HandoffPorts(None, workq, hub.redaction.check_document),
            lambda: replace(traces, tails=disk.tails),
        )
        facts = StoreFacts(faulty, lambda _task, _ref: True, now=clock.now)
        self.router = Router(hub, known_dialects, facts)
        listener = Listener(
            disk, lambda: environment.fault_rates.unavailable > rng.randrange(1_000)
        )
        news = NotificationBuilder(faulty, settings.notify.statuses)
        notifier = Notifier(hub, disk, news, [listener], lambda: clock.passed / 1_000)
        self.services = build_services(disk, notifier, hub, self.router, settings)
        self.dispatcher = Dispatcher(
            hub,
            self._agents(environment),
            self._policy(settings, environment),
            self._outside(environment),
        )
        hints.subscribe(self.dispatcher.hint)
        self.dispatching = asyncio.ensure_future(self.dispatcher.run())

    @property
    def is_dead(self) -> bool:
        """True after the process was killed."""
        return self.store.is_dead

    def kill(self) -> None:
        """Kill the process: it cannot finish what it is doing."""
        self.store.is_dead = True
        self.dispatching.cancel()

    async def stop(self) -> None:
        """Stop the process like `dragoman up` that is asked to stop."""
        self.dispatcher.stop()
        await asyncio.wait((self.dispatching,))

    def tick(self, done: Counter[str]) -> bool:
        """Run every duty once; false if one met a store fault. Any other error is a defect."""
        is_healthy = True
        for service in self.services:
            try:
                done[f"service {service.name}"] += service.run_once(self.hub.clock.now())
            except DragomanError:
                is_healthy = False
        return is_healthy

    def _agents(self, environment: Environment) -> list[AgentSpec]:
        runner = ScriptedRunner(environment.machine, environment.script, lambda: self.is_dead)
        return [
            AgentSpec(
                name=name,
                runner=runner,
                queues=("", name),
                build_prompt=lambda task, _name: task.title,
                concurrency=2,
                budget=Budget(),
            )
            for name in environment.programs
        ]

    def _policy(self, settings: Settings, environment: Environment) -> DispatchPolicy:
        return DispatchPolicy(
            hub_name="sim",
            concurrency=4,
            ttl_ms=environment.ttl_ms,
            poll_ms=1_800_000,
            drain_ms=30_000,
            run_policy=RunPolicy(settings.retry, 5.0),
        )

    def _outside(self, environment: Environment) -> DispatcherPorts:
        return DispatcherPorts(
            submit_message=self._send_as,
            stop_orphans=environment.machine.sweep,
            forget_session=environment.machine.forget,
            usage=NoUsage(),
            new_id=environment.ids,
            warn=lambda _: None,
        )

    async def _send_as(self, actor: Actor, message: bytes) -> str:
        answer = await self.router.send_async(message, speaker=actor)
        return answer.detail if isinstance(answer, Rejected) else ""
