"""Simulation of one seed: a phase with faults, then one without, in which all work must end."""

from collections import Counter
from pathlib import Path
from random import Random

from msgspec import Struct

from dragoman.core.task_state import Task
from dragoman.engine.ports import Store
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore
from tests.simulation import people
from tests.simulation.agents import PROGRAMS
from tests.simulation.auditor import check
from tests.simulation.virtual_time import run
from tests.simulation.world import DAY, HOUR, MINUTE, Profile, Storage, World

_CALM_DAYS = 2.0
_AT_REST = frozenset(("review", "done", "cancelled", "blocked", "deadletter"))
"""Statuses in which a task is over or waits for a human."""


class SimulationResult(Struct, frozen=True):
    """Result of a simulation."""

    seed: int
    days: float
    entries: int
    root: str
    """Root of the tree over all entries: the same for the same seed."""
    done: dict[str, int]


class MemoryStorage:
    """Memory store, shared by all processes of the hub."""

    def __init__(self) -> None:
        self._store = MemoryStore("simulation")

    def open(self) -> Store:
        """Return the shared store."""
        return self._store

    def crash(self, store: Store) -> None:
        """Keep everything: memory survives here."""


class SqliteStorage:
    """SQLite file, opened anew by each process of the hub."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def open(self) -> Store:
        return SqliteStore.open(self._path, lambda: "simulation")

    def crash(self, store: Store) -> None:
        store.close()


def draw_profile(seed: int) -> Profile:
    """Draw the profile of a seed: a busy day or slow weeks, with few or many faults."""
    rng = Random(f"{seed}:profile")
    is_busy = seed % 4 != 1
    return Profile(
        days=rng.uniform(0.1, 0.25) if is_busy else rng.uniform(30, 40),
        pace_ms=rng.randrange(10, 30) * MINUTE if is_busy else rng.randrange(40, 80) * HOUR,
        tick_ms=rng.choice((1, 5) if is_busy else (40, 60)) * MINUTE,
        ttl_ms=rng.choice((5, 10, 20)) * MINUTE,
        fault_rate=rng.choice((0, 5, 20, 60)),
        slip_percent=rng.choice((0.0, 2.0, 5.0, 10.0)),
        hub_lifetime_ms=round(rng.choice((0.1, 0.3, 1.0)) * DAY * (0.5 if is_busy else 3)),
    )


def simulate(
    seed: int, storage: Storage | None = None, profile: Profile | None = None
) -> SimulationResult:
    """Simulate a seed; a failure names the seed and the last steps."""
    chosen = profile or draw_profile(seed)
    world = World(seed, chosen, storage or MemoryStorage(), PROGRAMS, people.program_script)
    try:
        return run(world.clock, _run_world(world))
    except Exception as error:
        steps = "\n  ".join(world.steps)
        raise AssertionError(
            f"seed {seed} fails: {type(error).__name__}: {error}\n"
            f"run it again: uv run python -m tests.simulation {seed}\n"
            f"{chosen}\nthe last steps:\n  {steps}"
        ) from error


async def _run_world(world: World) -> SimulationResult:
    world.start()
    await people.register_all(world)
    world.start_failures()
    for one in people.create_participants(world):
        world.spawn(one.run())
    world.spawn(world.run_ticks())
    world.spawn(world.inject_failures())
    await world.pass_days(world.profile.days)
    world.stop_failures()
    days = await _wait_until_settled(world)
    root = world.auditor.check_at_end(world.disk.checkpoints)
    _check_nothing_missing(world)
    process = world.process
    assert process is not None
    process.kill()
    return SimulationResult(
        world.seed, days, world.auditor.entries_read, root.hex(), dict(world.done)
    )


async def _wait_until_settled(world: World) -> float:
    """Wait until every task is at rest; return the days that have passed by then."""
    last = world.clock.passed + 8 * world.profile.pace_ms + round(_CALM_DAYS * DAY)
    while unsettled := _unsettled_tasks(world):
        check(
            world.clock.passed < last,
            "these do not come to rest, although all are alive: "
            + ", ".join(
                f"{t.id} {t.status} for {t.reserved_for or 'anyone'}" for t in unsettled[:8]
            ),
        )
        await world.pass_days(0.1)
    return world.clock.passed / DAY


def _unsettled_tasks(world: World) -> list[Task]:
    tasks = [task for task, _ in world.auditor.tasks()]
    at_rest = {task.id for task in tasks if task.status in _AT_REST}
    return [task for task in tasks if task.id not in at_rest and not _only_waits(task, at_rest)]


def _only_waits(task: Task, at_rest: set[str]) -> bool:
    """True if all open blockers of the task are at rest."""
    return bool(task.open_blockers) and all(one in at_rest for one in task.open_blockers)


def _check_nothing_missing(world: World) -> None:
    """Check that no promised handoff is missing and notifications came in order."""
    known = {record.id for record in world.auditor.store.handoffs("", 100_000)}
    missing = [id for id in world.proposed_handoffs if id not in known]
    check(not missing, f"these handoffs were acknowledged, and are gone: {missing[:3]}")
    positions = [int(notification.id.rpartition(":")[2]) for notification in world.disk.delivered]
    firsts = list(dict.fromkeys(positions))
    check(firsts == sorted(firsts), "notifications came out of order")


def total_counts(results: list[SimulationResult]) -> dict[str, int]:
    """Sum the event counts of several results."""
    total = Counter[str]()
    for result in results:
        total.update(result.done)
    return dict(total)
