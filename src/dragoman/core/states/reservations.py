"""Files that somebody has reserved: which reservations live, whose they are, what they stop."""

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import Refusal
from dragoman.core.events import (
    ReservationEvent,
    ReservationRenewed,
    ReservationsEnded,
    ReservationTaken,
    Status,
)
from dragoman.core.states.task import Task
from dragoman.text.globs import GlobIndex, glob_matches, globs_overlap

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
