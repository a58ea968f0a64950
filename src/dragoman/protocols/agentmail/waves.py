"""Operations of waves and file reservations (S-MAIL-10)."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_DELEGATE, MAY_WRITE
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_task_id, is_task_name
from dragoman.core.reservation import (
    DEFAULT_RESERVATION_MS,
    ReleaseReservations,
    ReserveFiles,
    check_patterns,
    find_conflicts,
    normalize_patterns,
)
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.wave import StartWave, WaveBead, wave_start_commands
from dragoman.engine.operation import (
    Facts,
    Fault,
    Operation,
    Plan,
    always,
    fault_from_refusal,
    query_operation,
    require_id,
    same_field_names,
    validate_shape,
)
from dragoman.engine.queries.waves import (
    find_reservations,
    find_wave,
    newest_waves,
    task_finder,
    wave_status,
)
from dragoman.engine.request import Commands, Committed
from dragoman.engine.schemas.waves import reservation_resource, wave_resource, wave_summary
from dragoman.protocols.agentmail.settings import DEFAULTS, Choices
from dragoman.protocols.agentmail.wire import CHECKPOINT_REASONS, FAILURE_TYPES

# --- arguments --------------------------------------------------------------------------------

_RETRY_REASONS: Final = tuple(dict.fromkeys((*FAILURE_TYPES, *CHECKPOINT_REASONS)))
"""Reasons after which an attempt may be retried."""


class BeadSpec(Struct, frozen=True, forbid_unknown_fields=True):
    """A bead, and the files that its worker will write."""

    id: str
    title: str = ""
    files: tuple[str, ...] = ()
    """Paths and globs from the root of the repository."""


class WaveStart(Struct, frozen=True, forbid_unknown_fields=True):
    """A wave to start."""

    beads: tuple[str | BeadSpec, ...]
    """Beads in the order in which they start; unknown ones become tasks."""
    parallel: int
    """Limit of beads that are ready or in progress at a time."""
    wave_id: str | None = None
    """Id of the wave; without one the hub gives it an id."""
    retries: dict[str, int] = {}
    """Type of failure, such as TESTS_FAIL -> number of retries of a bead after it."""
    orchestrator: str = ""
    """Recipient of the closing report; empty: the caller."""


class WaveRef(Struct, frozen=True, forbid_unknown_fields=True):
    """A wave, by its id."""

    wave_id: str


class WaveListQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Number of the newest waves to list."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class ReservationRequest(Struct, frozen=True, forbid_unknown_fields=True):
    """Files to reserve; the same ones again are reserved for longer."""

    patterns: tuple[str, ...]
    """Paths and globs from the root of the repository; `src/` includes everything in it."""
    ttl_ms: int = DEFAULT_RESERVATION_MS
    reason: str = ""


class ReservationRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """Reservations to release, by their ids or patterns; none named: all of the caller's."""

    names: tuple[str, ...] = ()


class ReservationQuery(Struct, frozen=True, forbid_unknown_fields=True):
    """Reservations to list: all, or those that conflict with these files."""

    patterns: tuple[str, ...] = ()


_WAVE_FIELD_NAMES: Final = {
    **same_field_names(WaveStart),
    "id": "wave_id",
    "report_to": "orchestrator",
}


# --- operations -------------------------------------------------------------------------------


def operations(choices: Choices = DEFAULTS) -> tuple[Operation, ...]:
    """Build the operations of waves and reservations."""
    return (*_wave_operations(choices), *_reservation_operations())


def _wave_operations(choices: Choices) -> Iterator[Operation]:
    yield Operation(
        name="wave.start",
        input=WaveStart,
        parse=lambda value: require_id(validate_shape(value, WaveStart), "wave_id", "wave id"),
        roles=MAY_DELEGATE,
        plan=lambda message, _, facts: _start_wave(message, facts, choices),
        needs_io=always,
        reply=lambda _, __, accepted: {"wave_id": accepted.subject_id},
        summary="Run beads as a wave: at most so many in parallel, never two on the same files.",
    )
    yield query_operation(
        "wave.status", WaveRef, _query_wave, "Show the status of a wave and what it waits for."
    )
    yield query_operation("wave.list", WaveListQuery, _query_waves, "List the newest waves.")


def _reservation_operations() -> Iterator[Operation]:
    field_names = same_field_names(ReservationRequest) | same_field_names(ReservationRelease)
    yield Operation(
        name="reserve.take",
        input=ReservationRequest,
        roles=MAY_WRITE,
        plan=lambda asked, _, __: Plan(
            (ReserveFiles(asked.patterns, asked.ttl_ms, asked.reason),), field_names=field_names
        ),
        reply=_reservation_reply,
        summary="Reserve files before you edit them, or keep them for longer.",
    )
    yield Operation(
        name="reserve.release",
        input=ReservationRelease,
        roles=MAY_WRITE,
        plan=lambda asked, _, __: Plan(
            (ReleaseReservations(asked.names),), field_names=field_names
        ),
        reply=lambda _, __, accepted: {"released": accepted.receipts[0].ended_reservations},
        summary="Release reserved files.",
    )
    yield query_operation(
        "reserve.list",
        ReservationQuery,
        _query_reservations,
        "List reserved files and their holders.",
    )


def _start_wave(arguments: WaveStart, facts: Facts, choices: Choices) -> Plan | Fault:
    unknown = next((type for type in arguments.retries if type not in _RETRY_REASONS), None)
    if unknown is not None:
        known = ", ".join(_RETRY_REASONS)
        detail = f"{unknown[:40]!a} is not a type of failure; known: {known}"
        return Fault("invalid_field", detail, "retries")
    beads = [BeadSpec(bead) if isinstance(bead, str) else bead for bead in arguments.beads]
    for index, bead in enumerate(beads):
        refusal = None if is_task_name(bead.id) else check_task_id(bead.id)
        if refusal is not None:
            return fault_from_refusal(refusal, f"beads[{index}]")
    wave = StartWave(
        tuple(WaveBead(bead.id, bead.files) for bead in beads),
        arguments.parallel,
        arguments.wave_id or "",
        arguments.retries,
        arguments.orchestrator,
    )
    if wave.id and not isinstance(find_wave(facts.store, wave.id), Refusal):
        # A repeated or refused start changes no beads.
        return Plan((wave,), field_names=_WAVE_FIELD_NAMES)
    commands = wave_start_commands(
        wave,
        {bead.id: bead.title for bead in beads},
        review_required=choices.review_required,
        max_attempts=choices.max_attempts,
    )
    return Plan(commands, field_names=_WAVE_FIELD_NAMES)


def _query_wave(arguments: WaveRef, _: Actor, facts: Facts) -> Any:
    wave = find_wave(facts.store, arguments.wave_id)
    if isinstance(wave, Refusal):
        return fault_from_refusal(wave, "wave_id")
    return wave_resource(wave_status(facts.store, wave, facts.now()))


def _query_waves(arguments: WaveListQuery, _: Actor, facts: Facts) -> Any:
    find_task = task_finder(facts.store)
    waves = newest_waves(facts.store, arguments.limit)
    return {"waves": [wave_summary(wave, find_task) for wave in waves]}


def _reservation_reply(arguments: ReservationRequest, _: Commands, accepted: Committed) -> Any:
    return {
        "id": accepted.subject_id,
        "patterns": normalize_patterns(arguments.patterns),
        "until": to_rfc3339(accepted.receipts[0].expires_at),
    }


def _query_reservations(arguments: ReservationQuery, _: Actor, facts: Facts) -> Any:
    reserved = find_reservations(facts.store, facts.now())
    if arguments.patterns:
        patterns = normalize_patterns(arguments.patterns)
        refusal = check_patterns("patterns", patterns)
        if refusal is not None:
            return fault_from_refusal(refusal, "patterns")
        reserved = tuple(conflict.by for conflict in find_conflicts(patterns, reserved))
    return {"reservations": list(map(reservation_resource, reserved))}
