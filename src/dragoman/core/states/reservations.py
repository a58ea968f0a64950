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
from dragoman.text.globs import Overlaps, means, overlap

RESERVATION_TTL_MS: Final = 3_600_000
"""Without another word, files are reserved for an hour."""

FindTask = Callable[[str], Task | Refusal]
"""The task with this name."""

_HELD: Final[frozenset[Status]] = frozenset({"in-progress"})
_LET_GO: Final[frozenset[Status]] = frozenset({"ready", "in-progress"})
"""A wave keeps the files of a bead from the moment it lets it go."""


class Reservation(Struct, frozen=True, omit_defaults=True):
    """Files in somebody's hands, or in those of whoever works on a bead of a wave."""

    id: str
    patterns: tuple[str, ...]
    holder: str = ""
    """Empty: whoever works on its task."""
    until: int | None = None
    """None: as long as its task is under way."""
    exclusive: bool = True
    task: str = ""
    wave: str = ""
    reason: str = ""
    fence: int = 0
    """Of the attempt that it was taken in; another attempt on the task does not revive it."""

    def is_live(self, find: FindTask, now: int) -> bool:
        """Whether it still stops others: its time is not over, and its task is under way."""
        if self.until is not None and now >= self.until:
            return False
        if not self.task:
            return True
        task = find(self.task)
        if isinstance(task, Refusal):
            return False
        if self.wave:
            return task.status in _LET_GO
        return task.status in _HELD and task.fence == self.fence

    def worker(self, find: FindTask) -> str:
        """Who has the files: the holder, or whoever works on the task; empty: nobody yet."""
        if self.holder:
            return self.holder
        task = find(self.task)
        return task.assignee if isinstance(task, Task) and task.status in _HELD else ""


class Reservations(Struct, frozen=True, omit_defaults=True):
    """All that was reserved and not given back, folded from the one stream of reservations."""

    kept: tuple[Reservation, ...] = ()

    def living(self, find: FindTask, now: int) -> tuple[Reservation, ...]:
        """Those that still stop others."""
        return tuple(one for one in self.kept if one.is_live(find, now))


class Wish(Struct, frozen=True):
    """Files that somebody would like to have."""

    patterns: tuple[str, ...]
    name: str = ""
    task: str = ""
    exclusive: bool = True
    are_files: bool = False
    """Whether its patterns are files as they are called, none of them a glob or a folder."""


class Conflict(Struct, frozen=True):
    """What stands in the way of a wish."""

    wanted: str
    reserved: str
    by: Reservation


class Shelf:
    """Reservations, found by the files that they are about."""

    def __init__(self, reservations: Iterable[Reservation] = ()) -> None:
        self.patterns = 0
        """How many patterns there are in all."""
        self._reservations: list[Reservation] = []
        self._places = Overlaps[tuple[int, int]]()
        """Each pattern, as the number of its reservation and its own number in it."""
        for one in reservations:
            self.add(one)

    def add(self, one: Reservation) -> None:
        """One more."""
        for number, pattern in enumerate(one.patterns):
            self._places.add(pattern, (len(self._reservations), number))
        self._reservations.append(one)
        self.patterns += len(one.patterns)

    def conflicts(self, wish: Wish, find: FindTask) -> Iterator[Conflict]:
        """Each reservation of somebody else that a wish collides with, by its first pattern."""
        collide = means if wish.are_files else overlap
        for number, patterns in groupby(self._near(wish), key=lambda place: place[0]):
            one = self._reservations[number]
            if not (wish.exclusive or one.exclusive) or _is_own(wish, one, find):
                continue
            pairs = ((wish.patterns[a], one.patterns[b]) for _, a, b in patterns)
            collision = next(
                ((wanted, kept) for wanted, kept in pairs if collide(kept, wanted)), None
            )
            if collision is not None:
                yield Conflict(*collision, one)

    def _near(self, wish: Wish) -> list[tuple[int, int, int]]:
        """What is worth a comparison: numbers of a reservation, a wanted and a reserved pattern."""
        return sorted(
            (number, wanted, reserved)
            for wanted, pattern in enumerate(wish.patterns)
            for number, reserved in self._places.near(pattern)
        )


def _is_own(wish: Wish, one: Reservation, find: FindTask) -> bool:
    if wish.task and wish.task == one.task:
        return True
    return bool(wish.name) and wish.name == one.worker(find)


def _taken(state: Reservations | None, event: ReservationTaken, at: int) -> Reservations:
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


def _renewed(state: Reservations, event: ReservationRenewed, at: int) -> Reservations:
    del at
    return Reservations(
        tuple(replace(one, until=event.until) if one.id == event.id else one for one in state.kept)
    )


def _ended(state: Reservations, event: ReservationsEnded, at: int) -> Reservations:
    del at
    return Reservations(tuple(one for one in state.kept if one.id not in event.ids))


EVOLVE_RESERVATIONS: dict[type[ReservationEvent], Callable[[Any, Any, int], Reservations]] = {
    ReservationTaken: _taken,
    ReservationRenewed: _renewed,
    ReservationsEnded: _ended,
}
"""Event -> the reservations after it, from those before it (None at first) and its time."""
