"""Deciders of reservations: take files, keep them longer, give them back."""

from collections.abc import Iterator

from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DELEGATE, check_write
from dragoman.core.commands import ReleaseReservations, RenewReservations, ReserveFiles
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    ReservationEvent,
    ReservationRenewed,
    ReservationsEnded,
    ReservationTaken,
)
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
from dragoman.core.moments import clamp_timestamp, to_rfc3339
from dragoman.core.reading import Decision, Read, Receipt, StreamEvents
from dragoman.core.states.reservations import (
    FindTask,
    Reservation,
    ReservationConflict,
    ReservationIndex,
    WantedFiles,
)
from dragoman.text.globs import check_glob, is_only_wildcards, normalize_glob

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
        return Refusal("reserved", format_conflict(conflict, read.task), path="patterns")
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
        return missing.reservations_of(read.actor.name)
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
        return replace(decision, receipt=replace(decision.receipt, remark=_NOTHING_RESERVED))
    ended = ReservationsEnded(tuple(one.id for one in named), "released")
    decision = _reservation_decision("", 0, *expired_events(read, now), ended)
    return replace(decision, receipt=replace(decision.receipt, ended=ended.ids))


def expired_events(read: Read, now: int) -> Iterator[ReservationEvent]:
    """Entry for reservations that have expired, written with the next change."""
    expired = tuple(one.id for one in read.reservations().kept if not one.is_active(read.task, now))
    if expired:
        yield ReservationsEnded(expired, "over")


def reservation_events(*events: ReservationEvent) -> StreamEvents:
    """Events of reservations, with their stream."""
    return tuple((RESERVATIONS_STREAM, event) for event in events)


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
            return missing.reservation(name)
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
