"""A waiter: one stream or long poll blocked until entries are committed.

It is notified while it is blocked. A busy one compares its position with the head of the feed
before it blocks again. A notification can be handled inline, in the event loop; the coroutine of
the waiter wakes up only for what cannot be done there.
"""

import asyncio
import logging
from collections.abc import Callable

_log = logging.getLogger("dragoman.http")


class Waiter:
    """A stream or long poll that waits for the ledger to grow."""

    def __init__(self, blocked: "set[Waiter]") -> None:
        self._blocked = blocked
        """The waiters that are blocked right now; a busy one is not among them, nor one whose
        connection is full."""
        self.loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] | None = None
        self._inline_handler: Callable[[], bool] | None = None
        self._is_notified = False
        self.is_closed = False
        """True if its client is disconnected, its token has ended, or the hub stops."""
        self.disconnected = False
        """True if it is closed because its connection has ended."""

    def notify(self) -> None:
        """Run the inline handler if it is blocked with one; else end the wait, this one or the
        next."""
        if not self._run_inline_handler():
            self._wake()

    def _run_inline_handler(self) -> bool:
        is_blocked = self._future is not None and not self._future.done()
        if not is_blocked or self._inline_handler is None:
            return False
        try:
            return self._inline_handler()
        except Exception:  # noqa: BLE001  the other waiters must be notified all the same
            _log.exception("the inline handler of a waiter failed; the waiter is woken")
            return False

    def _wake(self) -> None:
        self._is_notified = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def clear(self) -> None:
        """Ignore a notification that came while it was not waiting."""
        self._is_notified = False

    def close(self) -> None:
        """End the wait for good."""
        self.is_closed = True
        self._wake()

    def disconnect(self) -> None:
        """End the wait for good, because the connection has ended."""
        self.disconnected = True
        self.close()

    async def wait(self, seconds: float, inline_handler: Callable[[], bool] | None = None) -> bool:
        """Wait for a notification; return False if there was none in that time.

        `inline_handler` is called in the loop; a notification after which it returns True does not
        end the wait.
        """
        if not self._is_notified:
            self._inline_handler = inline_handler
            self._future = self.loop.create_future()
            self._blocked.add(self)
            timer = self.loop.call_later(seconds, _end_wait, self._future)
            try:
                await self._future
            finally:
                timer.cancel()
                self._blocked.discard(self)
                self._future = None
        is_notified, self._is_notified = self._is_notified, False
        return is_notified


def _end_wait(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def call_in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    """Run a callback in a loop, from any thread, without blocking the caller."""
    try:
        loop.call_soon_threadsafe(callback)
    except RuntimeError:
        # The loop is closed: there are no waiters any more.
        return
