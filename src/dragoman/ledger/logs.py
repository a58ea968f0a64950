"""What the logs of agents are found by: the row beside each turn and each event of a trace.

The entry has the text. The row has what is unique about it (S-SAOP-3), and the task that it is of.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from dragoman.core.events import AnyEvent, TraceRecorded, TurnRecorded


class LogRow(Struct, frozen=True, gc=False):
    """The row of the agent logs that a turn or a trace event is found by.

    The entry has the text; the row has its unique key (S-SAOP-3), and its task.
    """

    task: str
    attempt: int
    turn_index: int | None
    """Of a turn; None: it is an event."""
    event_id: str | None
    """Of an event; None: it is a turn."""
    digest: str
    masked: bool
    """True if secrets were masked in it."""

    @property
    def key(self) -> str:
        """The key by which it is looked up."""
        if self.event_id is not None:
            return f"event:{self.event_id}"
        return f"turn:{self.task}/{self.attempt}/{self.turn_index}"


LOG_ROWS: Final[dict[type[AnyEvent], Callable[[Any], LogRow]]] = {
    TurnRecorded: lambda turn: LogRow(
        turn.task, turn.attempt, turn.turn_index, None, turn.digest, turn.masked
    ),
    TraceRecorded: lambda event: LogRow(
        event.task, event.attempt, None, event.event_id, event.digest, event.masked
    ),
}
"""Event -> its log row; other events have none."""


def log_row(event: AnyEvent) -> LogRow | None:
    """The row of an event, if it has one."""
    row_of = LOG_ROWS.get(type(event))
    return None if row_of is None else row_of(event)


def parse_log_key(key: str) -> tuple[str, int, int] | str:
    """Parse a key: task, attempt and index of a turn, or the id of a trace event."""
    kind, _, suffix = key.partition(":")
    if kind == "event":
        return suffix
    task, attempt, index = suffix.rsplit("/", 2)
    return task, int(attempt), int(index)
