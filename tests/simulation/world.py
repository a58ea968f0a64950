"""World of a simulation: one hub that is killed and restarted, a lossy line, and its participants.

Everything follows from the seed: the same seed gives the same ledger, entry by entry.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import StoreError
from dragoman.engine.ports import Store
from dragoman.engine.request import Accepted, Committed
from dragoman.system.clock import SequentialIds
from tests.hub_services import Disk
from tests.simulation.auditor import Auditor
from tests.simulation.faulty_store import FaultRates, HubDied
from tests.simulation.hub_process import Environment, HubProcess
from tests.simulation.programs import Machine, Script
from tests.simulation.virtual_time import VirtualClock

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
_STEPS_SHOWN = 40


class Profile(Struct, frozen=True):
    """Parameters of a simulation."""

    days: float
    pace_ms: int
    """Mean pause of a participant between two pieces of work."""
    tick_ms: int
    ttl_ms: int
    fault_rate: int
    """Faulty transactions per thousand."""
    slip_percent: float
    """Percentage of messages that are lost, doubled or late, and of agents that fall silent."""
    hub_lifetime_ms: int
    """Mean lifetime of a hub process."""


class Storage(Protocol):
    """Storage that outlives hub processes."""

    def open(self) -> Store:
        """Open the store for one process of the hub."""
        ...

    def crash(self, store: Store) -> None:
        """Release the store of a process that was killed."""
        ...


class NoAnswer:
    """Missing answer: the caller cannot know whether the request was carried out."""


NO_ANSWER = NoAnswer()
Answer = Any
Call = Callable[[HubProcess], Any]


class World:
    """Simulation of one seed."""

    def __init__(
        self,
        seed: int,
        profile: Profile,
        storage: Storage,
        programs: Sequence[str],
        script: "Callable[[World], Script]",
    ) -> None:
        self.seed = seed
        self.profile = profile
        self.clock = VirtualClock()
        self.fault_rates = FaultRates()
        self.rng = Random(f"{seed}:world")
        self.disk = Disk(self.clock.now)
        self.machine = Machine()
        self.done = Counter[str]()
        """Kind of event -> how often it happened."""
        self.steps: deque[str] = deque(maxlen=_STEPS_SHOWN)
        self.proposed_handoffs: list[str] = []
        """Handoffs whose proposal was acknowledged."""
        self._is_calmed = asyncio.Event()
        self._storage = storage
        self._environment = Environment(
            clock=self.clock,
            fault_rates=self.fault_rates,
            rng=Random(f"{seed}:store"),
            ids=SequentialIds(),
            disk=self.disk,
            machine=self.machine,
            script=script(self),
            programs=programs,
            ttl_ms=profile.ttl_ms,
        )
        self._words = count(1)
        self._store = storage.open()
        self.auditor = Auditor(self._store)
        self.process: HubProcess | None = None
        self._error: BaseException | None = None

    # For participants

    def new_word(self) -> str:
        """Return an unused word."""
        return f"w{next(self._words)}x"

    def new_number(self) -> int:
        """Return an unused number."""
        return next(self._words)

    def rng_of(self, name: str) -> Random:
        """Random generator of a participant."""
        return Random(f"{self.seed}:{name}")

    @property
    def is_calm(self) -> bool:
        """True once no faults are injected and all participants behave."""
        return self._is_calmed.is_set()

    async def pause(self, rng: Random, share: float = 1.0) -> None:
        """Pause before the next piece of work; only briefly in the calm phase."""
        seconds = rng.expovariate(1_000 / self.profile.pace_ms) * share
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_calmed.wait()
        if self.is_calm:
            await asyncio.sleep(rng.expovariate(1_000 / min(self.profile.pace_ms, HOUR // 2)))

    def goes_wrong(self, rng: Random, share: float = 1.0) -> bool:
        """Draw whether something goes wrong."""
        return not self.is_calm and rng.random() * 100 < self.profile.slip_percent * share

    def log_step(self, step: str) -> None:
        """Log a step, for the report of a failure."""
        self.steps.append(f"{self.clock.passed / 1_000:.3f} {step}")

    # Requests

    async def request(
        self, caller: str, label: str, call: Call, *, fence: tuple[str, int] | None = None
    ) -> Answer:
        """Send a request; it may be lost, repeated or late, and so may its answer."""
        rng = self.rng
        await asyncio.sleep(rng.randrange(200) / 1_000)
        if self.goes_wrong(rng):
            self.done["lost requests"] += 1
            return NO_ANSWER
        if self.goes_wrong(rng):
            self.done["late repeats"] += 1
            late = rng.randrange(3 * self.profile.ttl_ms) / 1_000
            self.spawn(self._repeat_later(caller, label, call, fence, late))
        answer = self._respond(caller, label, call, fence)
        if self.goes_wrong(rng):
            self.done["lost answers"] += 1
            return NO_ANSWER
        return answer

    async def _repeat_later(
        self, caller: str, label: str, call: Call, fence: tuple[str, int] | None, seconds: float
    ) -> None:
        await asyncio.sleep(seconds)
        self._respond(caller, f"{label} (again)", call, fence)

    def _respond(
        self, caller: str, label: str, call: Call, fence: tuple[str, int] | None
    ) -> Answer:
        process = self.process
        if process is None or process.is_dead:
            return NO_ANSWER
        before = None if fence is None else self.auditor.held(fence[0])
        now = self.clock.now()
        try:
            answer = call(process)
        except StoreError as error:
            self.log_step(f"{caller} {label}: {type(error).__name__}")
            return NO_ANSWER
        except HubDied:
            self.log_step(f"{caller} {label}: the hub died")
            return NO_ANSWER
        self.log_step(f"{caller} {label}: {_brief(answer)}")
        self.done[f"{label.split(maxsplit=1)[0]} {'yes' if is_accepted(answer) else 'no'}"] += 1
        if fence is not None and is_accepted(answer) and not answer.repeated:
            self.auditor.check_fenced_write(before, *fence, now)
        self.auditor.read_new_entries()
        return answer

    # Hub process

    def start(self) -> None:
        """Start a hub process."""
        self.process = HubProcess(self._store, self._environment, self._died)
        self.log_step("the hub starts")

    async def run_ticks(self) -> None:
        """Run the duties again and again, while there is a hub."""
        while True:
            await asyncio.sleep(self.profile.tick_ms / 1_000)
            self.tick()

    def tick(self) -> None:
        """Run the duties once, and check the state after them."""
        process = self.process
        if process is None or process.is_dead:
            return
        now = self.clock.now()
        self.done["ticks"] += 1
        try:
            is_healthy = process.tick(self.done)
        except HubDied:
            self.log_step("the hub died in a duty")
            return
        self.auditor.read_new_entries()
        if is_healthy:
            self.done["good ticks"] += 1
            self.auditor.check_after_recovery(now)

    async def inject_failures(self) -> None:
        """Kill and stop hub processes, and make the store unavailable for a while."""
        rng = Random(f"{self.seed}:fate")
        while not self.is_calm:
            await asyncio.sleep(rng.expovariate(1_000 / self.profile.hub_lifetime_ms))
            process = self.process
            if self.is_calm or process is None or process.is_dead:
                continue
            drawn = rng.randrange(4)
            if drawn == 0:
                outage_ms = rng.randrange(30 * MINUTE)
                self.done["outages"] += 1
                self.log_step(f"the store goes away for {outage_ms} ms")
                self.fault_rates.unavailable_until = self.clock.passed + outage_ms
            elif drawn == 1:
                self.done["stops"] += 1
                self.log_step("the hub is stopped")
                await process.stop()
                self._end(process)
                self.spawn(self._restart(rng.randrange(10 * MINUTE) / 1_000))
            else:
                self.log_step("the hub is killed")
                self._died(process)

    def _died(self, process: HubProcess) -> None:
        """Restart the hub some time after it was killed."""
        process.kill()
        if self.process is not process:
            return
        self.log_step("the hub is dead")
        self.done["deaths"] += 1
        self._end(process)
        self.spawn(self._restart(self.rng.randrange(20 * MINUTE) / 1_000))

    def _end(self, process: HubProcess) -> None:
        process.kill()
        if self.process is process:
            self.process = None
            self._storage.crash(self._store)
            self._store = self.auditor.store = self._storage.open()

    async def _restart(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self.process is None:
            self.start()

    # Background tasks

    def spawn(self, work: Awaitable[Any]) -> None:
        """Run a task in the background; its failure ends the simulation."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Future[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error

    async def pass_days(self, days: float) -> None:
        """Let time pass, and stop at the first failure."""
        until = self.clock.passed + round(days * DAY)
        while self.clock.passed < until:
            await asyncio.sleep(min(600, (until - self.clock.passed) / 1_000))
            self.check()

    def check(self) -> None:
        """Raise the first failure of a background task."""
        if self._error is not None:
            raise self._error

    def start_failures(self) -> None:
        """Start to inject faults."""
        rate = self.profile.fault_rate
        self.fault_rates.conflict, self.fault_rates.unavailable = rate, rate
        self.fault_rates.commit_lost, self.fault_rates.killed = (
            rate,
            max(1, rate // 4) if rate else 0,
        )

    def stop_failures(self) -> None:
        """Inject no faults any more, and let all participants behave."""
        self._is_calmed.set()
        self.fault_rates.reset()
        if self.process is None:
            self.start()


def is_accepted(answer: Answer) -> bool:
    """True for an answer that is an acceptance."""
    return isinstance(answer, Committed | Accepted)


def command_call(actor: Actor, *commands: Command, key: str = "") -> Call:
    """Call that submits commands."""
    return lambda process: process.hub.engine.handle_now(
        process.hub.make_request(actor, *commands, key=key)
    )


def message_call(message: Any, speaker: Actor) -> Call:
    """Call that sends a message."""
    return lambda process: process.router.send(message, speaker=speaker)


def operation_call(operation: str, arguments: Any, actor: Actor, key: str = "") -> Call:
    """Call of an operation of a dialect."""
    return lambda process: process.router.call(operation, arguments, actor, key=key)


def _brief(answer: Answer) -> str:
    return "yes" if is_accepted(answer) else f"{getattr(answer, 'code', answer)}"
