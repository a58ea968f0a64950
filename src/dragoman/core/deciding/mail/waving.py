"""Deciders of waves: start one, and let its beads go as places and files become free."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.authority import MAY_DELEGATE
from dragoman.core.commands import DEFAULT_ATTEMPTS, AdoptTask, AdvanceWave, PostMail, StartWave
from dragoman.core.deciding.course import task_after
from dragoman.core.deciding.mail import mailing
from dragoman.core.deciding.mail.reserving import check_patterns, on_record, swept, tidied
from dragoman.core.deciding.tasks.lifecycle import moved
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
from dragoman.core.limits import ATTEMPTS, BEADS, RETRIES, WAVE_PATTERNS, check_count, check_range
from dragoman.core.reading import Decision, Read, Receipt, StreamEvents
from dragoman.core.states.task import Task
from dragoman.core.states.wave import (
    ENDED,
    Plan,
    Wave,
    closing_report,
    counts_of,
    plan,
    reservation_of,
    tasks_of,
    why_given_up,
)

if TYPE_CHECKING:
    from dragoman.core.commands import AnyCommand
    from dragoman.core.events import AnyEvent

KIND: Final = "bead"
"""Kind of alias under which a wave adopts an unknown task."""
COMPLETE: Final = "WAVE_COMPLETE"
"""Type of the letter that is the closing report."""
MAY_FAIL: "Final[frozenset[type[AnyEvent]]]" = frozenset({TaskRequeued, TaskCheckpointed})
"""Events that end an attempt as a failure."""
_FAILURE = re.compile(r"[A-Z][A-Z0-9_]{0,63}", re.ASCII)


def commands_of_start(
    wave: StartWave,
    titles: Mapping[str, str],
    *,
    review_required: bool = True,
    max_attempts: int = DEFAULT_ATTEMPTS,
) -> "tuple[AnyCommand, ...]":
    """Commands of a wave's start: adopt unknown beads, hold them back, release the first ones.

    A name with its kind (KIND:NAME) must be that of a known task.
    """
    adopted = tuple(
        AdoptTask(
            KIND,
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


def start(command: StartWave, read: Read, now: int) -> Decision | Refusal:
    """Start a wave; its ready beads go back to the backlog until it releases them."""
    del now
    refusal = _check_role(read) or next(filter(None, _faults(command)), None)
    if refusal:
        return refusal
    id = command.id or read.cause
    known = read.wave(id)
    if known is not None:
        return _started_before(command, known, read)
    beads: dict[str, WaveBead] = {}
    held_back: StreamEvents = ()
    for asked in command.beads:
        task = _bead(asked.task, read)
        if isinstance(task, Refusal):
            return task.at("beads")
        if task.id in beads:
            why = f"the wave names {task.id} twice; name it once"
            return Refusal("invalid_field", why, path="beads")
        other = _runs_in(task, command.beside, read)
        if other:
            return Refusal(
                "reserved",
                f"{task.id} is a bead of the wave {other}, which still runs: wait until it has "
                "ended there, or leave it out",
                path="beads",
            )
        beads[task.id] = WaveBead(task.id, tidied(asked.files))
        if task.status == "ready":
            held_back += moved(task, "backlog", f"waits for its turn in wave {id}", read)
    started = WaveStarted(
        id,
        tuple(beads.values()),
        command.parallel,
        command.told or read.actor.name,
        command.retries,
    )
    return _told(id, (wave_stream(id), started), *held_back)


def _started_before(command: StartWave, known: Wave, read: Read) -> Decision | Refusal:
    """Answer a start under a known id: the same wave, or a refusal (S-IDEM)."""
    named = ((_bead(asked.task, read), tidied(asked.files)) for asked in command.beads)
    beads = tuple(
        WaveBead(task.id, files) for task, files in named if not isinstance(task, Refusal)
    )
    said = (beads, command.parallel, command.told or read.actor.name, command.retries)
    is_same = said == (known.beads, known.parallel, known.told, known.retries)
    if is_same and len(beads) == len(command.beads):
        told = _told(known.id)
        return replace(told, receipt=replace(told.receipt, before=True))
    return Refusal(
        "already_exists",
        f"there is another wave {known.id} already; give this one another id",
        path="id",
    )


def _runs_in(task: Task, waves: tuple[str, ...], read: Read) -> str:
    """Open wave in which this task has not ended; empty: none. Two would both release it."""
    if task.status in ENDED:
        return ""
    running = (wave for wave in map(read.wave, waves) if wave and wave.ended_at is None)
    having = (wave.id for wave in running if any(bead.task == task.id for bead in wave.beads))
    return next(having, "")


def advance(command: AdvanceWave, read: Read, now: int) -> Decision | Refusal:
    """Release the beads that may start; the hub itself closes a wave whose beads have all ended."""
    id = command.wave or read.cause
    refusal = _check_role(read) or check_id(id, "wave id")
    if refusal:
        return refusal
    wave = read.wave(id)
    if wave is None:
        return missing.wave(id)
    if wave.ended_at is not None:
        return _told(id)
    next_steps = plan(wave, read.reservations().living(read.task, now), read.task, now)
    if not next_steps.is_complete:
        return _told(id, *_steps(wave, next_steps, read, now))
    is_closed = read.actor.role == "system"
    return _closed(wave, command.stuck, read, now) if is_closed else _told(id)


def kept_to_limits(decision: Decision, read: Read, now: int) -> Decision:
    """Block a bead that has failed too often in one way, in the same transaction.

    Later would be too late: a fast agent claims it while it is ready.
    """
    failing = (stream for stream, event in decision.events if type(event) in MAY_FAIL)
    for stream in dict.fromkeys(failing):
        before = read.task(stream.partition(":")[2])
        assert isinstance(before, Task), "an attempt on it has ended"
        task = task_after(before, decision.events, now)
        why = _why_given_up(task, decision, read, now) if task.status == "ready" else ""
        if why:
            blocked, told = TaskTransitioned("ready", "blocked", why), decision.receipt
            decision = replace(
                decision,
                receipt=replace(told, status="blocked") if told.task == task.id else told,
                events=(*decision.events, (stream, blocked)),
            )
    return decision


def _why_given_up(task: Task, decision: Decision, read: Read, now: int) -> str:
    waves = [
        wave
        for wave in read.open_waves()
        if wave.retries and any(bead.task == task.id for bead in wave.beads)
    ]
    if not waves:
        return ""
    stream = task_stream(task.id)
    happening = ((event, now) for name, event in decision.events if name == stream)
    history = (*read.history(stream), *happening)
    return next(filter(None, (why_given_up(wave, history) for wave in waves)), "")


def _steps(wave: Wave, next_steps: Plan, read: Read, now: int) -> StreamEvents:
    events: StreamEvents = ()
    if next_steps.reserved:
        kept = (reservation_of(wave, bead) for bead in next_steps.reserved)
        taken = (
            ReservationTaken(one.id, one.patterns, task=one.task, wave=one.wave) for one in kept
        )
        events += on_record(*swept(read, now), *taken)
    for task in next_steps.held_back:
        events += moved(task, "backlog", f"waits for {', '.join(task.open_blockers[:8])}", read)
    for task in next_steps.released:
        events += ((wave_stream(wave.id), WaveBeadReleased(wave.id, task.id)),)
        events += moved(task, "ready", f"released by wave {wave.id}", read)
    return events


def _closed(wave: Wave, stuck: Mapping[str, str], read: Read, now: int) -> Decision | Refusal:
    tasks = tasks_of(wave, read.task)
    subject, body = closing_report(wave, tasks, now, stuck)
    report = PostMail((wave.told,), subject, body, COMPLETE, thread=wave.id)
    letter = mailing.post(report, read, now)
    if isinstance(letter, Refusal):
        return letter
    completed = WaveCompleted(wave.id, counts_of(tasks))
    return _told(wave.id, (wave_stream(wave.id), completed), *letter.events)


def _faults(command: StartWave) -> Iterator[Refusal | None]:
    yield check_id(command.id, "wave id", "id") if command.id else None
    yield check_agent(command.told, "told") if command.told else None
    if not command.beads:
        yield Refusal("invalid_field", "the wave has no beads; name at least one", path="beads")
    yield check_count("beads", command.beads, BEADS)
    yield check_range("parallel", command.parallel, 1, BEADS)
    for bead in command.beads:
        yield check_patterns(f"files of {bead.task[:80]}", tidied(bead.files), field="beads")
    patterns = sum(len(tidied(bead.files)) for bead in command.beads)
    if patterns > WAVE_PATTERNS:
        yield Refusal(
            "invalid_field",
            f"the beads of the wave want {patterns} files; at most {WAVE_PATTERNS} are allowed: "
            "use one glob for many files, or start several waves",
            path="beads",
        )
    yield check_count("retries", command.retries, RETRIES)
    for type, allowed in command.retries.items():
        if not _FAILURE.fullmatch(type):
            yield Refusal(
                "invalid_field",
                f"{type[:40]!a} is no type of failure; write it like TESTS_FAIL",
                path="retries",
            )
        out_of_range = check_range(f"retries of {type[:64]}", allowed, 0, ATTEMPTS)
        yield out_of_range and out_of_range.at("retries")


def _check_role(read: Read) -> Refusal | None:
    if read.actor.role in MAY_DELEGATE:
        return None
    return Refusal(
        "not_authorized",
        f"{read.actor.label} may not run waves: orchestrators, coordinators and people may",
    )


def _bead(name: str, read: Read) -> Task | Refusal:
    """The task of this name: as a bead if there is such a bead, else by any of its names."""
    known = read.task(name if ":" in name else f"{KIND}:{name}")
    if isinstance(known, Refusal) and known.code == "task_not_found":
        known = read.task(name)
    return known


def _told(id: str, *events: "tuple[str, AnyEvent]") -> Decision:
    return Decision(Receipt("", None, stream=wave_stream(id)), events)
