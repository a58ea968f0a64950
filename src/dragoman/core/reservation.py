"""Reservations of files: reserve, release, and conflicts between them.

The files of a bead that a wave has let go are reserved for its worker until the bead has ended.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, Final, Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.authority import MAY_DELEGATE, check_write
from dragoman.core.base import Command, Event
from dragoman.core.errors import Refusal
from dragoman.core.ids import RESERVATIONS_STREAM
from dragoman.core.limits import (
    MAX_PATTERN_LENGTH,
    MAX_PATTERNS,
    MAX_REASON,
    MAX_RESERVED_PATTERNS,
    RESERVATION_RANGE_MS,
    check_count,
    check_duration,
    check_text,
)
from dragoman.core.read import Decision, Read, Receipt
from dragoman.core.task_state import Task
from dragoman.core.timestamps import clamp_timestamp, to_rfc3339
from dragoman.text.repository_paths import check_glob, globs_overlap, normalize_glob

# --- commands ---------------------------------------------------------------------------------


class ReserveFiles(Command, frozen=True, tag="reservation.take"):
    """Reserve files against others, by paths and globs, for a time."""

    free_text = ("reason",)

    patterns: tuple[str, ...]
    ttl_ms: int
    reason: str = ""


class ReleaseReservations(Command, frozen=True, tag="reservation.release"):
    """Release reservations; none named: all of the caller's."""

    names: tuple[str, ...] = ()
    """Ids of reservations, or patterns as they were reserved."""


# --- events -----------------------------------------------------------------------------------


class ReservationTaken(Event, frozen=True):
    """Files are reserved by an agent."""

    id: str
    patterns: tuple[str, ...]
    holder: str
    until: int
    reason: str = ""


class ReservationRenewed(Event, frozen=True):
    """A reservation lasts until a later time."""

    id: str
    until: int


class ReservationsEnded(Event, frozen=True):
    """Reservations have ended: released, or expired."""

    ids: tuple[str, ...]
    why: Literal["released", "over"]


# --- state ------------------------------------------------------------------------------------

DEFAULT_RESERVATION_MS: Final = 3_600_000
"""Default duration of a reservation: an hour."""

FindTask = Callable[[str], Task | Refusal]
"""Lookup of a task by name."""


class Reservation(Struct, frozen=True, omit_defaults=True):
    """Files reserved by an agent, or for the worker of a bead."""

    id: str
    patterns: tuple[str, ...]
    holder: str
    """Empty: nobody has claimed the bead yet."""
    until: int | None = None
    """None: until the bead has ended."""
    reason: str = ""
    wave: str = ""
    task: str = ""
    """Bead of the wave that they are for."""

    def is_active(self, now: int) -> bool:
        """True while it stops others."""
        return self.until is None or now < self.until


class Reservations(Struct, frozen=True, omit_defaults=True):
    """All reservations that were not released, folded from the one stream of reservations."""

    kept: tuple[Reservation, ...] = ()


class BeadFiles(Struct, frozen=True):
    """Files that the worker of a bead of a wave will write."""

    wave: str
    task: str
    patterns: tuple[str, ...]


class WaveOfFiles(Protocol):
    """A wave, as far as its files go."""

    def bead_files(self) -> Iterable[BeadFiles]: ...


def bead_reservations(waves: Iterable[WaveOfFiles], find: FindTask) -> Iterator[Reservation]:
    """Files of the beads that these waves have let go and that have not ended."""
    for bead in chain.from_iterable(wave.bead_files() for wave in waves):
        task = find(bead.task)
        if isinstance(task, Task) and is_under_way(task):
            holder = task.assignee if task.status == "in-progress" else ""
            id = f"{bead.wave}:{bead.task}"
            yield Reservation(id, bead.patterns, holder, wave=bead.wave, task=bead.task)


def is_under_way(task: Task) -> bool:
    """Return whether a bead of a wave may be worked on now, so that it takes up a slot."""
    return task.status == "in-progress" or (task.status == "ready" and not task.open_blockers)


def active_reservations(
    state: Reservations, waves: Iterable[WaveOfFiles], find: FindTask, now: int
) -> tuple[Reservation, ...]:
    """All reservations that stop others: those of agents, and of beads of open waves."""
    taken = (one for one in state.kept if one.is_active(now))
    return (*taken, *bead_reservations(waves, find))


# --- conflicts --------------------------------------------------------------------------------


class ReservationConflict(Struct, frozen=True):
    """A reservation that conflicts with wanted files."""

    wanted: str
    reserved: str
    by: Reservation


def find_conflicts(
    patterns: tuple[str, ...],
    reservations: Iterable[Reservation],
    name: str = "",
    overlap: Callable[[str, str], bool] = globs_overlap,
) -> Iterator[ReservationConflict]:
    """Find the reservations of others than `name`, each by its first conflicting pattern."""
    for one in reservations:
        if name and name == one.holder:
            continue
        pairs = ((wanted, kept) for wanted in patterns for kept in one.patterns)
        found = next(((wanted, kept) for wanted, kept in pairs if overlap(kept, wanted)), None)
        if found is not None:
            yield ReservationConflict(*found, one)


def format_conflict(conflict: ReservationConflict) -> str:
    """Sentence that names the holder of the files, the pattern, and the end of the reservation."""
    return f"{conflict.wanted} is reserved by {format_holder(conflict.by)} as {conflict.reserved}"


def format_holder(one: Reservation) -> str:
    """Holder of a reservation and its end, in words."""
    if one.until is not None:
        return f"{one.holder} until {to_rfc3339(one.until)}"
    worker = f"{one.holder} for " if one.holder else ""
    return f"{worker}bead {one.task} of wave {one.wave} until it has ended"


# --- fold -------------------------------------------------------------------------------------


def _fold_taken(state: Reservations | None, event: ReservationTaken, _: int) -> Reservations:
    new = Reservation(event.id, event.patterns, event.holder, event.until, event.reason)
    return Reservations((*(state.kept if state else ()), new))


def _fold_renewed(state: Reservations, event: ReservationRenewed, _: int) -> Reservations:
    return Reservations(
        tuple(replace(one, until=event.until) if one.id == event.id else one for one in state.kept)
    )


def _fold_ended(state: Reservations, event: ReservationsEnded, _: int) -> Reservations:
    return Reservations(tuple(one for one in state.kept if one.id not in event.ids))


RESERVATION_FOLDS: dict[type[Event], Callable[[Any, Any, int], Reservations]] = {
    ReservationTaken: _fold_taken,
    ReservationRenewed: _fold_renewed,
    ReservationsEnded: _fold_ended,
}
"""Event -> fold: the reservations after it, from those before it (None at first) and its time."""


# --- decide -----------------------------------------------------------------------------------


def decide_reserve_files(command: ReserveFiles, read: Read, now: int) -> Decision | Refusal:
    """Reserve files for the caller; the same ones again extend the reservation."""
    patterns = normalize_patterns(command.patterns)
    refusal = (
        check_write(read.actor)
        or check_patterns("patterns", patterns, least=1)
        or check_duration("the reservation", command.ttl_ms, *RESERVATION_RANGE_MS, path="ttl_ms")
        or check_text("reason", command.reason, MAX_REASON)
    )
    if refusal:
        return refusal
    name, until = read.actor.name, clamp_timestamp(now + command.ttl_ms)
    active = active_reservations(read.reservations(), read.open_waves(), read.task, now)
    conflict = next(find_conflicts(patterns, active, name), None)
    if conflict is not None:
        detail = f"{format_conflict(conflict)}: take other files, ask for it, or wait"
        return Refusal("files_reserved", detail, path="patterns")
    for one in active:
        if (one.patterns, one.holder) == (patterns, name) and one.until is not None:
            until = max(until, one.until)
            return _reservation_decision(one.id, until, ReservationRenewed(one.id, until))
    if sum(len(one.patterns) for one in active) + len(patterns) > MAX_RESERVED_PATTERNS:
        detail = (
            f"{MAX_RESERVED_PATTERNS} patterns can be reserved at a time, and no more are free: "
            "use one glob for many files, or wait until others are released"
        )
        return Refusal("invalid_field", detail, path="patterns")
    taken = ReservationTaken(read.cause, patterns, name, until, command.reason)
    return _reservation_decision(read.cause, until, *_expired_events(read, now), taken)


def decide_release_reservations(
    command: ReleaseReservations, read: Read, now: int
) -> Decision | Refusal:
    """Release reservations: the caller's own or, for roles that may delegate, anyone's."""
    refusal = check_write(read.actor)
    if refusal:
        return refusal
    named = _find_named(command.names, read, now)
    if isinstance(named, Refusal):
        return named.with_path("names")
    released = (ReservationsEnded(named, "released"),) if named else ()
    decision = _reservation_decision("", 0, *_expired_events(read, now), *released)
    return replace(decision, receipt=replace(decision.receipt, ended_reservations=named))


def _expired_events(read: Read, now: int) -> Iterator[Event]:
    """Entry for reservations that have expired, written with the next change."""
    expired = tuple(one.id for one in read.reservations().kept if not one.is_active(now))
    if expired:
        yield ReservationsEnded(expired, "over")


def _find_named(names: tuple[str, ...], read: Read, now: int) -> tuple[str, ...] | Refusal:
    """Ids of active reservations by ids or patterns; none named: all of the caller's."""
    active = [one for one in read.reservations().kept if one.is_active(now)]
    own = [one for one in active if one.holder == read.actor.name]
    found = [] if names else own
    for name in names:
        pattern = normalize_glob(name)
        matches = [one for one in active if name == one.id or pattern in one.patterns]
        if not matches:
            return not_found.reservation(name)
        usable = [one for one in matches if one in own]
        if not usable and read.actor.role not in MAY_DELEGATE:
            detail = f"{name[:80]!a} is reserved by {format_holder(matches[0])}"
            return Refusal("not_authorized", detail)
        found += usable or matches
    return tuple(dict.fromkeys(one.id for one in found))


def _reservation_decision(id: str, until: int, *events: Event) -> Decision:
    receipt = Receipt("", None, expires_at=until, stream=f"reservation:{id}")
    return Decision(receipt, tuple((RESERVATIONS_STREAM, event) for event in events))


# --- patterns ---------------------------------------------------------------------------------


def normalize_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns in their stored form, each once."""
    return tuple(dict.fromkeys(map(normalize_glob, patterns)))


def check_patterns(
    what: str, patterns: tuple[str, ...], *, least: int = 0, field: str = ""
) -> Refusal | None:
    """Refuse patterns that cannot name files of a repository, or too many; `field`: where they
    stand, if that is not `what`.
    """
    refusal = next(_iter_pattern_faults(what, patterns, least), None)
    return refusal and refusal.with_path(field or what)


def _iter_pattern_faults(what: str, patterns: tuple[str, ...], least: int) -> Iterator[Refusal]:
    if len(patterns) < least:
        yield Refusal("invalid_field", f"{what} names no file; name a path or a glob")
    if too_many := check_count(what, patterns, MAX_PATTERNS):
        yield too_many
    yield from filter(None, (_check_pattern(what, pattern) for pattern in patterns))


def _check_pattern(field: str, pattern: str) -> Refusal | None:
    problem = check_glob(pattern)
    if problem is not None:
        return Refusal("invalid_field", f"{field}: {pattern[:80]!a} cannot be reserved: {problem}")
    return check_text(field, pattern, MAX_PATTERN_LENGTH)
