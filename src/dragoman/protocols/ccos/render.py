"""Which events a reader of CCOS is told about: the Actions of the causal chain."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from dragoman.core.events import EVENT_NAMES
from dragoman.protocols.ccos.actions import ACTION_TYPES, render_entry

RENDERERS: Final[Mapping[type[Any], Callable[..., Any] | None]] = {
    event: render_entry if event in ACTION_TYPES else None for event in EVENT_NAMES
}
"""Event -> its rendering; None: not rendered on purpose, because it concerns no intent."""
