"""Deciders of waves: start one, and let its beads go as places and files become free."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.authority import MAY_DELEGATE
from dragoman.core.commands import DEFAULT_MAX_ATTEMPTS, AdoptTask, AdvanceWave, PostMail, StartWave
from dragoman.core.deciding.course import fold_task_events
from dragoman.core.deciding.mail import mailing
from dragoman.core.deciding.mail.reserving import (
    check_patterns,
    expired_events,
    normalize_patterns,
    reservation_events,
)
from dragoman.core.deciding.tasks.lifecycle import transition_events
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    ReservationTaken,
    TaskCheckpointed,
    TaskRequeued,
    TaskTransitioned,
    WaveBead,
    WaveBeadReleased,
    WaveCompleted,
    WaveStarted,
)
from dragoman.core.ids import check_agent, check_id, task_stream, wave_stream
from dragoman.core.limits import (
    MAX_ATTEMPTS,
    MAX_BEADS,
    MAX_RETRIES,
    MAX_WAVE_PATTERNS,
    check_count,
    check_range,
)
from dragoman.core.reading import Decision, Read, Receipt, StreamEvents
from dragoman.core.states.task import Task
from dragoman.core.states.wave import (
    ENDED_STATUSES,
    Wave,
    WavePlan,
    bead_reservation,
    count_by_status,
    exceeded_retry_limit,
    format_closing_report,
    plan_wave,
    wave_tasks,
)

if TYPE_CHECKING:
    from dragoman.core.commands import AnyCommand
    from dragoman.core.events import AnyEvent

ADOPTED_BEAD_KIND: Final = "bead"
"""Kind of alias under which a wave adopts an unknown task."""
WAVE_COMPLETE_KIND: Final = "WAVE_COMPLETE"
"""Type of the letter that is the closing report."""
ATTEMPT_FAILURE_EVENTS: "Final[frozenset[type[AnyEvent]]]" = frozenset(
    {TaskRequeued, TaskCheckpointed}
)
"""Events that end an attempt as a failure."""
_FAILURE_TYPE_RE = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)


def wave_start_commands(
    wave: StartWave,
    titles: Mapping[str, str],
    *,
    review_required: bool = True,
    max_attempts: int = DEFAULT_MAX_ATTEMPTS,
) -> "tuple[AnyCommand, ...]":
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


def decide_start_wave(command: StartWave, read: Read, now: int) -> Decision | Refusal:
    """Start a wave; its ready beads go back to the backlog until it releases them."""
    del now
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
        other = _open_wave_of(task, command.beside, read)
        if other:
            return Refusal(
                "reserved",
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
        command.told or read.actor.name,
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
    requested = (beads, command.parallel, command.told or read.actor.name, command.retries)
    is_same = requested == (known.beads, known.parallel, known.told, known.retries)
    if is_same and len(beads) == len(command.beads):
        decision = _wave_decision(known.id)
        return replace(decision, receipt=replace(decision.receipt, before=True))
    return Refusal(
        "already_exists",
        f"there is another wave {known.id} already; give this one another id",
        path="id",
    )


def _open_wave_of(task: Task, waves: tuple[str, ...], read: Read) -> str:
    """Open wave in which this task has not ended; empty: none. Two would both release it."""
    if task.status in ENDED_STATUSES:
        return ""
    running = (wave for wave in map(read.wave, waves) if wave and wave.ended_at is None)
    matching = (wave.id for wave in running if any(bead.task == task.id for bead in wave.beads))
    return next(matching, "")


def decide_advance_wave(command: AdvanceWave, read: Read, now: int) -> Decision | Refusal:
    """Release the beads that may start; the hub itself closes a wave whose beads have all ended."""
    id = command.wave or read.cause
    refusal = _check_may_run_waves(read) or check_id(id, "wave id")
    if refusal:
        return refusal
    wave = read.wave(id)
    if wave is None:
        return missing.wave(id)
    if wave.ended_at is not None:
        return _wave_decision(id)
    next_steps = plan_wave(wave, read.reservations().active(read.task, now), read.task, now)
    if not next_steps.is_complete:
        return _wave_decision(id, *_advance_events(wave, next_steps, read, now))
    is_closed = read.actor.role == "system"
    return _close_wave(wave, command.stuck, read, now) if is_closed else _wave_decision(id)


def block_beads_over_retry_limit(decision: Decision, read: Read, now: int) -> Decision:
    """Block a bead that has failed too often in one way, in the same transaction.

    Later would be too late: a fast agent claims it while it is ready.
    """
    failed_streams = (
        stream for stream, event in decision.events if type(event) in ATTEMPT_FAILURE_EVENTS
    )
    for stream in dict.fromkeys(failed_streams):
        before = read.task(stream.partition(":")[2])
        assert isinstance(before, Task), "an attempt on it has ended"
        task = fold_task_events(before, decision.events, now)
        reason = _retry_limit_reason(task, decision, read, now) if task.status == "ready" else ""
        if reason:
            blocked, receipt = TaskTransitioned("ready", "blocked", reason), decision.receipt
            decision = replace(
                decision,
                receipt=replace(receipt, status="blocked") if receipt.task == task.id else receipt,
                events=(*decision.events, (stream, blocked)),
            )
    return decision


def _retry_limit_reason(task: Task, decision: Decision, read: Read, now: int) -> str:
    waves = [
        wave
        for wave in read.open_waves()
        if wave.retries and any(bead.task == task.id for bead in wave.beads)
    ]
    if not waves:
        return ""
    stream = task_stream(task.id)
    new_events = ((event, now) for name, event in decision.events if name == stream)
    history = (*read.history(stream), *new_events)
    return next(filter(None, (exceeded_retry_limit(wave, history) for wave in waves)), "")


def _advance_events(wave: Wave, next_steps: WavePlan, read: Read, now: int) -> StreamEvents:
    events: StreamEvents = ()
    if next_steps.reserved:
        reservations = (bead_reservation(wave, bead) for bead in next_steps.reserved)
        taken = (
            ReservationTaken(one.id, one.patterns, task=one.task, wave=one.wave)
            for one in reservations
        )
        events += reservation_events(*expired_events(read, now), *taken)
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
    report = PostMail((wave.told,), subject, body, WAVE_COMPLETE_KIND, thread=wave.id)
    letter = mailing.decide_post_mail(report, read, now)
    if isinstance(letter, Refusal):
        return letter
    completed = WaveCompleted(wave.id, count_by_status(tasks))
    return _wave_decision(wave.id, (wave_stream(wave.id), completed), *letter.events)


def _iter_start_faults(command: StartWave) -> Iterator[Refusal | None]:
    yield check_id(command.id, "wave id", "id") if command.id else None
    yield check_agent(command.told, "told") if command.told else None
    if not command.beads:
        yield Refusal("invalid_field", "the wave has no beads; name at least one", path="beads")
    yield check_count("beads", command.beads, MAX_BEADS)
    yield check_range("parallel", command.parallel, 1, MAX_BEADS)
    for bead in command.beads:
        yield check_patterns(
            f"files of {bead.task[:80]}", normalize_patterns(bead.files), field="beads"
        )
    patterns = sum(len(normalize_patterns(bead.files)) for bead in command.beads)
    if patterns > MAX_WAVE_PATTERNS:
        yield Refusal(
            "invalid_field",
            f"the beads of the wave want {patterns} files; at most {MAX_WAVE_PATTERNS} are "
            "allowed: "
            "use one glob for many files, or start several waves",
            path="beads",
        )
    yield check_count("retries", command.retries, MAX_RETRIES)
    for type, allowed in command.retries.items():
        if not _FAILURE_TYPE_RE.fullmatch(type):
            yield Refusal(
                "invalid_field",
                f"{type[:40]!a} is no type of failure; write it like TESTS_FAIL",
                path="retries",
            )
        out_of_range = check_range(f"retries of {type[:64]}", allowed, 0, MAX_ATTEMPTS)
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


def _wave_decision(id: str, *events: "tuple[str, AnyEvent]") -> Decision:
    return Decision(Receipt("", None, stream=wave_stream(id)), events)
