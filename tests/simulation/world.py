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
from tests.simulation.faulty_store import HubDied, Weather
from tests.simulation.life import Life, Surroundings
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
    trouble: int
    """How many of a thousand transactions go wrong."""
    slips: float
    """How many of a hundred messages get lost, doubled or late, and how many agents fall silent."""
    hub_dies_ms: int
    """How long a hub lives on average."""


class Storage(Protocol):
    """What is kept while hubs come and go."""

    def open(self) -> Store:
        """A store for one life of the hub."""
        ...

    def crash(self, store: Store) -> None:
        """Its process has ended without a word."""
        ...


class Lost:
    """In the place of an answer: none came. Whether it was done, nobody knows."""


LOST = Lost()
Answer = Any
Call = Callable[[Life], Any]


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
        self.weather = Weather()
        self.chance = Random(f"{seed}:world")
        self.disk = Disk(self.clock.now)
        self.machine = Machine()
        self.done = Counter[str]()
        """What has happened how often."""
        self.steps: deque[str] = deque(maxlen=_STEPS_SHOWN)
        self.handed_over: list[str] = []
        """Handoffs whose senders were told that they are offered."""
        self._calmed = asyncio.Event()
        self._storage = storage
        self._around = Surroundings(
            clock=self.clock,
            weather=self.weather,
            chance=Random(f"{seed}:store"),
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
        self.life: Life | None = None
        self._broken: BaseException | None = None

    # What everybody may use

    def word(self) -> str:
        """A word that nobody has said before."""
        return f"w{next(self._words)}x"

    def number(self) -> int:
        """A number that nobody has had before."""
        return next(self._words)

    def chances(self, name: str) -> Random:
        """The luck of one who takes part."""
        return Random(f"{self.seed}:{name}")

    @property
    def is_calm(self) -> bool:
        """Whether everybody behaves, and nothing fails any more."""
        return self._calmed.is_set()

    async def rest(self, chance: Random, share: float = 1.0) -> None:
        """Somebody rests before the next thing to do; not for long when all is to be settled."""
        seconds = chance.expovariate(1_000 / self.profile.pace_ms) * share
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._calmed.wait()
        if self.is_calm:
            await asyncio.sleep(chance.expovariate(1_000 / min(self.profile.pace_ms, HOUR // 2)))

    def slip(self, chance: Random, share: float = 1.0) -> bool:
        """Whether something goes wrong for somebody."""
        return not self.is_calm and chance.random() * 100 < self.profile.slips * share

    def tell(self, step: str) -> None:
        """Remember it for whoever looks for the cause of a failure."""
        self.steps.append(f"{self.clock.passed / 1_000:.3f} {step}")

    # The line

    async def ask(
        self, who: str, what: str, call: Call, *, fence: tuple[str, int] | None = None
    ) -> Answer:
        """What the hub answers, or that no answer came; it may come to it twice, and late."""
        chance = self.chance
        await asyncio.sleep(chance.randrange(200) / 1_000)
        if self.slip(chance):
            self.done["lost requests"] += 1
            return LOST
        if self.slip(chance):
            self.done["late repeats"] += 1
            late = chance.randrange(3 * self.profile.ttl_ms) / 1_000
            self.begin(self._again(who, what, call, fence, late))
        answer = self._answer(who, what, call, fence)
        if self.slip(chance):
            self.done["lost answers"] += 1
            return LOST
        return answer

    async def _again(
        self, who: str, what: str, call: Call, fence: tuple[str, int] | None, seconds: float
    ) -> None:
        await asyncio.sleep(seconds)
        self._answer(who, f"{what} (again)", call, fence)

    def _answer(self, who: str, what: str, call: Call, fence: tuple[str, int] | None) -> Answer:
        life = self.life
        if life is None or life.is_dead:
            return LOST
        before = None if fence is None else self.auditor.held(fence[0])
        now = self.clock.now()
        try:
            answer = call(life)
        except StoreError as error:
            self.tell(f"{who} {what}: {type(error).__name__}")
            return LOST
        except HubDied:
            self.tell(f"{who} {what}: the hub died")
            return LOST
        self.tell(f"{who} {what}: {_brief(answer)}")
        self.done[f"{what.split(maxsplit=1)[0]} {'yes' if is_yes(answer) else 'no'}"] += 1
        if fence is not None and is_yes(answer) and not answer.repeated:
            self.auditor.wrote(before, *fence, now)
        self.auditor.follow()
        return answer

    # The hub

    def start(self) -> None:
        """A hub begins to live."""
        self.life = Life(self._store, self._around, self._died)
        self.tell("the hub starts")

    async def turn(self) -> None:
        """The clockwork: the duties run again and again, while there is a hub."""
        while True:
            await asyncio.sleep(self.profile.tick_ms / 1_000)
            self.tick()

    def tick(self) -> None:
        """The duties run once, and what they leave is looked at."""
        life = self.life
        if life is None or life.is_dead:
            return
        now = self.clock.now()
        self.done["ticks"] += 1
        try:
            is_well = life.tick(self.done)
        except HubDied:
            self.tell("the hub died in a duty")
            return
        self.auditor.follow()
        if is_well:
            self.done["good ticks"] += 1
            self.auditor.after_recovery(now)

    async def meddle(self) -> None:
        """Hubs are killed and stopped, and stores go away for a while."""
        chance = Random(f"{self.seed}:fate")
        while not self.is_calm:
            await asyncio.sleep(chance.expovariate(1_000 / self.profile.hub_dies_ms))
            life = self.life
            if self.is_calm or life is None or life.is_dead:
                continue
            what = chance.randrange(4)
            if what == 0:
                away = chance.randrange(30 * MINUTE)
                self.done["outages"] += 1
                self.tell(f"the store goes away for {away} ms")
                self.weather.away_until = self.clock.passed + away
            elif what == 1:
                self.done["stops"] += 1
                self.tell("the hub is stopped")
                await life.stop()
                self._end(life)
                self.begin(self._restart(chance.randrange(10 * MINUTE) / 1_000))
            else:
                self.tell("the hub is killed")
                self._died(life)

    def _died(self, life: Life) -> None:
        """A hub was killed; it is started again, sooner or later."""
        life.kill()
        if self.life is not life:
            return
        self.tell("the hub is dead")
        self.done["deaths"] += 1
        self._end(life)
        self.begin(self._restart(self.chance.randrange(20 * MINUTE) / 1_000))

    def _end(self, life: Life) -> None:
        life.kill()
        if self.life is life:
            self.life = None
            self._storage.crash(self._store)
            self._store = self.auditor.store = self._storage.open()

    async def _restart(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        if self.life is None:
            self.start()

    # The whole story

    def begin(self, story: Awaitable[Any]) -> None:
        """Let something go on beside everything else; what it finds broken ends the simulation."""
        task = asyncio.ensure_future(story)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Future[Any]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._broken = self._broken or error

    async def pass_days(self, days: float) -> None:
        """Let time go by, as long as nothing is broken."""
        until = self.clock.passed + round(days * DAY)
        while self.clock.passed < until:
            await asyncio.sleep(min(600, (until - self.clock.passed) / 1_000))
            self.check()

    def check(self) -> None:
        """Whatever was found broken ends the simulation."""
        if self._broken is not None:
            raise self._broken

    def storm(self) -> None:
        """Things begin to go wrong."""
        trouble = self.profile.trouble
        self.weather.conflict, self.weather.away = trouble, trouble
        self.weather.lost, self.weather.killed = trouble, max(1, trouble // 4) if trouble else 0

    def calm_down(self) -> None:
        """From now on nothing fails, and everybody does what they should."""
        self._calmed.set()
        self.weather.calm_down()
        if self.life is None:
            self.start()


def is_yes(answer: Answer) -> bool:
    """Whether an answer came, and is a yes."""
    return isinstance(answer, Accepted | Taken)


def do(actor: Actor, *commands: AnyCommand, key: str = "") -> Call:
    """A call that asks the hub for commands."""
    return lambda life: life.hub.engine.handle_now(life.hub.request(actor, *commands, key=key))


def send(said: Any, speaker: Actor) -> Call:
    """A call that sends a message."""
    return lambda life: life.interpreter.send(said, speaker=speaker)


def operate(operation: str, arguments: Any, actor: Actor, key: str = "") -> Call:
    """A call of an operation of a dialect."""
    return lambda life: life.interpreter.call(operation, arguments, actor, key=key)


def _brief(answer: Answer) -> str:
    return "yes" if is_yes(answer) else f"{getattr(answer, 'code', answer)}"
