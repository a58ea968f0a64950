"""One simulation from its seed to its end: a stormy time, then a calm one in which all settles."""

from collections import Counter
from pathlib import Path
from random import Random

from msgspec import Struct

from dragoman.core.states.task import Task
from dragoman.engine.ports import Store
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from tests.simulation import people
from tests.simulation.agents import PROGRAMS
from tests.simulation.auditor import must
from tests.simulation.virtual_time import run
from tests.simulation.world import DAY, HOUR, MINUTE, Profile, Storage, World

_CALM_DAYS = 2.0
_AT_REST = frozenset(("review", "done", "cancelled", "blocked", "deadletter"))
"""Where a task is over, or waits for a person."""


class Told(Struct, frozen=True):
    """How a simulation went."""

    seed: int
    days: float
    entries: int
    root: str
    """Of the tree over all entries: the same for the same seed."""
    done: dict[str, int]


class InMemory:
    """One store for all lives of the hub."""

    def __init__(self) -> None:
        self._store = MemoryStore("simulation")

    def open(self) -> Store:
        """The store."""
        return self._store

    def crash(self, store: Store) -> None:
        """What is in memory stays there, for once."""


class OnSqlite:
    """A file, which each life of the hub opens anew."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> Store:
        """The file."""
        return SqliteStore.open(self._path, lambda: "simulation")

    def crash(self, store: Store) -> None:
        """The process has let go of it."""
        store.close()


def profile_of(seed: int) -> Profile:
    """What kind of time this seed shows: a busy day or slow weeks, quiet or wild."""
    chance = Random(f"{seed}:profile")
    is_busy = seed % 4 != 1
    return Profile(
        days=chance.uniform(0.1, 0.25) if is_busy else chance.uniform(30, 40),
        pace_ms=chance.randrange(10, 30) * MINUTE if is_busy else chance.randrange(40, 80) * HOUR,
        tick_ms=chance.choice((1, 5) if is_busy else (40, 60)) * MINUTE,
        ttl_ms=chance.choice((5, 10, 20)) * MINUTE,
        trouble=chance.choice((0, 5, 20, 60)),
        slips=chance.choice((0.0, 2.0, 5.0, 10.0)),
        hub_dies_ms=round(chance.choice((0.1, 0.3, 1.0)) * DAY * (0.5 if is_busy else 3)),
    )


def simulate(seed: int, storage: Storage | None = None, profile: Profile | None = None) -> Told:
    """The whole of it; a failure names the seed and the last steps."""
    chosen = profile or profile_of(seed)
    world = World(seed, chosen, storage or InMemory(), PROGRAMS, people.script_of)
    try:
        return run(world.clock, _tell(world))
    except Exception as error:
        steps = "\n  ".join(world.steps)
        raise AssertionError(
            f"seed {seed} fails: {type(error).__name__}: {error}\n"
            f"run it again: uv run python -m tests.simulation {seed}\n"
            f"{chosen}\nthe last steps:\n  {steps}"
        ) from error


async def _tell(world: World) -> Told:
    world.start()
    await people.introduce(world)
    world.storm()
    for one in people.everybody(world):
        world.begin(one.live())
    world.begin(world.turn())
    world.begin(world.meddle())
    await world.pass_days(world.profile.days)
    world.calm_down()
    days = await _settle(world)
    root = world.auditor.at_the_end(world.disk.checkpoints)
    _nothing_is_missing(world)
    life = world.life
    assert life is not None
    life.kill()
    return Told(world.seed, days, world.auditor.read, root.hex(), dict(world.done))


async def _settle(world: World) -> float:
    """Until everything is at rest, or waits for a person; how many days have passed by then."""
    last = world.clock.passed + 8 * world.profile.pace_ms + round(_CALM_DAYS * DAY)
    while stuck := _stuck(world):
        must(
            world.clock.passed < last,
            "these do not come to rest, although all are alive: "
            + ", ".join(f"{t.id} {t.status} for {t.reserved_for or 'anyone'}" for t in stuck[:8]),
        )
        await world.pass_days(0.1)
    return world.clock.passed / DAY


def _stuck(world: World) -> list[Task]:
    tasks = [task for task, _ in world.auditor.tasks()]
    resting = {task.id for task in tasks if task.status in _AT_REST}
    return [task for task in tasks if task.id not in resting and not _waits(task, resting)]


def _waits(task: Task, resting: set[str]) -> bool:
    """Whether it waits for others, of which all that still counts waits for a person."""
    return bool(task.open_blockers) and all(one in resting for one in task.open_blockers)


def _nothing_is_missing(world: World) -> None:
    """Handoffs that were promised, and notices of every move."""
    known = {record.id for record in world.auditor.store.handoffs("", 100_000)}
    missing = [id for id in world.handed_over if id not in known]
    must(not missing, f"these handoffs were acknowledged, and are gone: {missing[:3]}")
    told = [int(notice.id.rpartition(":")[2]) for notice in world.disk.delivered]
    firsts = list(dict.fromkeys(told))
    must(firsts == sorted(firsts), "notices came out of order")


def summed(stories: list[Told]) -> dict[str, int]:
    """What has happened in all of them."""
    total = Counter[str]()
    for story in stories:
        total.update(story.done)
    return dict(total)
