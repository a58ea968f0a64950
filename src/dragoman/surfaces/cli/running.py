"""A hub that runs: its parts are started in order, and stopped so that nothing is lost.

When it is told to stop, it starts no more agents and gives those that work their grace time; it
still answers meanwhile, because they report through it. Then the door is closed, what was
committed is brought level, and the lock is let go. A second signal waits neither for agents nor for
what is brought level: the next start does that.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from socket import socket

from dragoman.engine.hub import Hub
from dragoman.engine.trouble import NONE, Trouble
from dragoman.services.clockwork import Clockwork
from dragoman.services.dispatcher import Dispatcher
from dragoman.surfaces.http.server import HttpServer
from dragoman.system.garbage import leave_what_is_there
from dragoman.system.hub_lock import HubLock

_LEVEL_SECONDS = 20
"""Time limit for services to finish at a stop."""
_SILENT_SECONDS = 1
"""Services that take longer than this are reported."""
_LOOK_SECONDS = 1.0
"""Interval between two health checks."""


class RunningHub:
    """A hub process: HTTP server, dispatcher and background services."""

    def __init__(
        self,
        hub: Hub,
        server: HttpServer,
        bound: socket,
        dispatcher: Dispatcher,
        clockwork: Clockwork,
        lock: HubLock,
    ) -> None:
        self._hub = hub
        self._server = server
        self._bound = bound
        self._dispatcher = dispatcher
        self._clockwork = clockwork
        self._lock = lock
        self._is_hurried = False

    async def run(
        self,
        ready: Callable[[str], None],
        waiting: Callable[[int], None],
        troubled: Callable[[str, str], None],
    ) -> None:
        """Serve until a signal comes; `on_ready` is called with the URL.

        `on_waiting_for_agents` is called with the number of agents that a stop waits for, if any;
        `on_trouble` with a part that begins to fail and its error, and with an empty error when it
        has recovered.
        """
        leave_what_is_there()
        self._clockwork.start()
        serving = asyncio.create_task(self._server.serve(sockets=[self._bound]))
        dispatching = asyncio.create_task(self._dispatcher.run())

        def hurry() -> None:
            self._is_hurried = True
            dispatching.cancel()

        stopping = _on_signals(hurry)
        self._lock.announce(self._server.url)
        ready(self._server.url)
        watching = asyncio.create_task(self._watch(troubled))
        signalled = asyncio.create_task(stopping.wait())
        # A part that ends by itself has failed: the others are stopped, and its error is raised.
        await asyncio.wait({signalled, serving, dispatching}, return_when=asyncio.FIRST_COMPLETED)
        signalled.cancel()
        watching.cancel()
        self._dispatcher.stop()
        if self._dispatcher.running:
            waiting(self._dispatcher.running)
        await asyncio.wait({dispatching})
        self._server.stop()
        await serving
        if not dispatching.cancelled():
            dispatching.result()

    async def _watch(self, troubled: Callable[[str, str], None]) -> None:
        """Report each part once when it begins to fail and once when it has recovered."""
        known: Mapping[str, Trouble] = {}
        while True:
            health = {**self._clockwork.health(), "dispatch": self._dispatcher.trouble}
            wrongs = ((name, wrong) for name, wrong in health.items() if wrong.words)
            # A store that is unavailable stops every service: it is reported once.
            found = {"store" if wrong.is_of_store else name: wrong for name, wrong in wrongs}
            for name in sorted(known.keys() ^ found.keys()):
                troubled(name, found.get(name, NONE).words)
            known = found
            await asyncio.sleep(_LOOK_SECONDS)

    def close(self, levelling: Callable[[Sequence[str], int], None]) -> None:
        """Bring everything up to date and release the data directory.

        `on_slow_services` is called with the services that take long, and the time limit in
        seconds.
        """
        for number in _stops():
            # A closed event loop leaves signal handlers behind that do nothing.
            signal.signal(number, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            late = self._clockwork.stop(_SILENT_SECONDS)
            if late and not self._is_hurried:
                levelling(late, _LEVEL_SECONDS)
                self._clockwork.stop(_LEVEL_SECONDS)
        self._hub.close()
        self._lock.release()


def _on_signals(hurry: Callable[[], object]) -> asyncio.Event:
    """Event that the first stop signal sets; later signals call `on_second_signal`."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def signalled() -> None:
        if stopping.is_set():
            hurry()
        stopping.set()

    for number in _stops():
        loop.add_signal_handler(number, signalled)
    return stopping


def _stops() -> Iterator[signal.Signals]:
    """Signals that stop the hub."""
    yield from (signal.SIGINT, signal.SIGTERM)
    # With SIGHUP ignored (nohup) the hub is to outlive its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP
