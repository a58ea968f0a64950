"""A wave: beads that are run together, and which of them may go next (S-MAIL-10)."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.events import (
    Status,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
    WaveBead,
    WaveBeadReleased,
    WaveCompleted,
    WaveEvent,
    WaveStarted,
)
from dragoman.core.limits import RESERVED
from dragoman.core.moments import duration, to_rfc3339
from dragoman.core.states.reservations import Conflict, FindTask, Reservation, Shelf, Wish
from dragoman.core.states.task import Task
from dragoman.text.safe_text import safe_text

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

ENDED: Final[frozenset[Status]] = frozenset(
    {"review", "done", "blocked", "deadletter", "cancelled"}
)
"""Statuses in which a bead has ended, as far as its wave is concerned."""

GIVEN_UP: Final[frozenset[Status]] = frozenset({"blocked", "deadletter"})
"""Statuses in which a bead is stuck until somebody sees to it."""

Happened = tuple["AnyEvent", int]
"""An event and its time."""

_LISTED_IN_REPORT = 200
_WHY_IN_REPORT = 300
"""Characters of the reason why a bead is stuck."""


class Wave(Struct, frozen=True, omit_defaults=True):
    """State of a wave, folded from the stream `wave:ID`."""

    id: str
    beads: tuple[WaveBead, ...]
    parallel: int
    told: str
    started_at: int
    retries: dict[str, int] = {}
    released: tuple[str, ...] = ()
    """Released tasks, in order."""
    counts: dict[str, int] = {}
    """Ended beads by status; empty while it runs."""
    ended_at: int | None = None


OPEN_WAVES: Final = "waves:open"
"""Key of the list of open waves."""


def lists_of_wave(wave: Wave) -> tuple[str, ...]:
    """Keys of the lists it stands on."""
    return ("waves",) if wave.ended_at is not None else ("waves", OPEN_WAVES)


class Waiting(Struct, frozen=True):
    """Reason why a bead has not ended."""

    what: Literal["slot", "file", "room", "task", "rest", "claim", "tick"]
    """`tick`: nothing is in its way, and the next look at the wave releases it."""
    conflict: Conflict | None = None
    tasks: tuple[str, ...] = ()
    until: int | None = None


class Plan(Struct, frozen=True):
    """Next steps of a wave, and what its beads wait for."""

    held_back: tuple[Task, ...] = ()
    """Ready, though they wait for other tasks: they would occupy a slot and could not start."""
    released: tuple[Task, ...] = ()
    reserved: tuple[WaveBead, ...] = ()
    """Beads whose files are reserved from now on."""
    waits: Mapping[str, Waiting] = {}
    """Task -> what it waits for."""
    is_complete: bool = False

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to do now."""
        return not (self.held_back or self.released or self.reserved or self.is_complete)


def tasks_of(wave: Wave, find: FindTask) -> list[Task]:
    """Tasks of a wave, in its order, without those that cannot be read."""
    found = (find(bead.task) for bead in wave.beads)
    return [task for task in found if not isinstance(task, Refusal)]


def have_ended(tasks: Iterable[Task]) -> bool:
    """True if all beads have ended, so that the wave is complete."""
    return all(task.status in ENDED for task in tasks)


def plan(wave: Wave, reservations: tuple[Reservation, ...], find: FindTask, now: int) -> Plan:
    """Plan the next steps; `reservations` are the active ones."""
    tasks = {task.id: task for task in tasks_of(wave, find)}
    if have_ended(tasks.values()):
        return Plan(is_complete=True)
    planning = _Planning(wave, reservations, find, now)
    planning.slots -= sum(_takes_a_slot(task) for task in tasks.values())
    beads = [bead for bead in wave.beads if bead.task in tasks]
    # Running beads get their files before others are released.
    for bead in sorted(beads, key=lambda bead: tasks[bead.task].status == "backlog"):
        if tasks[bead.task].status not in ENDED:
            planning.look_at(bead, tasks[bead.task])
    return planning.result()


def _takes_a_slot(task: Task) -> bool:
    return task.status == "in-progress" or (task.status == "ready" and not task.open_blockers)


class _Planning:
    """One pass over the beads of a wave, in their order."""

    def __init__(
        self, wave: Wave, reservations: tuple[Reservation, ...], find: FindTask, now: int
    ) -> None:
        self.slots = wave.parallel
        self._wave = wave
        self._find = find
        self._now = now
        self._kept = {one.id for one in reservations}
        self._live = Shelf(reservations)
        self._wanted = Shelf()
        """Files that earlier beads of the wave wait for: later ones do not take them."""
        self._held_back: list[Task] = []
        self._released: list[Task] = []
        self._reserved: list[WaveBead] = []
        self._waits: dict[str, Waiting] = {}

    def look_at(self, bead: WaveBead, task: Task) -> None:
        """Release it, or note what it waits for."""
        if task.status != "in-progress" and task.open_blockers:
            if task.status == "ready":
                self._held_back.append(task)
            self._waits[task.id] = Waiting("task", tasks=task.open_blockers)
        elif task.status == "backlog":
            self._let_go(bead, task)
        else:
            self._keep(bead, task)

    def result(self) -> Plan:
        return Plan(
            tuple(self._held_back), tuple(self._released), tuple(self._reserved), self._waits
        )

    def _let_go(self, bead: WaveBead, task: Task) -> None:
        # Without a slot it does not matter whether its files are free: skip that work.
        obstacle = Waiting("slot") if self.slots <= 0 else self._obstacle(bead, task)
        if obstacle is not None:
            self._waits[task.id] = obstacle
            return
        self.slots -= 1
        self._released.append(task)
        self._reserve(bead)

    def _keep(self, bead: WaveBead, task: Task) -> None:
        """Reserve the files of a running bead as soon as nobody else has them."""
        is_kept = reservation_of(self._wave, bead).id in self._kept
        if not is_kept and self._obstacle(bead, task) is None:
            self._reserve(bead)
        if task.status == "ready":
            resting = task.not_before > self._now
            self._waits[task.id] = (
                Waiting("rest", until=task.not_before) if resting else Waiting("claim")
            )

    def _reserve(self, bead: WaveBead) -> None:
        if bead.files:
            self._reserved.append(bead)
            self._live.add(reservation_of(self._wave, bead))

    def _obstacle(self, bead: WaveBead, task: Task) -> Waiting | None:
        """Obstacle to its files; they are then wanted, and no later bead takes them."""
        if not bead.files:
            return None
        obstacle = self._in_the_way(bead, task)
        if obstacle is not None:
            self._wanted.add(reservation_of(self._wave, bead))
        return obstacle

    def _in_the_way(self, bead: WaveBead, task: Task) -> Waiting | None:
        if self._live.patterns + len(bead.files) > RESERVED:
            return Waiting("room")
        wish = Wish(bead.files, task.assignee if task.status == "in-progress" else "", task.id)
        shelves = (self._live, self._wanted)
        found = chain.from_iterable(shelf.conflicts(wish, self._find) for shelf in shelves)
        conflict = next(found, None)
        return None if conflict is None else Waiting("file", conflict)


def why_given_up(wave: Wave, history: Iterable[Happened]) -> str:
    """Reason why a task with this history is not retried in a wave; empty: it may be."""
    for type, count in _failures_in(history, wave.started_at).items():
        allowed = wave.retries.get(type)
        if allowed is not None and count > allowed:
            retries = "1 retry" if allowed == 1 else f"{allowed} retries"
            often = "once" if count == 1 else f"{count} times"
            return f"failed {often} with {type}; wave {wave.id} allows {retries}"
    return ""


def _failures_in(history: Iterable[Happened], since: int) -> Counter[str]:
    """Count failed attempts on a task since a time, by type of failure.

    An attempt that ended in a checkpoint counts by the reason of that.
    """
    failed: dict[int, str] = {}
    under_way: int | None = None
    for event, at in history:
        if isinstance(event, TaskClaimed):
            under_way = event.attempt
        if isinstance(event, TaskTransitioned | TaskRequeued | TaskRewound):
            # A checkpoint that is set while nobody works on the task belongs to no attempt.
            under_way = None
        if isinstance(event, TaskTransitioned | TaskRewound) and event.from_ in GIVEN_UP:
            # Somebody gave it another chance: the count starts again.
            failed.clear()
        if at < since:
            continue
        if isinstance(event, TaskCheckpointed) and under_way is not None:
            failed[under_way] = event.reason
        if isinstance(event, TaskReported):
            # A later report of the same attempt replaces the earlier one.
            failed.pop(event.attempt, None)
            type = event.details.get("failure_type")
            if event.outcome == "failed" and isinstance(type, str):
                failed[event.attempt] = type
    return Counter(failed.values())


def reservation_of(wave: Wave, bead: WaveBead) -> Reservation:
    """Reservation by which a wave keeps the files of a bead for its worker."""
    return Reservation(f"{wave.id}:{bead.task}", bead.files, task=bead.task, wave=wave.id)


def counts_of(tasks: Iterable[Task]) -> dict[str, int]:
    """Number of tasks in each status."""
    return dict(Counter[str](task.status for task in tasks))


def closing_report(
    wave: Wave, tasks: list[Task], now: int, stuck: Mapping[str, str]
) -> tuple[str, str]:
    """Subject and body of the letter about a complete wave.

    `stuck`: stuck task -> reason.
    """
    counts = counts_of(tasks)
    summed = ", ".join(f"{count} {status}" for status, count in counts.items())
    took = duration(max(now - wave.started_at, 0) // 1_000 * 1_000)
    lines = [
        f"Wave {wave.id} is complete: {len(tasks)} beads, {summed}.",
        "",
        f"Started: {to_rfc3339(wave.started_at)}",
        f"Ended: {to_rfc3339(now)} (after {took}; at most {wave.parallel} at a time)",
        "",
        "## Beads",
        *_report_lines(tasks, stuck),
    ]
    return f"Wave {wave.id} is complete: {summed}", "\n".join(lines)


def _report_lines(tasks: list[Task], stuck: Mapping[str, str]) -> Iterator[str]:
    for task in tasks[:_LISTED_IN_REPORT]:
        who = f" by {task.assignee}" if task.assignee else ""
        why = _why_in_report(stuck.get(task.id, "")) if task.status in GIVEN_UP else ""
        yield f"- {task.id}: {task.status}{who}, attempts: {task.attempts}{why}"
    if len(tasks) > _LISTED_IN_REPORT:
        yield f"- and {len(tasks) - _LISTED_IN_REPORT} more: ask for the status of the wave"


def _why_in_report(why: str) -> str:
    """Reason on one line, shortened: it holds text of agents."""
    line = safe_text(why, one_line=True)
    short = line if len(line) <= _WHY_IN_REPORT else line[:_WHY_IN_REPORT] + "…"
    return f": {short}" if short else ""


def _started(_: None, event: WaveStarted, at: int) -> Wave:
    return Wave(event.id, event.beads, event.parallel, event.told, at, event.retries)


def _released(wave: Wave, event: WaveBeadReleased, at: int) -> Wave:
    del at
    return replace(wave, released=(*wave.released, event.task))


def _completed(wave: Wave, event: WaveCompleted, at: int) -> Wave:
    return replace(wave, counts=event.counts, ended_at=at)


EVOLVE_WAVE: dict[type[WaveEvent], Callable[[Any, Any, int], Wave]] = {
    WaveStarted: _started,
    WaveBeadReleased: _released,
    WaveCompleted: _completed,
}
"""Event -> fold: the wave after it, from the wave before it (None at first) and its time."""
