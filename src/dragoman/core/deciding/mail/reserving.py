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
from dragoman.core.ids import RESERVATIONS
from dragoman.core.limits import (
    AGENT_RESERVES_MS,
    PATTERN,
    PATTERNS,
    REASON,
    RESERVED,
    RESERVED_EACH,
    TTL_MS,
    check_count,
    check_duration,
    check_text,
)
from dragoman.core.moments import to_rfc3339, within_span
from dragoman.core.reading import Decision, Read, Receipt, StreamEvents
from dragoman.core.states.reservations import Conflict, FindTask, Reservation, Shelf, Wish
from dragoman.text.globs import names_nothing, tidy_glob, why_no_glob

_NOTHING_RESERVED = "nothing was reserved"


def take(command: ReserveFiles, read: Read, now: int) -> Decision | Refusal:
    """Reserve files for the caller; the same ones again extend the reservation."""
    patterns = tidied(command.patterns)
    refusal = (
        check_write(read.actor)
        or check_patterns("patterns", patterns, least=1)
        or _check_breadth(patterns, read.actor)
        or _check_time(command.ttl_ms, read.actor)
        or check_text("reason", command.reason, REASON)
    )
    if refusal:
        return refusal
    attempt = _attempt_on(command.task, read) if command.task else ("", 0)
    if isinstance(attempt, Refusal):
        return attempt.at("task")
    task, fence = attempt
    name, until = read.actor.name, within_span(now + command.ttl_ms)
    living = read.reservations().living(read.task, now)
    wish = Wish(patterns, name, task, command.exclusive)
    conflict = next(Shelf(living).conflicts(wish, read.task), None)
    if conflict is not None:
        return Refusal("reserved", describe(conflict, read.task), path="patterns")
    same = (patterns, name, command.exclusive, task)
    for one in living:
        if (one.patterns, one.holder, one.exclusive, one.task) == same:
            return _kept_longer(one.id, until, one)
    full = _check_room(patterns, living, read.actor)
    if full is not None:
        return full
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
    return _told(read.cause, until, *swept(read, now), taken)


def renew(command: RenewReservations, read: Read, now: int) -> Decision | Refusal:
    """Extend reservations of the caller's own, never shorten them."""
    refusal = check_write(read.actor) or _check_time(command.ttl_ms, read.actor)
    if refusal:
        return refusal
    meant = _meant(command.names, read, now, may_be_anyones=False)
    if isinstance(meant, Refusal):
        return meant.at("names")
    if not meant:
        return missing.reservations_of(read.actor.name)
    until = within_span(now + command.ttl_ms)
    return _kept_longer("", until, *meant)


def release(command: ReleaseReservations, read: Read, now: int) -> Decision | Refusal:
    """Release reservations: the caller's own or, for roles that may delegate, anyone's."""
    refusal = check_write(read.actor)
    if refusal:
        return refusal
    may_be_anyones = read.actor.role in MAY_DELEGATE
    meant = _meant(command.names, read, now, may_be_anyones=may_be_anyones)
    if isinstance(meant, Refusal):
        return meant.at("names")
    if not meant:
        told = _told("", 0, *swept(read, now))
        return replace(told, receipt=replace(told.receipt, remark=_NOTHING_RESERVED))
    ended = ReservationsEnded(tuple(one.id for one in meant), "released")
    told = _told("", 0, *swept(read, now), ended)
    return replace(told, receipt=replace(told.receipt, ended=ended.ids))


def swept(read: Read, now: int) -> Iterator[ReservationEvent]:
    """Entry for reservations that have expired, written with the next change."""
    over = tuple(one.id for one in read.reservations().kept if not one.is_live(read.task, now))
    if over:
        yield ReservationsEnded(over, "over")


def on_record(*events: ReservationEvent) -> StreamEvents:
    """Events of reservations, with their stream."""
    return tuple((RESERVATIONS, event) for event in events)


def tidied(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """Patterns in their stored form, each once."""
    return tuple(dict.fromkeys(map(tidy_glob, patterns)))


def check_patterns(
    what: str, patterns: tuple[str, ...], *, least: int = 0, field: str = ""
) -> Refusal | None:
    """Refuse patterns that cannot name files of a repository, or too many; `field`: where they
    stand, if that is not `what`.
    """
    wrong = next(_faults(what, patterns, least), None)
    return wrong and wrong.at(field or what)


def _faults(what: str, patterns: tuple[str, ...], least: int) -> Iterator[Refusal]:
    if len(patterns) < least:
        yield Refusal("invalid_field", f"{what} names no file; name a path or a glob")
    if too_many := check_count(what, patterns, PATTERNS):
        yield too_many
    yield from filter(None, (_check_pattern(what, pattern) for pattern in patterns))


def _check_pattern(field: str, pattern: str) -> Refusal | None:
    wrong = why_no_glob(pattern)
    if wrong is not None:
        return Refusal("invalid_field", f"{field}: {pattern[:80]!a} cannot be reserved: {wrong}")
    return check_text(field, pattern, PATTERN)


def describe(conflict: Conflict, find: FindTask) -> str:
    """Sentence that names the holder of the files, the pattern, and the end of the reservation."""
    return (
        f"{conflict.wanted} is reserved by {whose(conflict.by, find)} as {conflict.reserved} "
        f"{how_long(conflict.by)}: take other files, ask for it, or wait"
    )


def whose(one: Reservation, find: FindTask) -> str:
    """Holder of a reservation, in words."""
    worker = one.worker(find)
    if not one.wave:
        return worker
    bead = f"bead {one.task} of wave {one.wave}"
    return f"{worker} for {bead}" if worker else bead


def how_long(one: Reservation) -> str:
    """End of a reservation, in words."""
    if one.until is None:
        return "until that bead has ended"
    return f"until {to_rfc3339(one.until)}"


def _check_breadth(patterns: tuple[str, ...], actor: Actor) -> Refusal | None:
    """Refuse an agent's pattern that would cover everything."""
    too_broad = next(filter(names_nothing, patterns), None)
    if too_broad is None or actor.role in MAY_DELEGATE:
        return None
    return Refusal(
        "not_authorized",
        f"{too_broad[:80]!a} would reserve everything, which only orchestrators, "
        "coordinators and people may do: name the folders and files that you will edit",
        path="patterns",
    )


def _check_time(ttl_ms: int, actor: Actor) -> Refusal | None:
    bounds = TTL_MS if actor.role in MAY_DELEGATE else AGENT_RESERVES_MS
    return check_duration("the reservation", ttl_ms, *bounds, path="ttl_ms")


def _check_room(
    patterns: tuple[str, ...], living: tuple[Reservation, ...], actor: Actor
) -> Refusal | None:
    """Refuse more patterns than there is room for: among all, and in an agent's share."""
    shares = [(living, RESERVED, "can be reserved at a time")]
    if actor.role not in MAY_DELEGATE:
        own = tuple(one for one in living if one.holder == actor.name)
        shares.append((own, RESERVED_EACH, f"can be reserved by {actor.name} at a time"))
    for among, most, words in shares:
        if sum(len(one.patterns) for one in among) + len(patterns) > most:
            return Refusal(
                "invalid_field",
                f"{most} patterns {words}, and no more are free: use one glob for many files, "
                "or wait until others are released",
                path="patterns",
            )
    return None


def _attempt_on(name: str, read: Read) -> tuple[str, int] | Refusal:
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


def _meant(
    names: tuple[str, ...], read: Read, now: int, *, may_be_anyones: bool
) -> list[Reservation] | Refusal:
    """Active reservations by ids or patterns; none named: all of the caller's."""
    living = read.reservations().living(read.task, now)
    own = [one for one in living if one.holder == read.actor.name]
    if not names:
        return own
    found: dict[str, Reservation] = {}
    for name in names:
        pattern = tidy_glob(name)
        hits = [one for one in living if name == one.id or pattern in one.patterns]
        usable = [one for one in hits if one in own] or (hits if may_be_anyones else [])
        if hits and not usable:
            return Refusal(
                "not_authorized", f"{name[:80]!a} is reserved by {whose(hits[0], read.task)}"
            )
        if not usable:
            return missing.reservation(name)
        found |= {one.id: one for one in usable}
    return list(found.values())


def _kept_longer(id: str, until: int, *meant: Reservation) -> Decision:
    """Extend each to this time unless it ends later; the receipt has the first of their ends."""
    ends = {one.id: max(until, one.until or 0) for one in meant}
    renewed = (ReservationRenewed(name, end) for name, end in ends.items())
    return _told(id, min(ends.values()), *renewed)


def _told(id: str, until: int, *events: ReservationEvent) -> Decision:
    about_it = Receipt("", None, expires_at=until, stream=f"reservation:{id}")
    return Decision(about_it, on_record(*events))
