"""Lifecycle of a running hub: its parts start in order and stop so that nothing is lost.

A stop starts no more agents and gives those that work their grace time; the hub still answers
meanwhile, because they report through it. Then the HTTP server closes, files and notices are
brought up to date with what was committed, and the lock is released. A second signal waits neither
for agents nor for that: the next start does it.
"""

import asyncio
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from socket import socket

from dragoman.engine.hub import Hub
from dragoman.engine.service_health import HEALTHY, HealthProblem
from dragoman.services.dispatch.dispatcher import Dispatcher
from dragoman.services.scheduler import Scheduler
from dragoman.surfaces.http.server import HttpServer
from dragoman.system.hub_lock import HubLock
from dragoman.system.process_tuning import freeze_gc

_CATCH_UP_SECONDS = 20
"""Time limit for services to finish at a stop."""
_QUIET_SECONDS = 1
"""Services that take longer than this are reported."""
_HEALTH_CHECK_SECONDS = 1.0
"""Interval between two health checks."""


class HubProcess:
    """A hub process: HTTP server, dispatcher and background services."""

    def __init__(
        self,
        hub: Hub,
        server: HttpServer,
        bound: socket,
        dispatcher: Dispatcher,
        scheduler: Scheduler,
        lock: HubLock,
    ) -> None:
        self._hub = hub
        self._server = server
        self._bound = bound
        self._dispatcher = dispatcher
        self._scheduler = scheduler
        self._lock = lock
        self._is_impatient = False

    async def run(
        self,
        on_ready: Callable[[str], None],
        on_waiting_for_agents: Callable[[int], None],
        on_trouble: Callable[[str, str], None],
    ) -> None:
        """Serve until a signal comes; `on_ready` is called with the URL.

        `on_waiting_for_agents` is called with the number of agents that a stop waits for, if any;
        `on_trouble` with a part that begins to fail and its error, and with an empty error when it
        has recovered.
        """
        freeze_gc()
        self._scheduler.start()
        serving = asyncio.create_task(self._server.serve(sockets=[self._bound]))
        dispatching = asyncio.create_task(self._dispatcher.run())

        def stop_waiting() -> None:
            self._is_impatient = True
            dispatching.cancel()

        stopping = _install_stop_handlers(stop_waiting)
        self._lock.announce_url(self._server.url)
        on_ready(self._server.url)
        watching = asyncio.create_task(self._report_health(on_trouble))
        signalled = asyncio.create_task(stopping.wait())
        # A part that ends by itself has failed: the others are stopped, and its error is raised.
        await asyncio.wait({signalled, serving, dispatching}, return_when=asyncio.FIRST_COMPLETED)
        signalled.cancel()
        watching.cancel()
        self._dispatcher.stop()
        if self._dispatcher.running_count:
            on_waiting_for_agents(self._dispatcher.running_count)
        await asyncio.wait({dispatching})
        self._server.stop()
        await serving
        if not dispatching.cancelled():
            dispatching.result()

    async def _report_health(self, on_trouble: Callable[[str, str], None]) -> None:
        """Report each part once when it begins to fail and once when it has recovered."""
        reported: Mapping[str, HealthProblem] = {}
        while True:
            health = {**self._scheduler.health(), "dispatch": self._dispatcher.problem}
            failing = ((name, wrong) for name, wrong in health.items() if wrong.message)
            # A store that is unavailable stops every service: it is reported once.
            current = {
                "store" if wrong.is_store_failure else name: wrong for name, wrong in failing
            }
            for name in sorted(reported.keys() ^ current.keys()):
                on_trouble(name, current.get(name, HEALTHY).message)
            reported = current
            await asyncio.sleep(_HEALTH_CHECK_SECONDS)

    def close(self, on_slow_services: Callable[[Sequence[str], int], None]) -> None:
        """Bring everything up to date and release the data directory.

        `on_slow_services` is called with the services that take long, and the time limit in
        seconds.
        """
        for number in _stop_signals():
            # A closed event loop leaves signal handlers behind that do nothing.
            signal.signal(number, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            unfinished = self._scheduler.stop(_QUIET_SECONDS)
            if unfinished and not self._is_impatient:
                on_slow_services(unfinished, _CATCH_UP_SECONDS)
                self._scheduler.stop(_CATCH_UP_SECONDS)
        self._hub.close()
        self._lock.release()


def _install_stop_handlers(on_second_signal: Callable[[], object]) -> asyncio.Event:
    """Event that the first stop signal sets; later signals call `on_second_signal`."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def signalled() -> None:
        if stopping.is_set():
            on_second_signal()
        stopping.set()

    for number in _stop_signals():
        loop.add_signal_handler(number, signalled)
    return stopping


def _stop_signals() -> Iterator[signal.Signals]:
    """Signals that stop the hub."""
    yield from (signal.SIGINT, signal.SIGTERM)
    # With SIGHUP ignored (nohup) the hub is to outlive its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP
