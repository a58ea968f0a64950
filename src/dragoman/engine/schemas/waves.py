"""Resource schemas of waves and reservations."""

from collections.abc import Mapping
from typing import Any

from dragoman.core.reservation import FindTask, Reservation
from dragoman.core.task_state import Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.wave import (
    ENDED_STATUSES,
    BeadWait,
    Wave,
    count_by_status,
    have_all_ended,
    wave_tasks,
)
from dragoman.engine.queries.waves import WaveStatus

Resource = dict[str, Any]


def wave_resource(status: WaveStatus) -> Resource:
    """The resource of a wave with all its beads."""
    wave, tasks = status.wave, wave_tasks(status.wave, status.find_task)
    files = {bead.task: bead.files for bead in wave.beads}
    return {
        **wave_summary(wave, status.find_task),
        # In a list a wave that has ended has its final counts; here its beads are counted as they
        # are now.
        "counts": count_by_status(tasks),
        "retries": wave.retries,
        "beads": [_bead_resource(task, files[task.id], status) for task in tasks],
    }


def wave_summary(wave: Wave, find: FindTask) -> Resource:
    """The resource of a wave in a list."""
    tasks = () if wave.ended_at is not None else wave_tasks(wave, find)
    ended = {} if wave.ended_at is None else {"ended_at": to_rfc3339(wave.ended_at)}
    return {
        "wave_id": wave.id,
        "complete": have_all_ended(tasks),
        "parallel": wave.parallel,
        "size": len(wave.beads),
        "counts": wave.counts or count_by_status(tasks),
        "orchestrator": wave.report_to,
        "started_at": to_rfc3339(wave.started_at),
        **ended,
    }


def reservation_resource(one: Reservation) -> Resource:
    fields = {"task": one.task, "wave": one.wave, "reason": one.reason}
    return {
        "id": one.id,
        "patterns": one.patterns,
        "holder": one.holder or None,
        "until": None if one.until is None else to_rfc3339(one.until),
        **{name: value for name, value in fields.items() if value},
    }


def _bead_resource(task: Task, files: tuple[str, ...], status: WaveStatus) -> Resource:
    released = BeadWait("tick") if task in status.plan.released else None
    waiting = status.plan.waits.get(task.id, released)
    reported = task.reported
    return {
        "id": _bead_name(task),
        "task": task.id,
        "title": task.title,
        "status": task.status,
        "ended": task.status in ENDED_STATUSES,
        "released": task.id in status.wave.released,
        "attempts": task.attempts,
        "assignee": task.assignee or None,
        "files": files,
        **({"outcome": reported.outcome} if reported is not None else {}),
        **({"waits_for": _waiting_resource(waiting)} if waiting is not None else {}),
        **({"why": status.stuck_reasons[task.id]} if task.id in status.stuck_reasons else {}),
    }


def _bead_name(task: Task) -> str:
    beads = (alias[5:] for alias in task.aliases if alias.startswith("bead:"))
    return next(beads, task.id)


def _waiting_resource(waiting: BeadWait) -> Mapping[str, Any]:
    resource: Resource = {"what": waiting.what}
    if waiting.conflict is not None:
        by = reservation_resource(waiting.conflict.by)
        resource |= {"file": waiting.conflict.wanted, "reserved": waiting.conflict.reserved}
        resource |= {"by": {key: value for key, value in by.items() if key != "patterns"}}
    if waiting.tasks:
        resource["tasks"] = waiting.tasks
    if waiting.until is not None:
        resource["until"] = to_rfc3339(waiting.until)
    return resource
