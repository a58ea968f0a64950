"""Lifecycle of a running hub: its parts start in order and stop so that nothing is lost.

SIGHUP reloads the settings, unless it says that the hub's terminal has gone: that is a stop.

A stop starts no more agents and gives those that work their grace time; the hub still answers
meanwhile, because they report through it. Then the HTTP server closes, files and notifications are
brought up to date with what was committed, and the lock is released. A second signal waits neither
for agents nor for that: the next start does it.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from socket import socket

from dragoman.core.errors import DragomanError
from dragoman.engine.hub import Hub
from dragoman.engine.schemas.settings import ReloadedSettings
from dragoman.engine.service_health import HEALTHY, HealthProblem
from dragoman.services.dispatch.dispatcher import Dispatcher
from dragoman.services.scheduler import GroupWorker, Scheduler, Service, ServiceGroup
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
        *,
        lock: HubLock,
        add_sign_in_link: Callable[[], str],
        reload: Callable[[], Awaitable[ReloadedSettings]],
    ) -> None:
        self._hub = hub
        self._server = server
        self._bound = bound
        self._dispatcher = dispatcher
        self._scheduler = scheduler
        self._lock = lock
        self._add_sign_in_link = add_sign_in_link
        self._reload = reload
        self._reloads = set[asyncio.Task[None]]()
        self._is_impatient = False

    def add_service(self, service: Service, interval_seconds: float) -> None:
        """Add a service of its own thread, before the hub runs."""
        group = ServiceGroup(service.name, (service,), interval_seconds=interval_seconds)
        self._scheduler.add(GroupWorker(group, self._hub.clock.now))

    async def run(
        self,
        on_ready: Callable[[str, str], None],
        on_waiting_for_agents: Callable[[int], None],
        on_trouble: Callable[[str, str], None],
        on_reload: Callable[[ReloadedSettings | DragomanError], None],
    ) -> None:
        """Serve until a signal comes; `on_ready` is called with the URL, and with a
        one-time link that signs the owner in.

        `on_waiting_for_agents` is called with the number of agents that a stop waits for, if any;
        `on_trouble` with a part that begins to fail and its error, and with an empty error when it
        has recovered; `on_reload` with what a SIGHUP has changed, or why it has not.
        """
        freeze_gc()
        self._scheduler.start()
        serving = asyncio.create_task(self._server.serve(sockets=[self._bound]))
        dispatching = asyncio.create_task(self._dispatcher.run())

        def stop_waiting() -> None:
            self._is_impatient = True
            dispatching.cancel()

        def start_reload() -> None:
            task = asyncio.create_task(self._report_reload(on_reload))
            self._reloads.add(task)
            task.add_done_callback(self._reloads.discard)

        stopping = _install_signal_handlers(stop_waiting, start_reload)
        self._lock.announce_url(self._server.url)
        on_ready(self._server.url, self._server.url + self._add_sign_in_link())
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

    async def _report_reload(
        self, on_reload: Callable[[ReloadedSettings | DragomanError], None]
    ) -> None:
        try:
            on_reload(await self._reload())
        except DragomanError as error:
            on_reload(error)

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


def _install_signal_handlers(
    on_second_signal: Callable[[], object], on_reload: Callable[[], object]
) -> asyncio.Event:
    """Event that the first stop signal sets; later ones call `on_second_signal`."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    had_terminal = _has_terminal()

    def stop() -> None:
        if stopping.is_set():
            on_second_signal()
        stopping.set()

    def hang_up() -> None:
        if had_terminal and not _has_terminal():
            stop()
        elif not stopping.is_set():
            on_reload()

    for number in _stop_signals():
        loop.add_signal_handler(number, hang_up if number == signal.SIGHUP else stop)
    return stopping


def _has_terminal() -> bool:
    """True if the process has a controlling terminal; one that was closed is none any more."""
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY))
    except OSError:
        return False
    return True


def _stop_signals() -> Iterator[signal.Signals]:
    yield from (signal.SIGINT, signal.SIGTERM)
    # With SIGHUP ignored (nohup) the hub is to outlive its terminal.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP
