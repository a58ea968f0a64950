"""The moves of a task: every event by which it changes its status, in one table."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from dragoman.core.events import (
    EVENT_NAMES,
    Event,
    Status,
    TaskClaimed,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
)

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

REPORTED: Final = "reported_"
STALE: Final = "stale_heartbeat_"
UNREPORTED: Final = "unreported_"
"""Prefixes of the reason of a status change; the outcome follows. REPORTED_PREFIX: by the report of
the agent; STALE_HEARTBEAT_PREFIX: by recovery of a silent attempt that had reported;
UNREPORTED_PREFIX: by the hub, where an agent ended without a report."""
RESULT: Final = "result: "
"""Prefix of the reason where the result of an intent asks for it; success or failure follows."""
REPORTED_BLOCKED: Final = frozenset({f"{REPORTED}blocked", f"{STALE}blocked"})
"""Reasons of a block whose obstacle is in the report."""


class Move(Struct, frozen=True):
    """A change of status, and its reason."""

    from_: Status
    to: Status
    reason: str = ""


MOVES: Final[dict[type[Event], Callable[[Any], Move]]] = {
    TaskClaimed: lambda event: Move(event.from_, "in-progress"),
    TaskTransitioned: lambda event: Move(event.from_, event.to, event.reason),
    TaskRequeued: lambda event: Move("in-progress", "ready", event.reason),
    TaskRewound: lambda event: Move(event.from_, event.to, event.reason),
}
"""Event -> its status change. The creation of a task is none: it comes from no status."""

MOVE_NAMES: Final = frozenset(EVENT_NAMES[moved] for moved in MOVES)


def move_of(event: "AnyEvent") -> Move | None:
    """Status change that an event makes, if it makes one."""
    as_move = MOVES.get(type(event))
    return None if as_move is None else as_move(event)
