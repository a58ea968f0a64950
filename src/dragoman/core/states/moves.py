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

REPORTED_PREFIX: Final = "reported_"
STALE_HEARTBEAT_PREFIX: Final = "stale_heartbeat_"
UNREPORTED_PREFIX: Final = "unreported_"
"""Prefixes of the reason of a status change; the outcome follows. REPORTED_PREFIX: by the report of
the agent; STALE_HEARTBEAT_PREFIX: by recovery of a silent attempt that had reported;
UNREPORTED_PREFIX: by the hub, where an agent ended without a report."""
RESULT_PREFIX: Final = "result: "
"""Prefix of the reason where the result of an intent asks for it; success or failure follows."""
REPORTED_BLOCKED_REASONS: Final = frozenset(
    {f"{REPORTED_PREFIX}blocked", f"{STALE_HEARTBEAT_PREFIX}blocked"}
)
"""Reasons of a block whose obstacle is in the report."""


class StatusChange(Struct, frozen=True):
    """A change of status, and its reason."""

    from_: Status
    to: Status
    reason: str = ""


STATUS_CHANGES: Final[dict[type[Event], Callable[[Any], StatusChange]]] = {
    TaskClaimed: lambda event: StatusChange(event.from_, "in-progress"),
    TaskTransitioned: lambda event: StatusChange(event.from_, event.to, event.reason),
    TaskRequeued: lambda event: StatusChange("in-progress", "ready", event.reason),
    TaskRewound: lambda event: StatusChange(event.from_, event.to, event.reason),
}
"""Event -> its status change. The creation of a task is none: it comes from no status."""

STATUS_CHANGE_NAMES: Final = frozenset(EVENT_NAMES[moved] for moved in STATUS_CHANGES)


def status_change_of(event: "AnyEvent") -> StatusChange | None:
    """Status change that an event makes, if it makes one."""
    to_change = STATUS_CHANGES.get(type(event))
    return None if to_change is None else to_change(event)
