"""Look-ups beside the loop: those of one turn share a thread, and each has its own end."""

import asyncio
import threading
from time import thread_time

import pytest

from dragoman.engine.aside import Aside
from tests.requirements import proves

MANY = 40


@proves("ENGINE-ASIDE")
def test_each_has_its_own_answer_from_apart_of_the_loop() -> None:
    threads: set[int] = set()
    aside = Aside()

    def look(number: int) -> int:
        threads.add(threading.get_ident())
        return number

    async def ask() -> list[int]:
        return await asyncio.gather(
            *(aside.look(lambda n=number: look(n)) for number in range(MANY))
        )

    assert asyncio.run(ask()) == list(range(MANY))
    assert threading.get_ident() not in threads


@proves("ENGINE-ASIDE")
def test_what_takes_long_goes_by_more_ways() -> None:
    aside, never = Aside(), threading.Event()
    together = threading.Barrier(2, timeout=30)

    async def ask() -> None:
        # The first one waits for long. Of those behind it two wait for each other: in one thread
        # neither would end.
        slow = aside.look(lambda: never.wait(0.02))
        await asyncio.gather(slow, *(aside.look(together.wait) for _ in range(2)))

    asyncio.run(ask())


@proves("ENGINE-ASIDE")
def test_however_much_there_is_to_do_it_goes_by_one_way() -> None:
    threads, aside = set[int](), Aside(idle=lambda: 0.0)

    def work() -> None:
        threads.add(threading.get_ident())
        end = thread_time() + 0.001
        while thread_time() < end:
            pass

    async def ask() -> None:
        await asyncio.gather(*(aside.look(work) for _ in range(MANY)))

    asyncio.run(ask())
    assert len(threads) == 1


@proves("ENGINE-ASIDE")
def test_behind_one_that_takes_long_nobody_stays() -> None:
    aside, comes = Aside(long=0.01), threading.Event()

    async def ask() -> tuple[bool, int, None]:
        return await asyncio.gather(
            # In one thread the first would wait for the last one until it gives up.
            aside.look(lambda: comes.wait(30)),
            aside.look(lambda: 7),
            aside.look(comes.set),
        )

    assert list(asyncio.run(ask())) == [True, 7, None]


@proves("ENGINE-ASIDE")
def test_where_all_were_looked_up_in_time_nobody_goes_by_another_way() -> None:
    aside, never = Aside(idle=lambda: 0.0, long=0.05), threading.Event()
    threads = set[int]()

    async def ask() -> None:
        first = aside.look(lambda: never.wait(0.005))
        others = (aside.look(lambda: threads.add(threading.get_ident())) for _ in range(3))
        await asyncio.gather(first, *others)
        await asyncio.sleep(0.1)

    asyncio.run(ask())
    assert len(threads) == 1


@proves("ENGINE-ASIDE")
def test_when_there_are_no_threads_any_more_everyone_is_told() -> None:
    aside = Aside()

    async def ask() -> tuple[int | BaseException, int | BaseException]:
        await asyncio.get_running_loop().shutdown_default_executor()
        return await asyncio.gather(
            aside.look(lambda: 1), aside.look(lambda: 2), return_exceptions=True
        )

    assert all(isinstance(one, RuntimeError) for one in asyncio.run(ask()))


@proves("ENGINE-ASIDE")
def test_what_no_future_takes_is_told_in_other_words() -> None:
    async def ask() -> int:
        return await Aside().look(lambda: next(iter(list[int]())))

    with pytest.raises(RuntimeError, match="StopIteration"):
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
