"""Waves and reservations: progress of a wave, what it waits for, who holds which files."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from typing import cast

from msgspec import Struct

from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.ids import RESERVATIONS_STREAM, task_stream
from dragoman.core.reservation import (
    FindTask,
    Reservation,
    Reservations,
    active_reservations,
)
from dragoman.core.task_state import Task, TaskTransitioned
from dragoman.core.wave import (
    OPEN_WAVES_LIST,
    STUCK_STATUSES,
    Wave,
    WavePlan,
    plan_wave,
    wave_tasks,
)
from dragoman.engine.ports import ListQuery, Store
from dragoman.engine.queries.entries import (
    END_OF_LIST,
    LIST_PAGE,
    decode_event,
    find_by_id,
    stream_entries,
    stream_state,
    walk_list,
)
from dragoman.engine.queries.tasks import find_task


class WaveStatus(Struct, frozen=True):
    """A wave at one moment, with what its resource needs."""

    wave: Wave
    plan: WavePlan
    find_task: FindTask
    stuck_reasons: Mapping[str, str] = {}
    """Task that is stuck -> the reason."""


def find_wave(store: Store, id: str) -> Wave | Refusal:
    return find_by_id(store, id, Wave)


def open_wave_ids(store: Store) -> Iterator[str]:
    """The id of every wave that is not complete, oldest first."""
    listed = walk_list(store, ListQuery(OPEN_WAVES_LIST, limit=LIST_PAGE))
    return (place.row.name.partition(":")[2] for place in listed)


def newest_waves(store: Store, limit: int) -> list[Wave]:
    """The last waves that were started, newest first."""
    listed = store.list_page(ListQuery("waves", before=END_OF_LIST, limit=limit))
    states = (stream_state(store, place.row) for place in listed)
    return [state for state in states if isinstance(state, Wave)]


def find_reservations(store: Store, now: int) -> tuple[Reservation, ...]:
    """The reservations that stop others at this time."""
    row = store.stream(RESERVATIONS_STREAM)
    state = None if row is None else stream_state(store, row)
    taken = state if isinstance(state, Reservations) else Reservations()
    return active_reservations(taken, _open_waves(store), task_finder(store), now)


def _open_waves(store: Store) -> Iterator[Wave]:
    """Every open wave that can be read; `verify` reports the others."""
    for id in open_wave_ids(store):
        with suppress(LedgerError):
            yield cast(Wave, find_wave(store, id))


def wave_status(store: Store, wave: Wave, now: int) -> WaveStatus:
    """The status of a wave: its next steps, and what its beads wait for."""
    find = task_finder(store)
    is_over = wave.ended_at is not None
    plan = WavePlan() if is_over else plan_wave(wave, find_reservations(store, now), find, now)
    tasks = wave_tasks(wave, find)
    stuck = {task.id: _stuck_reason(store, task) for task in tasks if task.status in STUCK_STATUSES}
    return WaveStatus(wave, plan, find, stuck)


def _stuck_reason(store: Store, task: Task) -> str:
    """The reason why a task is stuck: that of its last transition, and the blockers of its last
    report."""
    reason = ""
    for event in map(decode_event, stream_entries(store, task_stream(task.id))):
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
