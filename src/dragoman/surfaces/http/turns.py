"""Turns: a crowd that waits is told a few at a time, so that it never takes the whole loop.

However often the ledger grows, everyone who waits has one turn in a round, and a round begins when
the one before is over. What some of them cost is measured, and then the loop is left to others for
several times as long. Whoever does not wait has no turn and costs nothing: it looks at the ledger
before it waits again.
"""

import asyncio
from collections.abc import Collection

from dragoman.surfaces.http.seat import Seat

FEW = 128
"""Up to so many waiters are woken at once, without batches."""
TOGETHER = 32
"""Waiters of a batch."""
_REST = 4
"""Pause after a batch, as a multiple of its cost: a fifth of the loop is for waking."""
_LONGEST_REST_S = 0.1


class Turns:
    """Wakes waiters in batches, so that a crowd never takes the whole event loop.

    However often the ledger grows, every blocked waiter is woken once in a round, and a round
    begins when the one before is over. The cost of a batch is measured, and then the loop is left
    to others for several times as long. A busy waiter is not woken and costs nothing: it compares
    its position with the head of the feed before it blocks again.
    """

    def __init__(self, everyone: Collection[Seat], waiting: Collection[Seat]) -> None:
        self._everyone = everyone
        self._waiting = waiting
        """Read when a round begins; a waiter that comes or goes meanwhile is in the next one, or
        not."""
        self._is_for_all = False
        self._asked: dict[Seat, None] = {}
        self._round: list[Seat] = []
        self._is_on = False

    @property
    def are_scarce(self) -> bool:
        """Return whether there are so many waiters that they are woken in batches."""
        return len(self._everyone) > FEW

    def for_all(self) -> None:
        """Wake all blocked waiters; a few at once, a crowd in batches."""
        if self.are_scarce:
            self._is_for_all = True
            self._begin()
            return
        for seat in self._waiting:
            seat.ring()

    def for_one(self, seat: Seat) -> None:
        """Wake a waiter that has more to do."""
        self._asked[seat] = None
        self._begin()

    def _begin(self) -> None:
        if not self._is_on:
            self._is_on = True
            self._some(asyncio.get_running_loop())

    def _some(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._round:
            self._round = [*(self._waiting if self._is_for_all else self._asked)]
            self._is_for_all = False
            self._asked.clear()
        if not self._round:
            self._is_on = False
            return
        begun = loop.time()
        for seat in self._round[-TOGETHER:]:
            seat.ring()
        del self._round[-TOGETHER:]
        # In the next pass of the loop they run and write; in the one after that they are done.
        loop.call_soon(loop.call_soon, self._rest, loop, begun)

    def _rest(self, loop: asyncio.AbstractEventLoop, begun: float) -> None:
        rest = min(_REST * (loop.time() - begun), _LONGEST_REST_S)
        loop.call_later(rest, self._some, loop)
