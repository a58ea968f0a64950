"""Which events a reader of ACP is told about: handoffs, what becomes of them, work items."""

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

import msgspec

from dragoman.core.events import EVENT_NAMES, AnyEvent, HandoffEvent, TaskHandedOver, WorkItemEvent

_RENDERED_EVENTS: Final = (*get_args(HandoffEvent), *get_args(WorkItemEvent), TaskHandedOver)

RENDERERS: Final[Mapping[type[Any], Callable[[AnyEvent], Any] | None]] = {
    event: msgspec.to_builtins if event in _RENDERED_EVENTS else None for event in EVENT_NAMES
}
"""Event -> its rendering; None: not rendered on purpose, because it concerns no handoff."""
