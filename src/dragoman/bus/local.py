"""The bus of one process: every event of a trace to everyone who wants it, as it happens.

One thread reads the ledger on after every hint, once for all, while anybody listens. Each listener
has a queue of its own with an end: filling it never slows anybody else (S-SAOP-7). Who begins in
the past reads the ledger itself until it is level.
"""

import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from dragoman.bus.backlog import Backlog, Weighed, weighed
from dragoman.core.errors import StoreError
from dragoman.engine.hints import Hints
from dragoman.engine.ports import Store
from dragoman.engine.reads.traces import Told, traced
from dragoman.ledger.entry import Entry

_PAGE = 500
QUEUE = 1_024
"""Maximum number of events that wait for one subscriber."""
LOOK_SECONDS = 0.5
"""Interval of reading the ledger without a hint: another process may have written."""

Wanted = Callable[[Told], bool]


class Closed(Exception):
    """The subscriber was too slow; it goes on with `subscribe(after=cursor)`."""

    def __init__(self, cursor: int) -> None:
        super().__init__(f"too slow: go on after position {cursor}")
        self.cursor = cursor


def everything(_: Told) -> bool:
    """Match every event."""
    return True


def _unheard() -> None:
    return None


class Subscription:
    """One subscriber. Its methods are for its own thread; `offer` is for the bus."""

    def __init__(
        self, store: Store, after: int, level: int, wanted: Wanted, backlog: Backlog
    ) -> None:
        self.cursor = after
        """The position up to which everything was taken, or did not match."""
        self._store = store
        self._level = level
        """The bus offers entries after this position; those before it are read from the ledger."""
        self._wanted = wanted
        self._backlog = backlog
        self._ready = threading.Condition()
        self._wake: Callable[[], object] = _unheard
        self._is_closed = False
        self._offered = level

    @property
    def is_behind(self) -> bool:
        """Return whether the next `take` has to read the ledger."""
        return self.cursor < self._level

    def on_wake(self, wake: Callable[[], object]) -> None:
        """Set a callback that runs in the thread of the bus when there is something to take."""
        self._wake = wake

    def take(self, timeout: float | None = 0.0) -> list[Told]:
        """Return new events, oldest first; wait up to `timeout` seconds for them (None: for ever).

        Raises SubscriptionClosed if it was too slow: what it has not taken is in the ledger.
        """
        if self.is_behind:
            return self._replay()
        with self._ready:
            if not self._backlog and not self._is_closed:
                self._ready.wait(timeout)
            if self._is_closed:
                raise Closed(self.cursor)
            taken = self._backlog.take()
            self.cursor = self._offered
        return taken

    def offer(self, events: Sequence[Weighed], until: int) -> bool:
        """Queue events, after which everything up to `until` was offered; return False if it is too
        slow."""
        wanted = self._of_these(events)
        with self._ready:
            if not self._is_closed and not self._backlog.add(wanted):
                self._is_closed = True
                self._backlog.take()
            self._offered = max(until, self._offered)
            self._ready.notify_all()
            is_open = not self._is_closed
        if wanted:
            self._wake()
        return is_open

    def _of_these(self, events: Sequence[Weighed]) -> Sequence[Weighed]:
        """Return the matching events of a page that were not in the ledger before; mostly all of
        it."""
        if events and events[0].told.position <= self._level:
            events = [one for one in events if one.told.position > self._level]
        if self._wanted is everything:
            return events
        return [one for one in events if self._wanted(one.told)]

    def close(self) -> None:
        """End the subscription."""
        with self._ready:
            self._is_closed = True
            self._ready.notify_all()
        self._wake()

    def _replay(self) -> list[Told]:
        limit = min(_PAGE, self._level - self.cursor)
        entries = self._store.entries(self.cursor, limit)
        self.cursor = entries[-1].position if entries else self._level
        return [one for one in _events(self._store, entries) if self._wanted(one)]


class LocalBus:
    """Distributes events to all subscribers; any thread may subscribe."""

    def __init__(self, store: Store, hints: Hints, look: float = LOOK_SECONDS) -> None:
        self._store = store
        self._hints = hints
        self._look = look
        self._lock = threading.Lock()
        self._subscribed: set[Subscription] = set()
        self._hinted = threading.Event()
        self._pump: threading.Thread | None = None
        self._at = 0
        self._is_closed = False

    def subscribe(
        self,
        after: int | None = None,
        wanted: Wanted = everything,
        *,
        size: int = QUEUE,
        wake: Callable[[], object] = _unheard,
    ) -> Subscription:
        """Subscribe from a position on; None: from now on. `wake` runs in the bus's thread."""
        with self._lock:
            if self._pump is None and not self._is_closed:
                self._at = self._store.head()
                self._pump = threading.Thread(target=self._run, name="dragoman-bus", daemon=True)
                self._pump.start()
            # A position beyond the end is one of another ledger: from now on.
            begin = self._at if after is None else min(after, max(self._at, self._store.head()))
            one = Subscription(self._store, begin, max(self._at, begin), wanted, Backlog(size))
            one.on_wake(wake)
            if self._is_closed:
                one.close()
            else:
                self._subscribed.add(one)
        return one

    def leave(self, one: Subscription) -> None:
        """End a subscription; the last one ends the thread."""
        with self._lock:
            self._subscribed.discard(one)
        self._hinted.set()

    def close(self) -> None:
        """Close all subscriptions, for good."""
        with self._lock:
            self._is_closed = True
            pump = self._pump
        self._send_away()
        self._hinted.set()
        if pump is not None:
            pump.join()

    def _run(self) -> None:
        silence = self._hints.listen(lambda _: self._hinted.set())
        try:
            while self._has_listeners():
                self._hinted.clear()
                # A store that does not answer may answer the next time.
                with suppress(StoreError):
                    while self._read_on():
                        pass
                self._hinted.wait(self._look)
        except BaseException:
            # On an unexpected error all subscriptions end, and the error goes to the log.
            self._send_away()
            raise
        finally:
            silence()

    def _send_away(self) -> None:
        with self._lock:
            subscribed, self._subscribed = self._subscribed, set[Subscription]()
            self._pump = None
        for one in subscribed:
            one.close()

    def _has_listeners(self) -> bool:
        with self._lock:
            if self._subscribed:
                return True
            self._pump = None
            return False

    def _read_on(self) -> bool:
        """Offer a page of the ledger; return whether there may be more."""
        entries = self._store.entries(self._at, _PAGE)
        if not entries:
            return False
        events = weighed(_events(self._store, entries))
        with self._lock:
            # Under the lock, so that a new subscriber is either offered a page or replays it.
            self._at = entries[-1].position
            slow = [one for one in self._subscribed if not one.offer(events, self._at)]
            self._subscribed.difference_update(slow)
        return len(entries) == _PAGE


def _events(store: Store, entries: Collection[Entry]) -> list[Told]:
    return [one for entry in entries if (one := traced(store, entry)) is not None]
