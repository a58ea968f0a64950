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
"""How long duties may take to come to their end."""
_SILENT_SECONDS = 1
"""And how long before the person is told that they do."""
_LOOK_SECONDS = 1.0
"""Between two looks at whether all parts are well."""


class RunningHub:
    """Everything that runs while the hub does."""

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
        """Serve until a signal comes; `ready` is told the address.

        `waiting` is told how many agents a stop has to wait for, if any; `troubled`, which part
        has begun to fail and why, and when it is well again (no words).
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
        # A part that ends by itself has failed: the others are stopped, and its fault is told.
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
        """Tell once what begins to be wrong, and once that it is not any more."""
        known: Mapping[str, Trouble] = {}
        while True:
            health = {**self._clockwork.health(), "dispatch": self._dispatcher.trouble}
            wrongs = ((name, wrong) for name, wrong in health.items() if wrong.words)
            # One store that is gone stops every duty: that is one thing to tell.
            found = {"store" if wrong.is_of_store else name: wrong for name, wrong in wrongs}
            for name in sorted(known.keys() ^ found.keys()):
                troubled(name, found.get(name, NONE).words)
            known = found
            await asyncio.sleep(_LOOK_SECONDS)

    def close(self, levelling: Callable[[Sequence[str], int], None]) -> None:
        """Bring everything level and let go of the data directory.

        `levelling` is told which duties that takes long with, and for how many seconds at most.
        """
        for number in _stops():
            # A loop that is closed leaves handlers behind that do nothing.
            signal.signal(number, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            late = self._clockwork.stop(_SILENT_SECONDS)
            if late and not self._is_hurried:
                levelling(late, _LEVEL_SECONDS)
                self._clockwork.stop(_LEVEL_SECONDS)
        self._hub.close()
        self._lock.release()


def _on_signals(hurry: Callable[[], object]) -> asyncio.Event:
    """Set by the first signal to stop; from the second on, `hurry` is called."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()

    def signalled() -> None:
        if stopping.is_set():
            hurry()
        stopping.set()

    for number in _stops():
        loop.add_signal_handler(number, signalled)
    return stopping


def _stops() -> Iterator[signal.Signals]:
    """The signals that mean to stop."""
    yield from (signal.SIGINT, signal.SIGTERM)
    # Whoever starts it so that the end of a terminal is ignored means just that.
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        yield signal.SIGHUP
