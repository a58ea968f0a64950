"""The pause between two looks at the ledger, which also notices that nobody reads any more."""

import select
from collections.abc import Callable
from typing import TextIO

_PAUSE_MS = 200

Wait = Callable[[], bool]
"""Pauses; False when there is no reason to look again."""


def poll_while_read(stream: TextIO) -> Wait:
    """Pause for a moment at a time, until the reader of this stream has gone."""
    poll = select.poll()
    # No event is asked for: that the other end was closed is told all the same.
    poll.register(stream.fileno(), 0)
    return lambda: not poll.poll(_PAUSE_MS)
