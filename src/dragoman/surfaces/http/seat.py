"""A seat: the place of somebody who waits for the ledger to grow.

It rings for those who wait. Whoever was busy meanwhile looks how far the ledger has come, and only
then waits. Whoever can be served where it sits waits on: only what cannot be done there wakes it.
"""

import asyncio
import logging
from collections.abc import Callable

_log = logging.getLogger("dragoman.http")


class Seat:
    """A stream or long poll that waits for the ledger to grow."""

    def __init__(self, waiting: "set[Seat]") -> None:
        self._waiting = waiting
        """The waiters that are blocked right now; a busy one is not among them, nor one whose
        connection is full."""
        self.loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._serve: Callable[[], bool] | None = None
        self._rang = False
        self.gone = False
        """True if its client is disconnected, its token has ended, or the hub stops."""
        self.hung_up = False
        """True if it is closed because its connection has ended."""

    def ring(self) -> None:
        """Run the inline handler if it is blocked with one; else end the wait, this one or the
        next."""
        if not self._is_served():
            self._wake()

    def _is_served(self) -> bool:
        is_waiting = self._waiter is not None and not self._waiter.done()
        if not is_waiting or self._serve is None:
            return False
        try:
            return self._serve()
        except Exception:  # noqa: BLE001  the other waiters must be notified all the same
            _log.exception("the inline handler of a waiter failed; the waiter is woken")
            return False

    def _wake(self) -> None:
        self._rang = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def forget(self) -> None:
        """Ignore a notification that came while it was not waiting."""
        self._rang = False

    def leave(self) -> None:
        """End the wait for good."""
        self.gone = True
        self._wake()

    def hang_up(self) -> None:
        """End the wait for good, because the connection has ended."""
        self.hung_up = True
        self.leave()

    async def wait(self, seconds: float, serve: Callable[[], bool] | None = None) -> bool:
        """Wait for a notification; return False if there was none in that time.

        `inline_handler` is called in the loop; a notification after which it returns True does not
        end the wait.
        """
        if not self._rang:
            self._serve = serve
            self._waiter = self.loop.create_future()
            self._waiting.add(self)
            timer = self.loop.call_later(seconds, _give_up, self._waiter)
            try:
                await self._waiter
            finally:
                timer.cancel()
                self._waiting.discard(self)
                self._waiter = None
        rang, self._rang = self._rang, False
        return rang


def _give_up(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


def soon(loop: asyncio.AbstractEventLoop, deed: Callable[[], None]) -> None:
    """Run a callback in a loop, from any thread, without blocking the caller."""
    try:
        loop.call_soon_threadsafe(deed)
    except RuntimeError:
        # The loop is closed: there are no waiters any more.
        return
