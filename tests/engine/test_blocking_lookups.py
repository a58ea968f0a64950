"""Thread batcher: calls of one loop tick share a thread, and each gets its own result."""

import asyncio
import threading
from time import thread_time

import pytest

from dragoman.engine.blocking_lookups import BlockingLookups, parse_aside
from tests.requirements import proves

MANY = 40


@proves("ENGINE-ASIDE")
def test_each_call_gets_its_own_result_outside_the_loop_thread() -> None:
    threads: set[int] = set()
    batcher = BlockingLookups()

    def call(number: int) -> int:
        threads.add(threading.get_ident())
        return number

    async def gather_all() -> list[int]:
        return await asyncio.gather(
            *(batcher.run(lambda n=number: call(n)) for number in range(MANY))
        )

    assert asyncio.run(gather_all()) == list(range(MANY))
    assert threading.get_ident() not in threads


@proves("ENGINE-ASIDE")
def test_calls_behind_an_idle_call_are_spread_over_more_threads() -> None:
    batcher, never = BlockingLookups(), threading.Event()
    together = threading.Barrier(2, timeout=30)

    async def gather_all() -> None:
        # The first call is idle for long. Of those after it two wait for each other: in one thread
        # neither would end.
        slow = batcher.run(lambda: never.wait(0.02))
        await asyncio.gather(slow, *(batcher.run(together.wait) for _ in range(2)))

    asyncio.run(gather_all())


@proves("ENGINE-ASIDE")
def test_busy_calls_share_one_thread() -> None:
    threads, batcher = set[int](), BlockingLookups(idle_seconds=lambda: 0.0)

    def busy_call() -> None:
        threads.add(threading.get_ident())
        end = thread_time() + 0.001
        while thread_time() < end:
            pass

    async def gather_all() -> None:
        await asyncio.gather(*(batcher.run(busy_call) for _ in range(MANY)))

    asyncio.run(gather_all())
    assert len(threads) == 1


@proves("ENGINE-ASIDE")
def test_call_behind_a_slow_call_does_not_wait_for_it() -> None:
    batcher, third_called = BlockingLookups(slow_call_s=0.01), threading.Event()

    async def gather_all() -> tuple[bool, int, None]:
        return await asyncio.gather(
            # In one thread the first call would wait for the last one until its timeout.
            batcher.run(lambda: third_called.wait(30)),
            batcher.run(lambda: 7),
            batcher.run(third_called.set),
        )

    assert list(asyncio.run(gather_all())) == [True, 7, None]


@proves("ENGINE-ASIDE")
def test_fast_batch_starts_no_second_thread() -> None:
    batcher, never = BlockingLookups(idle_seconds=lambda: 0.0, slow_call_s=0.05), threading.Event()
    threads = set[int]()

    async def gather_all() -> None:
        first = batcher.run(lambda: never.wait(0.005))
        others = (batcher.run(lambda: threads.add(threading.get_ident())) for _ in range(3))
        await asyncio.gather(first, *others)
        await asyncio.sleep(0.1)

    asyncio.run(gather_all())
    assert len(threads) == 1


@proves("ENGINE-ASIDE")
def test_missing_executor_fails_every_pending_call() -> None:
    batcher = BlockingLookups()

    async def gather_all() -> tuple[int | BaseException, int | BaseException]:
        await asyncio.get_running_loop().shutdown_default_executor()
        return await asyncio.gather(
            batcher.run(lambda: 1), batcher.run(lambda: 2), return_exceptions=True
        )

    assert all(isinstance(one, RuntimeError) for one in asyncio.run(gather_all()))


@proves("ENGINE-ASIDE")
def test_stop_iteration_is_raised_as_runtime_error() -> None:
    async def gather_all() -> int:
        return await BlockingLookups().run(lambda: next(iter(list[int]())))

    with pytest.raises(RuntimeError, match="StopIteration"):
        asyncio.run(gather_all())


@proves("ENGINE-ASIDE")
def test_exception_reaches_only_its_own_caller() -> None:
    batcher = BlockingLookups()

    def fail() -> int:
        raise OSError("the disk is gone")

    async def gather_all() -> tuple[int | BaseException, int | BaseException]:
        return await asyncio.gather(
            batcher.run(fail), batcher.run(lambda: 7), return_exceptions=True
        )

    fault, answer = asyncio.run(gather_all())
    assert isinstance(fault, OSError)
    assert answer == 7


@proves("ENGINE-ASIDE")
def test_cancelled_caller_is_skipped() -> None:
    batcher, may_end = BlockingLookups(), threading.Event()

    async def gather_all() -> int:
        cancelled = asyncio.create_task(batcher.run(lambda: may_end.wait(30)))
        other = asyncio.create_task(batcher.run(lambda: 7))
        await asyncio.sleep(0)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        may_end.set()
        return await other

    assert asyncio.run(gather_all()) == 7


@proves("ENGINE-ASIDE")
def test_long_texts_are_parsed_one_after_the_other_outside_the_loop_thread() -> None:
    parsing, threads = list[int](), set[int]()

    def parse(number: int) -> int:
        parsing.append(number)
        threads.add(threading.get_ident())
        assert parsing == [number], "another one is parsed at the same time"
        parsing.clear()
        return number

    async def parse_all() -> list[int]:
        return await asyncio.gather(*(parse_aside(parse, number) for number in range(MANY)))

    assert asyncio.run(parse_all()) == list(range(MANY))
    assert len(threads) == 1
    assert threading.get_ident() not in threads
