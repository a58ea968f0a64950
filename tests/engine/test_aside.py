"""Look-ups beside the loop: those of one turn share a thread, and each has its own end."""

import asyncio
import threading

import pytest

from dragoman.engine.aside import TOGETHER, Aside
from tests.requirements import proves


@proves("ENGINE-ASIDE")
def test_those_of_one_turn_go_together_in_their_order_and_apart_from_the_loop() -> None:
    seen: list[tuple[int, int]] = []
    aside = Aside()

    def look(number: int) -> int:
        seen.append((number, threading.get_ident()))
        return number

    async def ask() -> list[int]:
        return await asyncio.gather(
            *(aside.look(lambda n=number: look(n)) for number in range(TOGETHER))
        )

    assert asyncio.run(ask()) == list(range(TOGETHER))
    assert [number for number, _ in seen] == list(range(TOGETHER))
    assert len({thread for _, thread in seen}) == 1
    assert seen[0][1] != threading.get_ident()


@proves("ENGINE-ASIDE")
def test_more_than_go_together_do_not_wait_for_each_other() -> None:
    aside, both = Aside(), threading.Barrier(2, timeout=30)

    async def ask() -> None:
        # The first of each group waits for the other one: in one thread neither would end.
        meets = [0, TOGETHER]
        await asyncio.gather(
            *(
                aside.look(both.wait if number in meets else (lambda: 0))
                for number in range(TOGETHER + 1)
            )
        )

    asyncio.run(ask())


@proves("ENGINE-ASIDE")
def test_a_fault_reaches_whoever_asked_and_nobody_else() -> None:
    aside = Aside()

    def broken() -> int:
        raise OSError("the disk is gone")

    async def ask() -> tuple[int | BaseException, int | BaseException]:
        return await asyncio.gather(
            aside.look(broken), aside.look(lambda: 7), return_exceptions=True
        )

    fault, answer = asyncio.run(ask())
    assert isinstance(fault, OSError)
    assert answer == 7


@proves("ENGINE-ASIDE")
def test_whoever_stops_waiting_is_passed_over() -> None:
    aside, go_on = Aside(), threading.Event()

    async def ask() -> int:
        leaves = asyncio.create_task(aside.look(lambda: go_on.wait(30)))
        stays = asyncio.create_task(aside.look(lambda: 7))
        await asyncio.sleep(0)
        leaves.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaves
        go_on.set()
        return await stays

    assert asyncio.run(ask()) == 7
