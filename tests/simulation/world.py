"""The world of a simulation: one hub that comes and goes, a bad line to it, and those who use it.

Everything follows from the seed: the same one gives the same story, entry by entry.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import count
from random import Random
from typing import Any, Protocol

from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import StoreError
from dragoman.engine.plan import Taken
from dragoman.engine.ports import Store
from dragoman.engine.request import Accepted
from dragoman.system.ids import CountingIds
from tests.hub_services import Disk
from tests.simulation.auditor import Auditor
from tests.simulation.faulty_store import FaultRates, HubDied
from tests.simulation.hub_process import Environment, HubProcess
from tests.simulation.programs import Machine, Script
from tests.simulation.virtual_time import VirtualClock

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
_STEPS_SHOWN = 40


class Profile(Struct, frozen=True):
    """What kind of time a simulation shows."""

    days: float
    pace_ms: int
    """How long somebody rests between two things to do."""
    tick_ms: int
    ttl_ms: int
    fault_rate: int
    """How many of a thousand transactions go wrong."""
    slip_percent: float
    """How many of a hundred messages get lost, doubled or late, and how many agents fall silent."""
    hub_lifetime_ms: int
    """How long a hub lives on average."""


class Storage(Protocol):
    """What is kept while hubs come and go."""

    def open(self) -> Store:
        """A store for one life of the hub."""
        ...

    def crash(self, store: Store) -> None:
        """Its process has ended without a word."""
        ...


class NoAnswer:
    """In the place of an answer: none came. Whether it was done, nobody knows."""


NO_ANSWER = NoAnswer()
Answer = Any
Call = Callable[[HubProcess], Any]


class World:
    """One seed at work."""

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
        """What has happened how often."""
        self.steps: deque[str] = deque(maxlen=_STEPS_SHOWN)
        self.proposed_handoffs: list[str] = []
        """Handoffs whose senders were told that they are offered."""
        self._is_calmed = asyncio.Event()
        self._storage = storage
        self._environment = Environment(
            clock=self.clock,
            fault_rates=self.fault_rates,
            rng=Random(f"{seed}:store"),
            ids=CountingIds(),
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

    # What everybody may use

    def new_word(self) -> str:
        """A word that nobody has said before."""
        return f"w{next(self._words)}x"

    def new_number(self) -> int:
        """A number that nobody has had before."""
        return next(self._words)

    def rng_of(self, name: str) -> Random:
        """The luck of one who takes part."""
        return Random(f"{self.seed}:{name}")

    @property
    def is_calm(self) -> bool:
        """Whether everybody behaves, and nothing fails any more."""
        return self._is_calmed.is_set()

    async def pause(self, rng: Random, share: float = 1.0) -> None:
        """Somebody rests before the next thing to do; not for long when all is to be settled."""
        seconds = rng.expovariate(1_000 / self.profile.pace_ms) * share
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._is_calmed.wait()
        if self.is_calm:
            await asyncio.sleep(rng.expovariate(1_000 / min(self.profile.pace_ms, HOUR // 2)))

    def goes_wrong(self, rng: Random, share: float = 1.0) -> bool:
        """Whether something goes wrong for somebody."""
        return not self.is_calm and rng.random() * 100 < self.profile.slip_percent * share

    def log_step(self, step: str) -> None:
        """Remember it for whoever looks for the cause of a failure."""
        self.steps.append(f"{self.clock.passed / 1_000:.3f} {step}")

    # The line

    async def request(
        self, caller: str, label: str, call: Call, *, fence: tuple[str, int] | None = None
    ) -> Answer:
        """What the hub answers, or that no answer came; it may come to it twice, and late."""
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

    # The hub

    def start(self) -> None:
        """A hub begins to live."""
        self.process = HubProcess(self._store, self._environment, self._died)
        self.log_step("the hub starts")

    async def run_ticks(self) -> None:
        """The clockwork: the duties run again and again, while there is a hub."""
        while True:
            await asyncio.sleep(self.profile.tick_ms / 1_000)
            self.tick()

    def tick(self) -> None:
        """The duties run once, and what they leave is looked at."""
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
        """Hubs are killed and stopped, and stores go away for a while."""
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
        """A hub was killed; it is started again, sooner or later."""
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

    # The whole story

    def spawn(self, work: Awaitable[Any]) -> None:
        """Let something go on beside everything else; what it finds broken ends the simulation."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Future[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._error = self._error or error

    async def pass_days(self, days: float) -> None:
        """Let time go by, as long as nothing is broken."""
        until = self.clock.passed + round(days * DAY)
        while self.clock.passed < until:
            await asyncio.sleep(min(600, (until - self.clock.passed) / 1_000))
            self.check()

    def check(self) -> None:
        """Whatever was found broken ends the simulation."""
        if self._error is not None:
            raise self._error

    def start_failures(self) -> None:
        """Things begin to go wrong."""
        rate = self.profile.fault_rate
        self.fault_rates.conflict, self.fault_rates.unavailable = rate, rate
        self.fault_rates.commit_lost, self.fault_rates.killed = (
            rate,
            max(1, rate // 4) if rate else 0,
        )

    def stop_failures(self) -> None:
        """From now on nothing fails, and everybody does what they should."""
        self._is_calmed.set()
        self.fault_rates.reset()
        if self.process is None:
            self.start()


def is_accepted(answer: Answer) -> bool:
    """Whether an answer came, and is a yes."""
    return isinstance(answer, Accepted | Taken)


def command_call(actor: Actor, *commands: AnyCommand, key: str = "") -> Call:
    """A call that asks the hub for commands."""
    return lambda process: process.hub.engine.handle_now(
        process.hub.request(actor, *commands, key=key)
    )


def message_call(message: Any, speaker: Actor) -> Call:
    """A call that sends a message."""
    return lambda process: process.interpreter.send(message, speaker=speaker)


def operation_call(operation: str, arguments: Any, actor: Actor, key: str = "") -> Call:
    """A call of an operation of a dialect."""
    return lambda process: process.interpreter.call(operation, arguments, actor, key=key)


def _brief(answer: Answer) -> str:
    return "yes" if is_accepted(answer) else f"{getattr(answer, 'code', answer)}"
