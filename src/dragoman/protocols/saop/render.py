"""Which events a reader of SAOP is told about: turns, traces, and every move of a task."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dragoman.core import events
from dragoman.core.events import EVENT_NAMES, AnyEvent
from dragoman.core.states.moves import STATUS_CHANGES

_RENDERED_EVENTS: Final = frozenset(
    {
        events.TurnRecorded,
        events.TraceRecorded,
        events.TraceAnomaly,
        events.EntropyEscalated,
        events.EntropySettled,
        *STATUS_CHANGES,
    }
)

RENDERERS: Final[Mapping[type[Any], Callable[[AnyEvent], Any] | None]] = {
    event: msgspec.to_builtins if event in _RENDERED_EVENTS else None for event in EVENT_NAMES
}
"""Event -> its renderer; None: deliberately not rendered."""
