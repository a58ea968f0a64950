"""Events that Agent Mail renders: letters posted, read, acknowledged, answered or escalated."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from dragoman.core import mail
from dragoman.core.event_table import EVENT_NAMES, AnyEvent

_RENDERED_EVENTS: Final = (
    mail.MailPosted,
    mail.MailRead,
    mail.MailAcked,
    mail.MailAnswered,
    mail.MailEscalated,
)

RENDERERS: Final[Mapping[type[Any], Callable[[AnyEvent], Any] | None]] = {
    event: msgspec.to_builtins if event in _RENDERED_EVENTS else None for event in EVENT_NAMES
}
"""Event -> its renderer; None: deliberately not rendered, because it is about no letter."""
