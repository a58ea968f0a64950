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
"""Up to so many are told at once: they are no crowd."""
TOGETHER = 32
"""So many of a crowd have their turn at the same time."""
_REST = 4
"""How often the cost of a turn goes into the rest after it: a fifth of the loop is for turns."""
_LONGEST_REST_S = 0.1


class Turns:
    """Gives turns to those who are there, in the loop that all of them are in."""

    def __init__(self, everyone: Collection[Seat], waiting: Collection[Seat]) -> None:
        self._everyone = everyone
        self._waiting = waiting
        """Looked at when a round begins: who comes or goes meanwhile is in the next one, or not."""
        self._is_for_all = False
        self._asked: dict[Seat, None] = {}
        self._round: list[Seat] = []
        self._is_on = False

    @property
    def are_scarce(self) -> bool:
        """Whether there are so many that each has to wait for its turn."""
        return len(self._everyone) > FEW

    def for_all(self) -> None:
        """Everyone who waits shall have a turn; a few have it now."""
        if self.are_scarce:
            self._is_for_all = True
            self._begin()
            return
        for seat in self._waiting:
            seat.ring()

    def for_one(self, seat: Seat) -> None:
        """One has more to do, and shall have another turn."""
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
        # In the next pass of the loop they run and write; in the one after that they have.
        loop.call_soon(loop.call_soon, self._rest, loop, begun)

    def _rest(self, loop: asyncio.AbstractEventLoop, begun: float) -> None:
        rest = min(_REST * (loop.time() - begun), _LONGEST_REST_S)
        loop.call_later(rest, self._some, loop)
