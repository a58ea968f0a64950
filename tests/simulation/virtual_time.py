"""Virtual time: an event loop without threads whose clock jumps to the next event.

A loop that would wait continues at once, and its clock says that it has waited. Work for threads
runs inline, so that a run has one order of events, and the same one each time.
"""

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START = 1_770_609_600_000
"""2026-02-09T04:00:00.000Z."""


class VirtualClock:
    """Milliseconds since the epoch, as the hub sees them."""

    def __init__(self) -> None:
        self.passed = 0

    def now(self) -> int:
        """Present time of the hub's clock."""
        return START + self.passed


class Deadlock(Exception):
    """Deadlock: every task waits for another one."""


class _VirtualSelector(selectors.BaseSelector):
    """Selector that never waits: there are no files, and timeouts end at once."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._keys: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        """Register the loop's own pipe, which is never written to."""
        key = self.get_map()[fileobj] = selectors.SelectorKey(fileobj, fileobj, events, data)
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.get_map().pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Advance the clock by the timeout."""
        if timeout is None:
            raise Deadlock
        self._clock.passed += math.ceil(timeout * 1_000 - 1e-3)
        return []

    def get_map(self) -> dict[Any, selectors.SelectorKey]:
        return self._keys


class VirtualLoop(asyncio.SelectorEventLoop):
    """Event loop on a virtual clock."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(_VirtualSelector(clock))
        self._virtual = clock

    def time(self) -> float:
        """Seconds since the start."""
        return self._virtual.passed / 1_000

    def call_at(self, when: float, callback: Any, *args: Any, context: Any = None) -> Any:
        """Schedule at a whole millisecond, rounded up: a task woken early would loop for ever."""
        whole = math.ceil(when * 1_000)
        late_enough = whole if whole / 1_000 >= when else whole + 1
        return super().call_at(late_enough / 1_000, callback, *args, context=context)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> Any:
        """Run it inline (`asyncio.to_thread` ends here)."""
        del executor
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except BaseException as error:  # noqa: BLE001  it is raised where the result is awaited
            future.set_exception(error)
        return future


def run(clock: VirtualClock, main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end, and cancel what it leaves behind."""
    loop = VirtualLoop(clock)
    # A killed hub leaves failed tasks behind; their errors are expected.
    loop.set_exception_handler(lambda _loop, _context: None)
    try:
        return loop.run_until_complete(main)
    finally:
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*pending, return_exceptions=True))
        loop.close()
