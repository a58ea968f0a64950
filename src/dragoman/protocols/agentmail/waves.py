"""Operations of waves and reservations: start, look, reserve, release (S-MAIL-10)."""

from collections.abc import Iterator
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DELEGATE, MAY_WRITE
from dragoman.core.commands import (
    ReleaseReservations,
    RenewReservations,
    ReserveFiles,
    StartWave,
)
from dragoman.core.deciding.mail.reserving import check_patterns, tidied
from dragoman.core.deciding.mail.waving import commands_of_start
from dragoman.core.errors import Refusal
from dragoman.core.events import WaveBead
from dragoman.core.ids import check_task_id, is_task_name
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.reservations import RESERVATION_TTL_MS, Shelf, Wish
from dragoman.engine.faults import Fault, fault_of, in_shape, not_empty
from dragoman.engine.operation import Commands, Facts, Operation, as_called
from dragoman.engine.reads.waves import (
    Reserved,
    find_wave,
    look_at_wave,
    newest_waves,
    open_waves,
    reserved_now,
    task_finder,
)
from dragoman.engine.request import Accepted
from dragoman.engine.shown.waves import shown_briefly, shown_reservations, shown_wave
from dragoman.protocols.agentmail.asking import asking, reader
from dragoman.protocols.agentmail.settings import DEFAULTS, Choices
from dragoman.protocols.agentmail.words import CHECKPOINT_REASONS, FAILURE_TYPES

_COUNTED: Final = tuple(dict.fromkeys((*FAILURE_TYPES, *CHECKPOINT_REASONS)))
"""Reasons after which an attempt may be retried."""


class Bead(Struct, frozen=True, forbid_unknown_fields=True):
    """A bead, and the files that its worker will write."""

    id: str
    title: str = ""
    files: tuple[str, ...] = ()
    """Paths and globs from the root of the repository."""


class Start(Struct, frozen=True, forbid_unknown_fields=True):
    """A wave to start."""

    beads: tuple[str | Bead, ...]
    """Beads in the order in which they start; unknown ones become tasks."""
    parallel: int
    """Limit of beads that are ready or in progress at a time."""
    wave_id: str | None = None
    """Id of the wave; without one the hub gives it an id."""
    retries: dict[str, int] = {}
    """Type of failure, such as TESTS_FAIL -> number of retries of a bead after it."""
    orchestrator: str = ""
    """Recipient of the closing report; empty: the caller."""


class OneWave(Struct, frozen=True, forbid_unknown_fields=True):
    """A wave, by its id."""

    wave_id: str


class SomeWaves(Struct, frozen=True, forbid_unknown_fields=True):
    """Number of the newest waves to list."""

    limit: Annotated[int, Meta(ge=1, le=200)] = 20


class Take(Struct, frozen=True, forbid_unknown_fields=True):
    """Files to reserve."""

    patterns: tuple[str, ...]
    """Paths and globs from the root of the repository; `src/` includes everything in it."""
    ttl_ms: int = RESERVATION_TTL_MS
    exclusive: bool = True
    task: str = ""
    """Task that they are for; the reservation ends when nobody works on it any more."""
    reason: str = ""


class Renew(Struct, frozen=True, forbid_unknown_fields=True):
    """Reservations to extend, by their ids or patterns; none named: all of the caller's."""

    names: tuple[str, ...] = ()
    ttl_ms: int = RESERVATION_TTL_MS


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """Reservations to release, by their ids or patterns; none named: all of the caller's."""

    names: tuple[str, ...] = ()


class Reservations(Struct, frozen=True, forbid_unknown_fields=True):
    """Reservations to list: all, or those that conflict with these files."""

    patterns: tuple[str, ...] = ()


_OF_A_WAVE: Final = {**as_called(Start), "id": "wave_id", "told": "orchestrator"}


def operations(choices: Choices = DEFAULTS) -> tuple[Operation, ...]:
    """Build the operations of waves and reservations."""
    return (*_waves(choices), *_reservations())


def _waves(choices: Choices) -> Iterator[Operation]:
    yield Operation(
        name="wave.start",
        shape=Start,
        read=lambda value: not_empty(in_shape(value, Start), "wave_id", "wave id"),
        commands=lambda _: (),
        gather=lambda asked, _, facts: _start(asked, facts, choices),
        reply=lambda _, __, accepted: {"wave_id": accepted.name},
        roles=MAY_DELEGATE,
        fields=_OF_A_WAVE,
        summary="Run beads as a wave: at most so many in parallel, never two on the same files.",
    )
    yield asking(
        "wave.status", OneWave, _status, "Show the status of a wave and what it waits for."
    )
    yield asking("wave.list", SomeWaves, _list, "List the newest waves.")


def _reservations() -> Iterator[Operation]:
    yield Operation(
        name="reserve.take",
        shape=Take,
        read=reader(Take),
        commands=lambda asked: (
            ReserveFiles(asked.patterns, asked.ttl_ms, asked.exclusive, asked.task, asked.reason),
        ),
        reply=_taken,
        roles=MAY_WRITE,
        fields=as_called(Take),
        summary="Reserve files before you edit them.",
    )
    yield Operation(
        name="reserve.renew",
        shape=Renew,
        read=reader(Renew),
        commands=lambda asked: (RenewReservations(asked.names, asked.ttl_ms),),
        reply=lambda _, __, accepted: {"until": to_rfc3339(accepted.receipts[0].expires_at)},
        roles=MAY_WRITE,
        fields=as_called(Renew),
        summary="Renew reservations, counted from now; a reservation never gets shorter.",
    )
    yield Operation(
        name="reserve.release",
        shape=Release,
        read=reader(Release),
        commands=lambda asked: (ReleaseReservations(asked.names),),
        reply=_given_back,
        roles=MAY_WRITE,
        fields=as_called(Release),
        summary="Release reserved files.",
    )
    yield asking("reserve.list", Reservations, _reserved, "List reserved files and their holders.")


def _start(asked: Start, facts: Facts, choices: Choices) -> Commands | Fault:
    unknown = next((type for type in asked.retries if type not in _COUNTED), None)
    if unknown is not None:
        known = ", ".join(_COUNTED)
        detail = f"{unknown[:40]!a} is not a type of failure; known: {known}"
        return Fault("invalid_field", detail, "retries")
    beads = [Bead(bead) if isinstance(bead, str) else bead for bead in asked.beads]
    for index, bead in enumerate(beads):
        misnamed = None if is_task_name(bead.id) else check_task_id(bead.id)
        if misnamed is not None:
            return fault_of(misnamed, f"beads[{index}]")
    wave = StartWave(
        tuple(WaveBead(bead.id, bead.files) for bead in beads),
        asked.parallel,
        asked.wave_id or "",
        asked.retries,
        asked.orchestrator,
        tuple(open_waves(facts.store)),
    )
    if wave.id and not isinstance(find_wave(facts.store, wave.id), Refusal):
        return (wave,)  # a repeated or refused start changes no beads
    return commands_of_start(
        wave,
        {bead.id: bead.title for bead in beads},
        review_required=choices.review_required,
        max_attempts=choices.max_attempts,
    )


def _status(asked: OneWave, _: Actor, facts: Facts) -> Any:
    wave = find_wave(facts.store, asked.wave_id)
    if isinstance(wave, Refusal):
        return fault_of(wave, "wave_id")
    return shown_wave(look_at_wave(facts.store, wave, facts.now()))


def _list(asked: SomeWaves, _: Actor, facts: Facts) -> Any:
    find = task_finder(facts.store)
    waves = newest_waves(facts.store, asked.limit)
    return {"waves": [shown_briefly(wave, find) for wave in waves]}


def _taken(asked: Take, _: Commands, accepted: Accepted) -> Any:
    return {
        "id": accepted.name,
        "patterns": tidied(asked.patterns),
        "mode": "exclusive" if asked.exclusive else "shared",
        "until": to_rfc3339(accepted.receipts[0].expires_at),
    }


def _given_back(_: Release, __: Commands, accepted: Accepted) -> Any:
    told = accepted.receipts[0]
    return {"released": told.ended, **({"remark": told.remark} if told.remark else {})}


def _reserved(asked: Reservations, _: Actor, facts: Facts) -> Any:
    reserved = reserved_now(facts.store, facts.now())
    if asked.patterns:
        wrong = check_patterns("patterns", tidied(asked.patterns))
        if wrong is not None:
            return fault_of(wrong, "patterns")
        found = Shelf(reserved.living).conflicts(Wish(tidied(asked.patterns)), reserved.find)
        reserved = Reserved(tuple(conflict.by for conflict in found), reserved.find)
    return {"reservations": shown_reservations(reserved)}
