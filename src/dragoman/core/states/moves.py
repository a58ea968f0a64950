"""The moves of a task: every event by which it changes its status, in one table."""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from dragoman.core.events import (
    EVENT_NAMES,
    AnyEvent,
    Event,
    Status,
    TaskClaimed,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
)

REPORTED: Final = "reported_"
STALE: Final = "stale_heartbeat_"
UNREPORTED: Final = "unreported_"
"""How the reason of a move begins that a report asks for, by its agent's word or by recovery, or
that the hub decides on where an agent has ended without one: the outcome follows."""
RESULT: Final = "result: "
"""The same of a move that the result of an intent asks for: whether it was a success follows."""
REPORTED_BLOCKED: Final = frozenset({f"{REPORTED}blocked", f"{STALE}blocked"})
"""What is in the way of such a task, its report says."""


class Move(Struct, frozen=True):
    """From one status to another, and why."""

    from_: Status
    to: Status
    reason: str = ""


MOVES: Final[dict[type[Event], Callable[[Any], Move]]] = {
    TaskClaimed: lambda event: Move(event.from_, "in-progress"),
    TaskTransitioned: lambda event: Move(event.from_, event.to, event.reason),
    TaskRequeued: lambda event: Move("in-progress", "ready", event.reason),
    TaskRewound: lambda event: Move(event.from_, event.to, event.reason),
}
"""Event -> the move that it is. The beginning of a task is none: it comes from nowhere."""

MOVE_NAMES: Final = frozenset(EVENT_NAMES[moved] for moved in MOVES)


def move_of(event: AnyEvent) -> Move | None:
    """The move that an event is, if it is one."""
    as_move = MOVES.get(type(event))
    return None if as_move is None else as_move(event)
