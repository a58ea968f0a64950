"""Which events a reader of Agent Mail is told about: letters, and what becomes of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dragoman.core import events
from dragoman.core.events import EVENT_NAMES, AnyEvent

_RENDERED_EVENTS: Final = (
    events.MailPosted,
    events.MailRead,
    events.MailAcked,
    events.MailAnswered,
    events.MailEscalated,
)

RENDERERS: Final[Mapping[type[Any], Callable[[AnyEvent], Any] | None]] = {
    event: msgspec.to_builtins if event in _RENDERED_EVENTS else None for event in EVENT_NAMES
}
"""Event -> its renderer; None: deliberately not rendered, because it is about no letter."""
