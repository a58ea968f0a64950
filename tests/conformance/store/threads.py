"""Threads for the suite: concurrent, with a timeout, and with their exceptions raised."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

TIMEOUT_S = 60.0
"""Seconds after which a test fails; far more than anything here takes."""

BLOCKED_AFTER_S = 0.3
"""Seconds after which a thread counts as blocked; a longer time only slows the test."""


def run_concurrently(works: Sequence[Callable[[], T]]) -> list[T]:
    """Run all calls at the same moment, each in its own thread."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], T]) -> T:
        start.wait(TIMEOUT_S)
        return work()

    with ThreadPoolExecutor(len(works)) as pool:
        return [future.result(TIMEOUT_S) for future in [pool.submit(run, work) for work in works]]


def start_thread(work: Callable[[], T]) -> "Future[T]":
    """Run a call in its own thread."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future
