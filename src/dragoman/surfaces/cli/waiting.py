"""The pause between two looks at the ledger, which also notices that nobody reads any more."""

import select
from collections.abc import Callable
from typing import TextIO

_PAUSE_MS = 200

PollPause = Callable[[], bool]
"""Pauses; False when polling should stop."""


def pause_while_reader_listens(stream: TextIO) -> PollPause:
    """Make a pause of 200 ms that ends polling when the reader closes the stream."""
    poll = select.poll()
    # No event is registered: poll reports a closed peer all the same.
    poll.register(stream.fileno(), 0)
    return lambda: not poll.poll(_PAUSE_MS)
