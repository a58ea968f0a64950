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
from dragoman.core.limits import MAX_RESERVED_PATTERNS
from dragoman.core.moments import format_duration, to_rfc3339
from dragoman.core.states.reservations import (
    FindTask,
    Reservation,
    ReservationConflict,
    ReservationIndex,
    WantedFiles,
)
from dragoman.core.states.task import Task
from dragoman.text.safe_text import safe_text

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

ENDED_STATUSES: Final[frozenset[Status]] = frozenset(
    {"review", "done", "blocked", "deadletter", "cancelled"}
)
"""Statuses in which a bead has ended, as far as its wave is concerned."""

STUCK_STATUSES: Final[frozenset[Status]] = frozenset({"blocked", "deadletter"})
"""Statuses in which a bead is stuck until somebody sees to it."""

TimedEvent = tuple["AnyEvent", int]
"""An event and its time."""

_MAX_LISTED_BEADS = 200
_MAX_STUCK_REASON = 300
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


OPEN_WAVES_LIST: Final = "waves:open"
"""Key of the list of open waves."""


def wave_list_keys(wave: Wave) -> tuple[str, ...]:
    """Keys of the lists it stands on."""
    return ("waves",) if wave.ended_at is not None else ("waves", OPEN_WAVES_LIST)


class BeadWait(Struct, frozen=True):
    """Reason why a bead has not ended."""

    what: Literal["slot", "file", "room", "task", "rest", "claim", "tick"]
    """`tick`: nothing is in its way, and the next look at the wave releases it."""
    conflict: ReservationConflict | None = None
    tasks: tuple[str, ...] = ()
    until: int | None = None


class WavePlan(Struct, frozen=True):
    """Next steps of a wave, and what its beads wait for."""

    held_back: tuple[Task, ...] = ()
    """Ready, though they wait for other tasks: they would occupy a slot and could not start."""
    released: tuple[Task, ...] = ()
    reserved: tuple[WaveBead, ...] = ()
    """Beads whose files are reserved from now on."""
    waits: Mapping[str, BeadWait] = {}
    """Task -> what it waits for."""
    is_complete: bool = False

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to do now."""
        return not (self.held_back or self.released or self.reserved or self.is_complete)


def wave_tasks(wave: Wave, find: FindTask) -> list[Task]:
    """Tasks of a wave, in its order, without those that cannot be read."""
    found = (find(bead.task) for bead in wave.beads)
    return [task for task in found if not isinstance(task, Refusal)]


def have_all_ended(tasks: Iterable[Task]) -> bool:
    """True if all beads have ended, so that the wave is complete."""
    return all(task.status in ENDED_STATUSES for task in tasks)


def plan_wave(
    wave: Wave, reservations: tuple[Reservation, ...], find: FindTask, now: int
) -> WavePlan:
    """Plan the next steps; `reservations` are the active ones."""
    tasks = {task.id: task for task in wave_tasks(wave, find)}
    if have_all_ended(tasks.values()):
        return WavePlan(is_complete=True)
    planning = _WavePlanner(wave, reservations, find, now)
    planning.slots -= sum(_occupies_slot(task) for task in tasks.values())
    beads = [bead for bead in wave.beads if bead.task in tasks]
    # Running beads get their files before others are released.
    for bead in sorted(beads, key=lambda bead: tasks[bead.task].status == "backlog"):
        if tasks[bead.task].status not in ENDED_STATUSES:
            planning.plan_bead(bead, tasks[bead.task])
    return planning.result()


def _occupies_slot(task: Task) -> bool:
    return task.status == "in-progress" or (task.status == "ready" and not task.open_blockers)


class _WavePlanner:
    """One pass over the beads of a wave, in their order."""

    def __init__(
        self, wave: Wave, reservations: tuple[Reservation, ...], find: FindTask, now: int
    ) -> None:
        self.slots = wave.parallel
        self._wave = wave
        self._find = find
        self._now = now
        self._reserved_ids = {one.id for one in reservations}
        self._active = ReservationIndex(reservations)
        self._wanted = ReservationIndex()
        """Files that earlier beads of the wave wait for: later ones do not take them."""
        self._held_back: list[Task] = []
        self._released: list[Task] = []
        self._reserved: list[WaveBead] = []
        self._waits: dict[str, BeadWait] = {}

    def plan_bead(self, bead: WaveBead, task: Task) -> None:
        """Release it, or note what it waits for."""
        if task.status != "in-progress" and task.open_blockers:
            if task.status == "ready":
                self._held_back.append(task)
            self._waits[task.id] = BeadWait("task", tasks=task.open_blockers)
        elif task.status == "backlog":
            self._release(bead, task)
        else:
            self._continue(bead, task)

    def result(self) -> WavePlan:
        return WavePlan(
            tuple(self._held_back), tuple(self._released), tuple(self._reserved), self._waits
        )

    def _release(self, bead: WaveBead, task: Task) -> None:
        # Without a slot it does not matter whether its files are free: skip that work.
        obstacle = BeadWait("slot") if self.slots <= 0 else self._file_obstacle(bead, task)
        if obstacle is not None:
            self._waits[task.id] = obstacle
            return
        self.slots -= 1
        self._released.append(task)
        self._reserve(bead)

    def _continue(self, bead: WaveBead, task: Task) -> None:
        """Reserve the files of a running bead as soon as nobody else has them."""
        is_kept = bead_reservation(self._wave, bead).id in self._reserved_ids
        if not is_kept and self._file_obstacle(bead, task) is None:
            self._reserve(bead)
        if task.status == "ready":
            is_backing_off = task.not_before > self._now
            self._waits[task.id] = (
                BeadWait("rest", until=task.not_before) if is_backing_off else BeadWait("claim")
            )

    def _reserve(self, bead: WaveBead) -> None:
        if bead.files:
            self._reserved.append(bead)
            self._active.add(bead_reservation(self._wave, bead))

    def _file_obstacle(self, bead: WaveBead, task: Task) -> BeadWait | None:
        """Obstacle to its files; they are then wanted, and no later bead takes them."""
        if not bead.files:
            return None
        obstacle = self._find_obstacle(bead, task)
        if obstacle is not None:
            self._wanted.add(bead_reservation(self._wave, bead))
        return obstacle

    def _find_obstacle(self, bead: WaveBead, task: Task) -> BeadWait | None:
        if self._active.patterns + len(bead.files) > MAX_RESERVED_PATTERNS:
            return BeadWait("room")
        wanted_files = WantedFiles(
            bead.files, task.assignee if task.status == "in-progress" else "", task.id
        )
        indexes = (self._active, self._wanted)
        found = chain.from_iterable(
            shelf.find_conflicts(wanted_files, self._find) for shelf in indexes
        )
        conflict = next(found, None)
        return None if conflict is None else BeadWait("file", conflict)


def exceeded_retry_limit(wave: Wave, history: Iterable[TimedEvent]) -> str:
    """Reason why a task with this history is not retried in a wave; empty: it may be."""
    for type, count in _count_failures(history, wave.started_at).items():
        allowed = wave.retries.get(type)
        if allowed is not None and count > allowed:
            retries = "1 retry" if allowed == 1 else f"{allowed} retries"
            often = "once" if count == 1 else f"{count} times"
            return f"failed {often} with {type}; wave {wave.id} allows {retries}"
    return ""


def _count_failures(history: Iterable[TimedEvent], since: int) -> Counter[str]:
    """Count failed attempts on a task since a time, by type of failure.

    An attempt that ended in a checkpoint counts by the reason of that.
    """
    failures: dict[int, str] = {}
    attempt: int | None = None
    for event, at in history:
        if isinstance(event, TaskClaimed):
            attempt = event.attempt
        if isinstance(event, TaskTransitioned | TaskRequeued | TaskRewound):
            # A checkpoint that is set while nobody works on the task belongs to no attempt.
            attempt = None
        if isinstance(event, TaskTransitioned | TaskRewound) and event.from_ in STUCK_STATUSES:
            # Somebody gave it another chance: the count starts again.
            failures.clear()
        if at < since:
            continue
        if isinstance(event, TaskCheckpointed) and attempt is not None:
            failures[attempt] = event.reason
        if isinstance(event, TaskReported):
            # A later report of the same attempt replaces the earlier one.
            failures.pop(event.attempt, None)
            type = event.details.get("failure_type")
            if event.outcome == "failed" and isinstance(type, str):
                failures[event.attempt] = type
    return Counter(failures.values())


def bead_reservation(wave: Wave, bead: WaveBead) -> Reservation:
    """Reservation by which a wave keeps the files of a bead for its worker."""
    return Reservation(f"{wave.id}:{bead.task}", bead.files, task=bead.task, wave=wave.id)


def count_by_status(tasks: Iterable[Task]) -> dict[str, int]:
    """Number of tasks in each status."""
    return dict(Counter[str](task.status for task in tasks))


def format_closing_report(
    wave: Wave, tasks: list[Task], now: int, stuck: Mapping[str, str]
) -> tuple[str, str]:
    """Subject and body of the letter about a complete wave.

    `stuck`: stuck task -> reason.
    """
    counts = count_by_status(tasks)
    counts_text = ", ".join(f"{count} {status}" for status, count in counts.items())
    duration_text = format_duration(max(now - wave.started_at, 0) // 1_000 * 1_000)
    lines = [
        f"Wave {wave.id} is complete: {len(tasks)} beads, {counts_text}.",
        "",
        f"Started: {to_rfc3339(wave.started_at)}",
        f"Ended: {to_rfc3339(now)} (after {duration_text}; at most {wave.parallel} at a time)",
        "",
        "## Beads",
        *_iter_bead_lines(tasks, stuck),
    ]
    return f"Wave {wave.id} is complete: {counts_text}", "\n".join(lines)


def _iter_bead_lines(tasks: list[Task], stuck: Mapping[str, str]) -> Iterator[str]:
    for task in tasks[:_MAX_LISTED_BEADS]:
        who = f" by {task.assignee}" if task.assignee else ""
        reason = (
            _format_stuck_reason(stuck.get(task.id, "")) if task.status in STUCK_STATUSES else ""
        )
        yield f"- {task.id}: {task.status}{who}, attempts: {task.attempts}{reason}"
    if len(tasks) > _MAX_LISTED_BEADS:
        yield f"- and {len(tasks) - _MAX_LISTED_BEADS} more: ask for the status of the wave"


def _format_stuck_reason(reason: str) -> str:
    """Reason on one line, shortened: it holds text of agents."""
    line = safe_text(reason, one_line=True)
    short = line if len(line) <= _MAX_STUCK_REASON else line[:_MAX_STUCK_REASON] + "…"
    return f": {short}" if short else ""


def _fold_started(_: None, event: WaveStarted, at: int) -> Wave:
    return Wave(event.id, event.beads, event.parallel, event.told, at, event.retries)


def _fold_bead_released(wave: Wave, event: WaveBeadReleased, at: int) -> Wave:
    del at
    return replace(wave, released=(*wave.released, event.task))


def _fold_completed(wave: Wave, event: WaveCompleted, at: int) -> Wave:
    return replace(wave, counts=event.counts, ended_at=at)


WAVE_FOLDS: dict[type[WaveEvent], Callable[[Any, Any, int], Wave]] = {
    WaveStarted: _fold_started,
    WaveBeadReleased: _fold_bead_released,
    WaveCompleted: _fold_completed,
}
"""Event -> fold: the wave after it, from the wave before it (None at first) and its time."""
