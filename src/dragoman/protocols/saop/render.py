"""Events that SAOP renders: turns, traces, entropy, and every transition of a task."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dragoman.core import trace
from dragoman.core.event_table import EVENT_NAMES, AnyEvent
from dragoman.core.task_state import STATUS_CHANGES

_RENDERED_EVENTS: Final = frozenset(
    {
        trace.TurnRecorded,
        trace.TraceRecorded,
        trace.TraceAnomaly,
        trace.EntropyEscalated,
        trace.EntropySettled,
        *STATUS_CHANGES,
    }
)

RENDERERS: Final[Mapping[type[Any], Callable[[AnyEvent], Any] | None]] = {
    event: msgspec.to_builtins if event in _RENDERED_EVENTS else None for event in EVENT_NAMES
}
"""Event -> its renderer; None: deliberately not rendered."""
