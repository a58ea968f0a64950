"""Reading waves and reservations: how far a wave is, what it waits for, who has which files."""

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.events import TaskTransitioned
from dragoman.core.ids import RESERVATIONS, task_stream
from dragoman.core.states.reservations import FindTask, Reservation, Reservations
from dragoman.core.states.task import Task
from dragoman.core.states.wave import GIVEN_UP, OPEN_WAVES, Plan, Wave, plan, tasks_of
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.reads.ask import decode, find, find_task, history, state_of

_PAGE = 100
NEWEST = 2**53 - 1
"""After every position."""


class WaveNow(Struct, frozen=True):
    """A wave at one moment, with what its resource needs."""

    wave: Wave
    plan: Plan
    find: FindTask
    stuck: Mapping[str, str] = {}
    """Task that is stuck -> the reason."""


class Reserved(Struct, frozen=True):
    """The reservations at one moment, and a lookup for who works on which task."""

    living: tuple[Reservation, ...]
    find: FindTask


def find_wave(store: Store, id: str) -> Wave | Refusal:
    """The wave with this id."""
    return find(store, id, Wave)


def open_waves(store: Store) -> Iterator[str]:
    """The id of every wave that is not complete, oldest first."""
    after = 0
    while listed := store.listed(ListQuery(OPEN_WAVES, after, limit=_PAGE)):
        yield from (place.row.name.partition(":")[2] for place in listed)
        after = listed[-1].position


def newest_waves(store: Store, limit: int) -> list[Wave]:
    """The last waves that were started, newest first."""
    listed = store.listed(ListQuery("waves", before=NEWEST, limit=limit))
    states = (state_of(store, place.row) for place in listed)
    return [state for state in states if isinstance(state, Wave)]


def reserved_now(store: Store, now: int) -> Reserved:
    """The active reservations at this time."""
    find = task_finder(store)
    row = store.stream(RESERVATIONS)
    state = None if row is None else state_of(store, row)
    living = state.living(find, now) if isinstance(state, Reservations) else ()
    return Reserved(living, find)


def look_at_wave(store: Store, wave: Wave, now: int) -> WaveNow:
    """The status of a wave: its next steps, and what its beads wait for."""
    reserved = reserved_now(store, now)
    is_over = wave.ended_at is not None
    next_steps = Plan() if is_over else plan(wave, reserved.living, reserved.find, now)
    tasks = tasks_of(wave, reserved.find)
    stuck = {task.id: _why(store, task) for task in tasks if task.status in GIVEN_UP}
    return WaveNow(wave, next_steps, reserved.find, stuck)


def _why(store: Store, task: Task) -> str:
    """The reason why a task is stuck: that of its last transition, and the blockers of its last
    report."""
    reason = ""
    for event in map(decode, history(store, task_stream(task.id))):
        if isinstance(event, TaskTransitioned):
            reason = event.reason
    reported = task.reported
    return "; ".join(filter(None, (reason, *(reported.blockers if reported else ()))))


def task_finder(store: Store) -> FindTask:
    """A lookup for tasks that reads each once."""

    @cache
    def find(name: str) -> Task | Refusal:
        found = find_task(store, name)
        return found if isinstance(found, Refusal) else found.task

    return find
