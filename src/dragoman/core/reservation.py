"""Reservations of files: reserve, renew, release, and conflicts between them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_DELEGATE, check_write
from dragoman.core.base import Command, Event, Status
from dragoman.core.errors import Refusal
from dragoman.core.ids import RESERVATIONS_STREAM
from dragoman.core.limits import (
    AGENT_RESERVATION_RANGE_MS,
    LEASE_RANGE_MS,
    MAX_PATTERN_LENGTH,
    MAX_PATTERNS,
    MAX_REASON,
    MAX_RESERVED_PATTERNS,
    MAX_RESERVED_PATTERNS_PER_AGENT,
    check_count,
    check_duration,
    check_text,
)
from dragoman.core.read import Decision, Read, Receipt, StreamEvents
from dragoman.core.task_state import Task
from dragoman.core.timestamps import clamp_timestamp, to_rfc3339
from dragoman.text.repository_paths import (
    GlobIndex,
    check_glob,
    glob_matches,
    globs_overlap,
    is_only_wildcards,
    normalize_glob,
)

# --- commands ---------------------------------------------------------------------------------


class ReserveFiles(Command, frozen=True, tag="reservation.take"):
    """Reserve files against others, by paths and globs, for a time."""

    patterns: tuple[str, ...]
    ttl_ms: int
    exclusive: bool = True
    task: str = ""
    """Task that they are for: the reservation ends when it is no longer in progress."""
    reason: str = ""


class RenewReservations(Command, frozen=True, tag="reservation.renew"):
    """Extend reservations to a time from now on; none named: all of the caller's."""

    names: tuple[str, ...]
    """Ids of reservations, or patterns as they were reserved."""
    ttl_ms: int


class ReleaseReservations(Command, frozen=True, tag="reservation.release"):
    """Release reservations; none named: all of the caller's."""

    names: tuple[str, ...] = ()


# --- events -----------------------------------------------------------------------------------


class ReservationTaken(Event, frozen=True):
    """Files are reserved by an agent, or for the worker of a bead."""

    id: str
    patterns: tuple[str, ...]
    holder: str = ""
    until: int | None = None
    exclusive: bool = True
    task: str = ""
    wave: str = ""
    reason: str = ""
    fence: int = 0
    """Fencing token of the task's attempt in which it was taken; 0 without one."""


class ReservationRenewed(Event, frozen=True):
    """A reservation lasts until a later time."""

    id: str
    until: int


class ReservationsEnded(Event, frozen=True):
    """Reservations have ended: released, or expired."""

    ids: tuple[str, ...]
    why: Literal["released", "over"]


ReservationEvent = ReservationTaken | ReservationRenewed | ReservationsEnded


# --- state ------------------------------------------------------------------------------------

DEFAULT_RESERVATION_MS: Final = 3_600_000
"""Default duration of a reservation: an hour."""

FindTask = Callable[[str], Task | Refusal]
"""Lookup of a task by name."""

_HELD_STATUSES: Final[frozenset[Status]] = frozenset({"in-progress"})

_RELEASED_STATUSES: Final[frozenset[Status]] = frozenset({"ready", "in-progress"})
"""A wave reserves the files of a bead from the moment it releases it."""


class Reservation(Struct, frozen=True, omit_defaults=True):
    """Files reserved by an agent, or for the worker of a bead of a wave."""

    id: str
    patterns: tuple[str, ...]
    holder: str = ""
    """Empty: the worker of its task."""
    until: int | None = None
    """None: as long as its task is under way."""
    exclusive: bool = True
    task: str = ""
    wave: str = ""
    reason: str = ""
    fence: int = 0
    """Fencing token of the attempt it was taken in; another attempt does not revive it."""

    def is_active(self, find: FindTask, now: int) -> bool:
        """True while it stops others: its time is not over, and its task is under way."""
        if self.until is not None and now >= self.until:
            return False
        if not self.task:
            return True
        task = find(self.task)
        if isinstance(task, Refusal):
            return False
        if self.wave:
            return task.status in _RELEASED_STATUSES
        return task.status in _HELD_STATUSES and task.fence == self.fence

    def current_holder(self, find: FindTask) -> str:
        """Holder of the files, or the worker of the task; empty: nobody yet."""
        if self.holder:
            return self.holder
        task = find(self.task)
        return task.assignee if isinstance(task, Task) and task.status in _HELD_STATUSES else ""


class Reservations(Struct, frozen=True, omit_defaults=True):
    """All reservations that were not released, folded from the one stream of reservations."""

    kept: tuple[Reservation, ...] = ()

    def active(self, find: FindTask, now: int) -> tuple[Reservation, ...]:
        """Those that still stop others."""
        return tuple(one for one in self.kept if one.is_active(find, now))


# --- conflicts --------------------------------------------------------------------------------


class WantedFiles(Struct, frozen=True):
    """Files that an agent asks for."""

    patterns: tuple[str, ...]
    name: str = ""
    task: str = ""
    exclusive: bool = True
    are_files: bool = False
    """Its patterns are literal file names, none of them a glob or a folder."""


class ReservationConflict(Struct, frozen=True):
    """A reservation that conflicts with wanted files."""

    wanted: str
    reserved: str
    by: Reservation


class ReservationIndex:
    """Index of reservations by their patterns."""

    def __init__(self, reservations: Iterable[Reservation] = ()) -> None:
        self.patterns = 0
        """Number of patterns in all."""
        self._reservations: list[Reservation] = []
        self._entries = GlobIndex[tuple[int, int]]()
        """Each pattern, as the number of its reservation and its own number in it."""
        for one in reservations:
            self.add(one)

    def add(self, one: Reservation) -> None:
        for number, pattern in enumerate(one.patterns):
            self._entries.add(pattern, (len(self._reservations), number))
        self._reservations.append(one)
        self.patterns += len(one.patterns)

    def find_conflicts(
        self, wanted_files: WantedFiles, find: FindTask
    ) -> Iterator[ReservationConflict]:
        """Each conflicting reservation of somebody else, by its first conflicting pattern."""
        collide = glob_matches if wanted_files.are_files else globs_overlap
        for number, patterns in groupby(self._nearby(wanted_files), key=lambda place: place[0]):
            one = self._reservations[number]
            if not (wanted_files.exclusive or one.exclusive) or _is_own(wanted_files, one, find):
                continue
            pairs = ((wanted_files.patterns[a], one.patterns[b]) for _, a, b in patterns)
            collision = next(
                ((wanted, kept) for wanted, kept in pairs if collide(kept, wanted)), None
            )
            if collision is not None:
                yield ReservationConflict(*collision, one)

    def _nearby(self, wanted_files: WantedFiles) -> list[tuple[int, int, int]]:
        """Candidates to compare: numbers of a reservation, a wanted and a reserved pattern."""
        return sorted(
            (number, wanted, reserved)
            for wanted, pattern in enumerate(wanted_files.patterns)
            for number, reserved in self._entries.find_near(pattern)
        )


def _is_own(wanted_files: WantedFiles, one: Reservation, find: FindTask) -> bool:
    if wanted_files.task and wanted_files.task == one.task:
        return True
    return bool(wanted_files.name) and wanted_files.name == one.current_holder(find)


# --- fold -------------------------------------------------------------------------------------


def _fold_taken(state: Reservations | None, event: ReservationTaken, at: int) -> Reservations:
    del at
    new = Reservation(
        event.id,
        event.patterns,
        event.holder,
        event.until,
        event.exclusive,
        event.task,
        event.wave,
        event.reason,
        event.fence,
    )
    return Reservations((*(state.kept if state else ()), new))


def _fold_renewed(state: Reservations, event: ReservationRenewed, at: int) -> Reservations:
    del at
    return Reservations(
        tuple(replace(one, until=event.until) if one.id == event.id else one for one in state.kept)
    )


def _fold_ended(state: Reservations, event: ReservationsEnded, at: int) -> Reservations:
    del at
    return Reservations(tuple(one for one in state.kept if one.id not in event.ids))


RESERVATION_FOLDS: dict[type[ReservationEvent], Callable[[Any, Any, int], Reservations]] = {
    ReservationTaken: _fold_taken,
    ReservationRenewed: _fold_renewed,
    ReservationsEnded: _fold_ended,
}
"""Event -> fold: the reservations after it, from those before it (None at first) and its time."""


# --- decide -----------------------------------------------------------------------------------

_NOTHING_RESERVED = "nothing was reserved"


def decide_reserve_files(command: ReserveFiles, read: Read, now: int) -> Decision | Refusal:
    """Reserve files for the caller; the same ones again extend the reservation."""
    patterns = normalize_patterns(command.patterns)
    refusal = (
        check_write(read.actor)
        or check_patterns("patterns", patterns, least=1)
        or _check_breadth(patterns, read.actor)
        or _check_duration(command.ttl_ms, read.actor)
        or check_text("reason", command.reason, MAX_REASON)
    )
    if refusal:
        return refusal
    attempt = _find_attempt(command.task, read) if command.task else ("", 0)
    if isinstance(attempt, Refusal):
        return attempt.with_path("task")
    task, fence = attempt
    name, until = read.actor.name, clamp_timestamp(now + command.ttl_ms)
    active = read.reservations().active(read.task, now)
    wanted_files = WantedFiles(patterns, name, task, command.exclusive)
    conflict = next(ReservationIndex(active).find_conflicts(wanted_files, read.task), None)
    if conflict is not None:
        return Refusal("files_reserved", format_conflict(conflict, read.task), path="patterns")
    same = (patterns, name, command.exclusive, task)
    for one in active:
        if (one.patterns, one.holder, one.exclusive, one.task) == same:
            return _extend(one.id, until, one)
    no_room = _check_room(patterns, active, read.actor)
    if no_room is not None:
        return no_room
    taken = ReservationTaken(
        read.cause,
        patterns,
        name,
        until,
        command.exclusive,
        task,
        reason=command.reason,
        fence=fence,
    )
    return _reservation_decision(read.cause, until, *expired_events(read, now), taken)


def decide_renew_reservations(
    command: RenewReservations, read: Read, now: int
) -> Decision | Refusal:
    """Extend reservations of the caller's own, never shorten them."""
    refusal = check_write(read.actor) or _check_duration(command.ttl_ms, read.actor)
    if refusal:
        return refusal
    named = _find_named(command.names, read, now, may_be_others=False)
    if isinstance(named, Refusal):
        return named.with_path("names")
    if not named:
        return not_found.reservations_of(read.actor.name)
    until = clamp_timestamp(now + command.ttl_ms)
    return _extend("", until, *named)


def decide_release_reservations(
    command: ReleaseReservations, read: Read, now: int
) -> Decision | Refusal:
    """Release reservations: the caller's own or, for roles that may delegate, anyone's."""
    refusal = check_write(read.actor)
    if refusal:
        return refusal
    may_release_others = read.actor.role in MAY_DELEGATE
    named = _find_named(command.names, read, now, may_be_others=may_release_others)
    if isinstance(named, Refusal):
        return named.with_path("names")
    if not named:
        decision = _reservation_decision("", 0, *expired_events(read, now))
        return replace(decision, receipt=replace(decision.receipt, warning=_NOTHING_RESERVED))
    ended = ReservationsEnded(tuple(one.id for one in named), "released")
    decision = _reservation_decision("", 0, *expired_events(read, now), ended)
    return replace(decision, receipt=replace(decision.receipt, ended_reservations=ended.ids))


# --- events of reservations -------------------------------------------------------------------


def expired_events(read: Read, now: int) -> Iterator[ReservationEvent]:
    """Entry for reservations that have expired, written with the next change."""
    expired = tuple(one.id for one in read.reservations().kept if not one.is_active(read.task, now))
    if expired:
        yield ReservationsEnded(expired, "over")


def reservation_events(*events: ReservationEvent) -> StreamEvents:
    """Events of reservations, with their stream."""
    return tuple((RESERVATIONS_STREAM, event) for event in events)


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


# --- wording ----------------------------------------------------------------------------------


def format_conflict(conflict: ReservationConflict, find: FindTask) -> str:
    """Sentence that names the holder of the files, the pattern, and the end of the reservation."""
    return (
        f"{conflict.wanted} is reserved by {format_holder(conflict.by, find)} as "
        f"{conflict.reserved} "
        f"{format_end(conflict.by)}: take other files, ask for it, or wait"
    )


def format_holder(one: Reservation, find: FindTask) -> str:
    """Holder of a reservation, in words."""
    worker = one.current_holder(find)
    if not one.wave:
        return worker
    bead = f"bead {one.task} of wave {one.wave}"
    return f"{worker} for {bead}" if worker else bead


def format_end(one: Reservation) -> str:
    """End of a reservation, in words."""
    if one.until is None:
        return "until that bead has ended"
    return f"until {to_rfc3339(one.until)}"


# --- checks and lookups -----------------------------------------------------------------------


def _check_breadth(patterns: tuple[str, ...], actor: Actor) -> Refusal | None:
    """Refuse an agent's pattern that would cover everything."""
    too_broad = next(filter(is_only_wildcards, patterns), None)
    if too_broad is None or actor.role in MAY_DELEGATE:
        return None
    return Refusal(
        "not_authorized",
        f"{too_broad[:80]!a} would reserve everything, which only orchestrators, "
        "coordinators and people may do: name the folders and files that you will edit",
        path="patterns",
    )


def _check_duration(ttl_ms: int, actor: Actor) -> Refusal | None:
    bounds = LEASE_RANGE_MS if actor.role in MAY_DELEGATE else AGENT_RESERVATION_RANGE_MS
    return check_duration("the reservation", ttl_ms, *bounds, path="ttl_ms")


def _check_room(
    patterns: tuple[str, ...], active: tuple[Reservation, ...], actor: Actor
) -> Refusal | None:
    """Refuse more patterns than there is room for: among all, and in an agent's share."""
    shares = [(active, MAX_RESERVED_PATTERNS, "can be reserved at a time")]
    if actor.role not in MAY_DELEGATE:
        own = tuple(one for one in active if one.holder == actor.name)
        shares.append(
            (own, MAX_RESERVED_PATTERNS_PER_AGENT, f"can be reserved by {actor.name} at a time")
        )
    for among, most, words in shares:
        if sum(len(one.patterns) for one in among) + len(patterns) > most:
            return Refusal(
                "invalid_field",
                f"{most} patterns {words}, and no more are free: use one glob for many files, "
                "or wait until others are released",
                path="patterns",
            )
    return None


def _find_attempt(name: str, read: Read) -> tuple[str, int] | Refusal:
    """Task that files are reserved for, which must be in progress, and the attempt's fence."""
    task = read.task(name)
    if isinstance(task, Refusal):
        return task
    if task.status != "in-progress":
        return Refusal(
            "not_ready",
            f"{task.id} is {task.status}: files are reserved for a task while somebody works on "
            "it; claim it first, or reserve them without a task",
        )
    if read.actor.role == "agent" and task.assignee != read.actor.name:
        return Refusal(
            "unauthorized_agent",
            f"{task.id} is held by {task.assignee}: only the holder may do this",
        )
    return task.id, task.fence


def _find_named(
    names: tuple[str, ...], read: Read, now: int, *, may_be_others: bool
) -> list[Reservation] | Refusal:
    """Active reservations by ids or patterns; none named: all of the caller's."""
    active = read.reservations().active(read.task, now)
    own = [one for one in active if one.holder == read.actor.name]
    if not names:
        return own
    found: dict[str, Reservation] = {}
    for name in names:
        pattern = normalize_glob(name)
        matches = [one for one in active if name == one.id or pattern in one.patterns]
        usable = [one for one in matches if one in own] or (matches if may_be_others else [])
        if matches and not usable:
            return Refusal(
                "not_authorized",
                f"{name[:80]!a} is reserved by {format_holder(matches[0], read.task)}",
            )
        if not usable:
            return not_found.reservation(name)
        found |= {one.id: one for one in usable}
    return list(found.values())


def _extend(id: str, until: int, *reservations: Reservation) -> Decision:
    """Extend each to this time unless it ends later; the receipt has the first of their ends."""
    ends = {one.id: max(until, one.until or 0) for one in reservations}
    renewed = (ReservationRenewed(name, end) for name, end in ends.items())
    return _reservation_decision(id, min(ends.values()), *renewed)


def _reservation_decision(id: str, until: int, *events: ReservationEvent) -> Decision:
    receipt = Receipt("", None, expires_at=until, stream=f"reservation:{id}")
    return Decision(receipt, reservation_events(*events))
