"""Turns: a crowd is told a few at a time, each once in a round; whoever is stalled, never."""

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


class Room:
    """So many seats, of which some are waited in."""

    def __init__(self, size: int) -> None:
        self.waiting: set[Seat] = set()
        self.seats = [Counting(self.waiting) for _ in range(size)]
        self.turns = Turns(self.seats, self.waiting)

    async def sit(self, count: int) -> list[asyncio.Task[bool]]:
        """The first so many wait for the ledger to grow; the others are busy."""
        tasks = [asyncio.create_task(seat.wait(LONG_S)) for seat in self.seats[:count]]
        await asyncio.sleep(0)
        assert len(self.waiting) == count
        return tasks

    @property
    def rings(self) -> list[int]:
        return [seat.rings for seat in self.seats]


def test_however_often_the_ledger_grows_each_of_a_crowd_is_told_once_in_a_round() -> None:
    async def run() -> list[int]:
        room = Room(10 * FEW)
        told = await room.sit(10 * FEW)
        for _ in range(1_000):
            room.turns.for_all()
        # The others have to wait until those have written.
        assert sum(room.rings) == TOGETHER
        assert all(await asyncio.gather(*told))
        told = await room.sit(10 * FEW)
        room.turns.for_all()
        assert all(await asyncio.gather(*told))
        return room.rings

    assert set(asyncio.run(run())) == {2}


def test_whoever_does_not_wait_has_no_turn() -> None:
    async def run() -> list[int]:
        room = Room(10 * FEW)
        told = await room.sit(3)
        for _ in range(3):
            room.turns.for_all()
        assert all(await asyncio.gather(*told))
        return room.rings

    assert sum(asyncio.run(run())) == 3


def test_whoever_has_more_to_do_has_another_turn_and_keeps_nobody_from_theirs() -> None:
    async def run() -> None:
        room = Room(FEW + 1)
        *others, greedy = room.seats
        told = await room.sit(FEW)
        room.turns.for_all()
        while not all(seat.rings for seat in others):
            room.turns.for_one(greedy)
            assert await greedy.wait(LONG_S)
        assert all(seat.rings == 1 for seat in others)
        await asyncio.gather(*told)

    asyncio.run(run())


def test_a_few_are_told_at_once() -> None:
    async def run() -> None:
        room = Room(FEW)
        told = await room.sit(FEW)
        assert not room.turns.are_scarce
        room.turns.for_all()
        assert room.rings == [1] * FEW
        assert all(await asyncio.gather(*told))
        room.seats.append(Counting(room.waiting))
        assert room.turns.are_scarce

    asyncio.run(run())
