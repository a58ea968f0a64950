"""Waves and reservations as programs are shown them: one shape for every door."""

from collections.abc import Mapping
from typing import Any, Literal

from dragoman.core.moments import to_rfc3339
from dragoman.core.states.reservations import FindTask, Reservation
from dragoman.core.states.task import Task
from dragoman.core.states.wave import ENDED, Waiting, Wave, counts_of, have_ended, tasks_of
from dragoman.engine.reads.waves import Reserved, WaveNow

Shown = dict[str, Any]


def shown_wave(now: WaveNow) -> Shown:
    """The resource of a wave with all its beads."""
    wave, tasks = now.wave, tasks_of(now.wave, now.find)
    files = {bead.task: bead.files for bead in wave.beads}
    return {
        **shown_briefly(wave, now.find),
        # In a list a wave that has ended has its final counts; here its beads are counted as they
        # are now.
        "counts": counts_of(tasks),
        "retries": wave.retries,
        "beads": [_bead(task, files[task.id], now) for task in tasks],
    }


def shown_briefly(wave: Wave, find: FindTask) -> Shown:
    """The resource of a wave in a list."""
    tasks = () if wave.ended_at is not None else tasks_of(wave, find)
    ended = {} if wave.ended_at is None else {"ended_at": to_rfc3339(wave.ended_at)}
    return {
        "wave_id": wave.id,
        "complete": have_ended(tasks),
        "parallel": wave.parallel,
        "size": len(wave.beads),
        "counts": wave.counts or counts_of(tasks),
        "orchestrator": wave.told,
        "started_at": to_rfc3339(wave.started_at),
        **ended,
    }


def shown_reservations(reserved: Reserved) -> list[Shown]:
    """The resources of the active reservations, each with its holder and end."""
    return [shown_reservation(one, reserved.find) for one in reserved.living]


def shown_reservation(one: Reservation, find: FindTask) -> Shown:
    """The resource of one reservation."""
    mode: Literal["exclusive", "shared"] = "exclusive" if one.exclusive else "shared"
    fields = {"task": one.task, "wave": one.wave, "reason": one.reason}
    return {
        "id": one.id,
        "patterns": one.patterns,
        "holder": one.worker(find) or None,
        "mode": mode,
        "until": None if one.until is None else to_rfc3339(one.until),
        **{name: value for name, value in fields.items() if value},
    }


def _bead(task: Task, files: tuple[str, ...], now: WaveNow) -> Shown:
    goes_next = Waiting("tick") if task in now.plan.released else None
    waiting = now.plan.waits.get(task.id, goes_next)
    reported = task.reported
    return {
        "id": _name(task),
        "task": task.id,
        "title": task.title,
        "status": task.status,
        "ended": task.status in ENDED,
        "released": task.id in now.wave.released,
        "attempts": task.attempts,
        "assignee": task.assignee or None,
        "files": files,
        **({"outcome": reported.outcome} if reported is not None else {}),
        **({"waits_for": _waiting(waiting, now)} if waiting is not None else {}),
        **({"why": now.stuck[task.id]} if task.id in now.stuck else {}),
    }


def _name(task: Task) -> str:
    """The name of a task as a bead."""
    beads = (alias[5:] for alias in task.aliases if alias.startswith("bead:"))
    return next(beads, task.id)


def _waiting(waiting: Waiting, now: WaveNow) -> Mapping[str, Any]:
    told: Shown = {"what": waiting.what}
    if waiting.conflict is not None:
        by = shown_reservation(waiting.conflict.by, now.find)
        told |= {"file": waiting.conflict.wanted, "reserved": waiting.conflict.reserved}
        told |= {"by": {key: value for key, value in by.items() if key != "patterns"}}
    if waiting.tasks:
        told["tasks"] = waiting.tasks
    if waiting.until is not None:
        told["until"] = to_rfc3339(waiting.until)
    return told
