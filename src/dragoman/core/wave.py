"""Waves: beads that are run together, a few at a time (S-MAIL-10).

A bead is a task of a wave. The plan says which beads go next; the decisions start a wave, release
beads as slots and files become free, and close it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import limits, mail, not_found
from dragoman.core.authority import MAY_DELEGATE
from dragoman.core.base import DEFAULT_MAX_ATTEMPTS, Command, Event, Status
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, check_id, wave_stream
from dragoman.core.mail import PostMail
from dragoman.core.read import Decision, Read, Receipt, StreamEvents
from dragoman.core.reservation import (
    BeadFiles,
    FindTask,
    Reservation,
    ReservationConflict,
    active_reservations,
    check_patterns,
    find_conflicts,
    is_under_way,
    normalize_patterns,
)
from dragoman.core.task import transition_events
from dragoman.core.task_state import AdoptTask, Task
from dragoman.core.timestamps import format_duration, to_rfc3339
from dragoman.text.safe_text import safe_text

# --- commands ---------------------------------------------------------------------------------


class WaveBead(Struct, frozen=True, omit_defaults=True):
    """One of the tasks of a wave, and the files that its worker will write."""

    task: str
    files: tuple[str, ...] = ()


class StartWave(Command, frozen=True, tag="wave.start"):
    """Run tasks together; each goes by any of its names. A missing id is assigned."""

    beads: tuple[WaveBead, ...]
    parallel: int
    id: str = ""
    retries: dict[str, int] = {}
    report_to: str = ""
    """Recipient of the closing report; empty: the caller."""


class AdvanceWave(Command, frozen=True, tag="wave.advance"):
    """Release the beads of a wave that may start; no-op while none may."""

    wave: str = ""
    """Id of the wave; empty: the one that this request starts."""
    stuck: dict[str, str] = {}
    """Stuck task -> reason, for the closing report; only the hub closes a wave."""


# --- events -----------------------------------------------------------------------------------


class WaveStarted(Event, frozen=True):
    """Tasks are run together, a limited number at a time."""

    id: str
    beads: tuple[WaveBead, ...]
    parallel: int
    report_to: str
    """Recipient of the closing report."""
    retries: dict[str, int] = {}
    """Type of failure -> retries that a bead may use for it."""


class WaveBeadReleased(Event, frozen=True):
    """A task of the wave may start."""

    wave: str
    task: str


class WaveCompleted(Event, frozen=True):
    """All tasks of the wave have ended; their number by status."""

    wave: str
    counts: dict[str, int]


# --- state ------------------------------------------------------------------------------------

ENDED_STATUSES: Final[frozenset[Status]] = frozenset(
    {"review", "done", "blocked", "deadletter", "cancelled"}
)
"""Statuses in which a bead has ended, as far as its wave is concerned."""

STUCK_STATUSES: Final[frozenset[Status]] = frozenset({"blocked", "deadletter"})
"""Statuses in which a bead is stuck until somebody sees to it."""


class Wave(Struct, frozen=True, omit_defaults=True):
    """State of a wave, folded from the stream `wave:ID`."""

    id: str
    beads: tuple[WaveBead, ...]
    parallel: int
    report_to: str
    started_at: int
    retries: dict[str, int] = {}
    released: tuple[str, ...] = ()
    """Released tasks, in order."""
    counts: dict[str, int] = {}
    """Ended beads by status; empty while it runs."""
    ended_at: int | None = None

    def bead_files(self) -> Iterator[BeadFiles]:
        return (BeadFiles(self.id, bead.task, bead.files) for bead in self.beads if bead.files)


OPEN_WAVES_LIST: Final = "waves:open"
"""Key of the list of open waves."""


def wave_list_keys(wave: Wave) -> tuple[str, ...]:
    """Keys of the lists it stands on."""
    return ("waves",) if wave.ended_at is not None else ("waves", OPEN_WAVES_LIST)


def wave_tasks(wave: Wave, find: FindTask) -> list[Task]:
    """Tasks of a wave, in its order, without those that cannot be read."""
    found = (find(bead.task) for bead in wave.beads)
    return [task for task in found if not isinstance(task, Refusal)]


def have_all_ended(tasks: Iterable[Task]) -> bool:
    """True if all beads have ended, so that the wave is complete."""
    return all(task.status in ENDED_STATUSES for task in tasks)


def count_by_status(tasks: Iterable[Task]) -> dict[str, int]:
    """Number of tasks in each status."""
    return dict(Counter[str](task.status for task in tasks))


# --- plan -------------------------------------------------------------------------------------


class BeadWait(Struct, frozen=True):
    """Reason why a bead has not ended."""

    what: Literal["slot", "file", "task", "rest", "claim", "tick"]
    """`tick`: nothing is in its way, and the next look at the wave releases it."""
    conflict: ReservationConflict | None = None
    tasks: tuple[str, ...] = ()
    until: int | None = None


class WavePlan(Struct, frozen=True):
    """Next steps of a wave, and what its beads wait for."""

    held_back: tuple[Task, ...] = ()
    """Ready, though they wait for other tasks: they would occupy a slot and could not start."""
    released: tuple[Task, ...] = ()
    waits: Mapping[str, BeadWait] = {}
    """Task -> what it waits for."""
    is_complete: bool = False

    @property
    def is_idle(self) -> bool:
        """True if there is nothing to do now."""
        return not (self.held_back or self.released or self.is_complete)


def plan_wave(
    wave: Wave, reservations: tuple[Reservation, ...], find: FindTask, now: int
) -> WavePlan:
    """Plan the next steps; `reservations` are the active ones."""
    tasks = wave_tasks(wave, find)
    if have_all_ended(tasks):
        return WavePlan(is_complete=True)
    slots = wave.parallel - sum(map(is_under_way, tasks))
    files = {bead.task: bead.files for bead in wave.beads}
    # Files of others, and of earlier beads, which later ones do not take.
    taken = list(reservations)
    held_back: list[Task] = []
    released: list[Task] = []
    waits: dict[str, BeadWait] = {}
    for task in tasks:
        if task.status in ("backlog", "ready") and task.open_blockers:
            waits[task.id] = BeadWait("task", tasks=task.open_blockers)
            if task.status == "ready":
                held_back.append(task)
        elif task.status == "ready":
            waits[task.id] = (
                BeadWait("rest", until=task.not_before)
                if task.not_before > now
                else BeadWait("claim")
            )
        elif task.status == "backlog" and slots <= 0:
            waits[task.id] = BeadWait("slot")
        elif task.status == "backlog":
            conflict = next(find_conflicts(files[task.id], taken), None)
            if conflict is None:
                slots -= 1
                released.append(task)
            else:
                waits[task.id] = BeadWait("file", conflict)
            id = f"{wave.id}:{task.id}"
            taken.append(Reservation(id, files[task.id], "", wave=wave.id, task=task.id))
    return WavePlan(tuple(held_back), tuple(released), waits)


# --- closing report ---------------------------------------------------------------------------

_MAX_LISTED_BEADS = 200

_MAX_STUCK_REASON = 300
"""Characters of the reason why a bead is stuck."""


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


# --- fold -------------------------------------------------------------------------------------


def _fold_started(_: None, event: WaveStarted, at: int) -> Wave:
    return Wave(event.id, event.beads, event.parallel, event.report_to, at, event.retries)


def _fold_bead_released(wave: Wave, event: WaveBeadReleased, _: int) -> Wave:
    return replace(wave, released=(*wave.released, event.task))


def _fold_completed(wave: Wave, event: WaveCompleted, at: int) -> Wave:
    return replace(wave, counts=event.counts, ended_at=at)


WAVE_FOLDS: dict[type[Event], Callable[[Any, Any, int], Wave]] = {
    WaveStarted: _fold_started,
    WaveBeadReleased: _fold_bead_released,
    WaveCompleted: _fold_completed,
}
"""Event -> fold: the wave after it, from the wave before it (None at first) and its time."""


# --- start ------------------------------------------------------------------------------------

ADOPTED_BEAD_KIND: Final = "bead"
"""Kind of alias under which a wave adopts an unknown task."""

WAVE_COMPLETE_KIND: Final = "WAVE_COMPLETE"
"""Type of the letter that is the closing report."""

_FAILURE_TYPE_RE = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)


def wave_start_commands(
    wave: StartWave,
    titles: Mapping[str, str],
    *,
    review_required: bool = True,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
) -> "tuple[Command, ...]":
    """Commands of a wave's start: adopt unknown beads, hold them back, release the first ones.

    A name with its kind (KIND:NAME) must be that of a known task.
    """
    adopted = tuple(
        AdoptTask(
            ADOPTED_BEAD_KIND,
            bead.task,
            titles.get(bead.task, ""),
            review_required=review_required,
            max_attempts=max_attempts,
            ready=False,
        )
        for bead in wave.beads
        if ":" not in bead.task
    )
    return (*adopted, wave, AdvanceWave(wave.id))


def decide_start_wave(command: StartWave, read: Read, _: int) -> Decision | Refusal:
    """Start a wave; its ready beads go back to the backlog until it releases them."""
    refusal = _check_may_run_waves(read) or next(filter(None, _iter_start_faults(command)), None)
    if refusal:
        return refusal
    id = command.id or read.cause
    known = read.wave(id)
    if known is not None:
        return _repeated_start(command, known, read)
    beads: dict[str, WaveBead] = {}
    held_back: StreamEvents = ()
    for bead in command.beads:
        task = _find_bead_task(bead.task, read)
        if isinstance(task, Refusal):
            return task.with_path("beads")
        if task.id in beads:
            why = f"the wave names {task.id} twice; name it once"
            return Refusal("invalid_field", why, path="beads")
        other = _open_wave_of(task, read)
        if other:
            return Refusal(
                "reserved_for_other",
                f"{task.id} is a bead of the wave {other}, which still runs: wait until it has "
                "ended there, or leave it out",
                path="beads",
            )
        beads[task.id] = WaveBead(task.id, normalize_patterns(bead.files))
        if task.status == "ready":
            held_back += transition_events(
                task, "backlog", f"waits for its turn in wave {id}", read
            )
    started = WaveStarted(
        id,
        tuple(beads.values()),
        command.parallel,
        command.report_to or read.actor.name,
        command.retries,
    )
    return _wave_decision(id, (wave_stream(id), started), *held_back)


def _repeated_start(command: StartWave, known: Wave, read: Read) -> Decision | Refusal:
    """Answer a start under a known id: the same wave, or a refusal (S-IDEM)."""
    found = (
        (_find_bead_task(bead.task, read), normalize_patterns(bead.files)) for bead in command.beads
    )
    beads = tuple(
        WaveBead(task.id, files) for task, files in found if not isinstance(task, Refusal)
    )
    requested = (beads, command.parallel, command.report_to or read.actor.name, command.retries)
    is_same = requested == (known.beads, known.parallel, known.report_to, known.retries)
    if is_same and len(beads) == len(command.beads):
        decision = _wave_decision(known.id)
        return replace(decision, receipt=replace(decision.receipt, is_repeat=True))
    return Refusal(
        "already_exists",
        f"there is another wave {known.id} already; give this one another id",
        path="id",
    )


def _open_wave_of(task: Task, read: Read) -> str:
    """Open wave in which this task has not ended; empty: none. Two would both release it."""
    if task.status in ENDED_STATUSES:
        return ""
    waves = read.open_waves()
    return next((one.id for one in waves if any(task.id == bead.task for bead in one.beads)), "")


def _iter_start_faults(command: StartWave) -> Iterator[Refusal | None]:
    yield check_id(command.id, "wave id", "id") if command.id else None
    yield check_agent(command.report_to, "report_to") if command.report_to else None
    if not command.beads:
        yield Refusal("invalid_field", "the wave has no beads; name at least one", path="beads")
    yield limits.check_count("beads", command.beads, limits.MAX_BEADS)
    yield limits.check_range("parallel", command.parallel, 1, limits.MAX_BEADS)
    for bead in command.beads:
        yield check_patterns(
            f"files of {bead.task[:80]}", normalize_patterns(bead.files), field="beads"
        )
    patterns = sum(len(normalize_patterns(bead.files)) for bead in command.beads)
    if patterns > limits.MAX_WAVE_PATTERNS:
        yield Refusal(
            "invalid_field",
            f"the beads of the wave want {patterns} files; at most {limits.MAX_WAVE_PATTERNS} are "
            "allowed: "
            "use one glob for many files, or start several waves",
            path="beads",
        )
    yield limits.check_count("retries", command.retries, limits.MAX_RETRIES)
    for type, allowed in command.retries.items():
        if not _FAILURE_TYPE_RE.fullmatch(type):
            yield Refusal(
                "invalid_field",
                f"{type[:40]!a} is no type of failure; write it like TESTS_FAIL",
                path="retries",
            )
        out_of_range = limits.check_range(
            f"retries of {type[:64]}", allowed, 0, limits.MAX_ATTEMPTS
        )
        yield out_of_range and out_of_range.with_path("retries")


def _check_may_run_waves(read: Read) -> Refusal | None:
    if read.actor.role in MAY_DELEGATE:
        return None
    return Refusal(
        "not_authorized",
        f"{read.actor.label} may not run waves: orchestrators, coordinators and people may",
    )


def _find_bead_task(name: str, read: Read) -> Task | Refusal:
    """The task of this name: as a bead if there is such a bead, else by any of its names."""
    known = read.task(name if ":" in name else f"{ADOPTED_BEAD_KIND}:{name}")
    if isinstance(known, Refusal) and known.code == "task_not_found":
        known = read.task(name)
    return known


# --- advance and close ------------------------------------------------------------------------


def decide_advance_wave(command: AdvanceWave, read: Read, now: int) -> Decision | Refusal:
    """Release the beads that may start; the hub itself closes a wave whose beads have all ended."""
    id = command.wave or read.cause
    refusal = _check_may_run_waves(read) or check_id(id, "wave id")
    if refusal:
        return refusal
    wave = read.wave(id)
    if wave is None:
        return not_found.wave(id)
    if wave.ended_at is not None:
        return _wave_decision(id)
    reserved = active_reservations(read.reservations(), read.open_waves(), read.task, now)
    next_steps = plan_wave(wave, reserved, read.task, now)
    if not next_steps.is_complete:
        return _wave_decision(id, *_advance_events(wave, next_steps, read))
    is_closed = read.actor.role == "system"
    return _close_wave(wave, command.stuck, read, now) if is_closed else _wave_decision(id)


def _advance_events(wave: Wave, next_steps: WavePlan, read: Read) -> StreamEvents:
    events: StreamEvents = ()
    for task in next_steps.held_back:
        events += transition_events(
            task, "backlog", f"waits for {', '.join(task.open_blockers[:8])}", read
        )
    for task in next_steps.released:
        events += ((wave_stream(wave.id), WaveBeadReleased(wave.id, task.id)),)
        events += transition_events(task, "ready", f"released by wave {wave.id}", read)
    return events


def _close_wave(wave: Wave, stuck: Mapping[str, str], read: Read, now: int) -> Decision | Refusal:
    tasks = wave_tasks(wave, read.task)
    subject, body = format_closing_report(wave, tasks, now, stuck)
    report = PostMail((wave.report_to,), subject, body, WAVE_COMPLETE_KIND, thread=wave.id)
    letter = mail.decide_post_mail(report, read, now)
    if isinstance(letter, Refusal):
        return letter
    completed = WaveCompleted(wave.id, count_by_status(tasks))
    return _wave_decision(wave.id, (wave_stream(wave.id), completed), *letter.events)


def _wave_decision(id: str, *events: tuple[str, Event]) -> Decision:
    return Decision(Receipt("", None, stream=wave_stream(id)), events)
