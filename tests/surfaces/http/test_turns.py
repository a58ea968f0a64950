"""Turns: of a crowd a few at a time, and each once however often the ledger grows."""

import asyncio

from dragoman.surfaces.http.seat import Seat
from dragoman.surfaces.http.turns import FEW, TOGETHER, Turns
from tests.requirements import proves

pytestmark = proves("HTTP-STREAM-SLOW")

LONG_S = 30.0


class Counting(Seat):
    """A seat that counts how often it was rung."""

    rings = 0

    def ring(self) -> None:
        self.rings += 1
        super().ring()


def test_however_often_the_ledger_grows_each_of_a_crowd_is_told_once_in_a_round() -> None:
    async def run() -> list[int]:
        seats = [Counting() for _ in range(10 * FEW)]
        turns = Turns(seats)
        for _ in range(1_000):
            turns.for_all()
        # The others have to wait until those have written.
        assert sum(seat.rings for seat in seats) == TOGETHER
        assert all([await seat.wait(LONG_S) for seat in seats])
        # What has grown since those had their turn is in a second round, and there is no third.
        for seat in seats:
            seat.forget()
        turns.for_all()
        assert all([await seat.wait(LONG_S) for seat in seats])
        return [seat.rings for seat in seats]

    assert set(asyncio.run(run())) <= {2, 3}


def test_whoever_has_more_to_do_has_another_turn_and_keeps_nobody_from_theirs() -> None:
    async def run() -> None:
        greedy, *others = seats = [Counting() for _ in range(FEW + 1)]
        turns = Turns(seats)
        turns.for_all()
        while not all(seat.rings for seat in others):
            turns.for_one(greedy)
            assert await greedy.wait(LONG_S)
        assert all(seat.rings == 1 for seat in others)

    asyncio.run(run())


def test_a_few_are_told_at_once() -> None:
    async def run() -> None:
        seats = [Counting() for _ in range(FEW)]
        turns = Turns(seats)
        assert not turns.are_scarce
        turns.for_all()
        assert all(seat.rings for seat in seats)
        seats.append(Counting())
        assert turns.are_scarce

    asyncio.run(run())
