"""Turns: a crowd that waits is told a few at a time, so that it never takes the whole loop.

However often the ledger grows, everyone who waits has one turn in a round, and a round begins when
the one before is over. What some of them cost is measured, and then the loop is left to others for
several times as long. Whoever does not wait has no turn and costs nothing: it looks at the ledger
before it waits again.
"""

import asyncio
from collections.abc import Collection

from dragoman.surfaces.http.seat import Waiter

MAX_UNBATCHED = 128
"""Up to so many waiters are woken at once, without batches."""
BATCH_SIZE = 32
"""Waiters of a batch."""
_PAUSE_FACTOR = 4
"""Pause after a batch, as a multiple of its cost: a fifth of the loop is for waking."""
_MAX_PAUSE_S = 0.1


class WakeupBatcher:
    """Wakes waiters in batches, so that a crowd never takes the whole event loop.

    However often the ledger grows, every blocked waiter is woken once in a round, and a round
    begins when the one before is over. The cost of a batch is measured, and then the loop is left
    to others for several times as long. A busy waiter is not woken and costs nothing: it compares
    its position with the head of the feed before it blocks again.
    """

    def __init__(self, waiters: Collection[Waiter], blocked: Collection[Waiter]) -> None:
        self._waiters = waiters
        self._blocked = blocked
        """Read when a round begins; a waiter that comes or goes meanwhile is in the next one, or
        not."""
        self._wakes_all = False
        self._requested: dict[Waiter, None] = {}
        self._round: list[Waiter] = []
        self._is_running = False

    @property
    def is_crowded(self) -> bool:
        """Return whether there are so many waiters that they are woken in batches."""
        return len(self._waiters) > MAX_UNBATCHED

    def wake_all(self) -> None:
        """Wake all blocked waiters; a few at once, a crowd in batches."""
        if self.is_crowded:
            self._wakes_all = True
            self._start()
            return
        for waiter in self._blocked:
            waiter.notify()

    def wake_one(self, waiter: Waiter) -> None:
        """Wake a waiter that has more to do."""
        self._requested[waiter] = None
        self._start()

    def _start(self) -> None:
        if not self._is_running:
            self._is_running = True
            self._wake_batch(asyncio.get_running_loop())

    def _wake_batch(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._round:
            self._round = [*(self._blocked if self._wakes_all else self._requested)]
            self._wakes_all = False
            self._requested.clear()
        if not self._round:
            self._is_running = False
            return
        started_at = loop.time()
        for waiter in self._round[-BATCH_SIZE:]:
            waiter.notify()
        del self._round[-BATCH_SIZE:]
        # In the next pass of the loop they run and write; in the one after that they are done.
        loop.call_soon(loop.call_soon, self._pause, loop, started_at)

    def _pause(self, loop: asyncio.AbstractEventLoop, started_at: float) -> None:
        pause_s = min(_PAUSE_FACTOR * (loop.time() - started_at), _MAX_PAUSE_S)
        loop.call_later(pause_s, self._wake_batch, loop)
