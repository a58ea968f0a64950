"""Trace bus of one process: every event of a trace to all subscribers, as it happens.

One thread reads the ledger on after every commit hint, once for all, while there are subscribers.
Each has a bounded queue of its own: filling it never slows anybody else (S-SAOP-7). A subscriber
that begins in the past reads the ledger itself until it has caught up.

In a full queue, parts of the same thought and lines of the same terminal are coalesced into one
event, with a mark that says so. Tool calls and transitions of tasks keep their places and are never
lost.
"""

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import msgspec

from dragoman.core.errors import StoreError
from dragoman.engine.ports import Store
from dragoman.engine.queries.traces import TraceEvent, trace_event_of
from dragoman.engine.subscribe import CommitHints
from dragoman.ledger.entry import Entry

# --- queue ------------------------------------------------------------------------------------

MAX_TEXT: Final = 4_096
"""Characters of a coalesced text that are kept; its mark says how many are missing."""

MAX_QUEUE_BYTES: Final = 16 * 1024 * 1024
"""Approximate bytes that wait for one subscriber, as JSON."""

_TEXT_FIELDS: Final = {"THOUGHT_STREAM": ("chunk", ""), "SANDBOX_PULSE": ("line", "\n")}
"""Type of event -> the field whose texts can be coalesced, and the separator between two."""


class SizedEvent(NamedTuple):
    """An event and its size as JSON, measured once for all subscribers."""

    event: TraceEvent
    size: int


def measure(events: Iterable[TraceEvent]) -> list[SizedEvent]:
    """Measure the size of each event."""
    return [SizedEvent(event, len(msgspec.json.encode(event.event))) for event in events]


class EventQueue:
    """A queue of events, bounded in number and bytes."""

    def __init__(self, max_events: int) -> None:
        self._max_events = max_events
        self._events: list[TraceEvent] = []
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._events)

    def take(self) -> list[TraceEvent]:
        """Return all events and empty the queue."""
        events, self._events, self._bytes = self._events, [], 0
        return events

    def add(self, events: Collection[SizedEvent]) -> bool:
        """Add events; return False if there is no room, even after coalescing."""
        incoming, sizes = zip(*events, strict=True) if events else ((), ())
        self._events += incoming
        self._bytes += sum(sizes)
        if len(self._events) > self._max_events or self._bytes > MAX_QUEUE_BYTES:
            self._events = coalesce(self._events)
            self._bytes = sum(one.size for one in measure(self._events))
        return len(self._events) <= self._max_events and self._bytes <= MAX_QUEUE_BYTES


def coalesce(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """Coalesce neighbouring events that are parts of one text."""
    found: list[TraceEvent] = []
    open_texts: dict[tuple[object, ...], int] = {}
    """Key of a text -> the index of the event that it grows in."""
    for event in events:
        key = _text_key(event)
        if key is None:
            # What comes behind this event must not move before it.
            open_texts.clear()
        elif key in open_texts:
            index = open_texts[key]
            found[index] = _merge(found[index], event)
            continue
        else:
            open_texts[key] = len(found)
        found.append(event)
    # A text has the position of its last part: a reader that resumes behind it has missed nothing.
    return sorted(found, key=lambda event: event.position)


def _text_key(event: TraceEvent) -> tuple[object, ...] | None:
    """Return the key of the text that an event is a part of; None: it stands for itself."""
    if event.type not in _TEXT_FIELDS:
        return None
    payload = event.event["payload"]
    about = (payload.get("agent_id"), payload.get("turn_index"))
    return (event.type, event.event["session_id"], *about)


def _merge(first: TraceEvent, second: TraceEvent) -> TraceEvent:
    """Merge two parts; the result has the second one's position, so that a cursor behind it is
    true."""
    field, separator = _TEXT_FIELDS[first.type]
    first_payload, second_payload = first.event["payload"], second.event["payload"]
    gap: dict[str, Any] = first.event.get("gap") or {
        "coalesced": 1,
        "missing_characters": 0,
        "from_position": first.position,
    }
    text = first_payload[field] + separator + second_payload[field]
    missing = max(0, len(text) - MAX_TEXT)
    payload = {**second_payload, field: text[:MAX_TEXT]}
    if "masked" in payload:
        payload["masked"] = first_payload["masked"] or second_payload["masked"]
    marked = {
        **second.event,
        "payload": payload,
        "gap": {
            **gap,
            "coalesced": gap["coalesced"] + 1,
            "missing_characters": gap["missing_characters"] + missing,
            "to_position": second.position,
        },
    }
    return TraceEvent(
        second.position, second.type, second.task, first.masked or second.masked, marked
    )


# --- bus --------------------------------------------------------------------------------------

_PAGE = 500

QUEUE_SIZE = 1_024
"""Maximum number of events that wait for one subscriber."""

POLL_SECONDS = 0.5
"""Interval of reading the ledger without a hint: another process may have written."""

EventMatcher = Callable[[TraceEvent], bool]


class SubscriptionClosed(Exception):
    """The subscriber was too slow; it goes on with `subscribe(after=cursor)`."""

    def __init__(self, cursor: int) -> None:
        super().__init__(f"too slow: go on after position {cursor}")
        self.cursor = cursor


def match_all(_: TraceEvent) -> bool:
    """Match every event."""
    return True


def _no_wake() -> None:
    return None


class Subscription:
    """One subscriber. Its methods are for its own thread; `offer` is for the bus."""

    def __init__(
        self, store: Store, after: int, live_from: int, matches: EventMatcher, queue: EventQueue
    ) -> None:
        self.cursor = after
        """The position up to which everything was taken, or did not match."""
        self._store = store
        self._live_from = live_from
        """The bus offers entries after this position; those before it are read from the ledger."""
        self._matches = matches
        self._queue = queue
        self._ready = threading.Condition()
        self._wake: Callable[[], object] = _no_wake
        self._is_closed = False
        self._offered_until = live_from

    @property
    def is_behind(self) -> bool:
        """Return whether the next `take` has to read the ledger."""
        return self.cursor < self._live_from

    def on_wake(self, wake: Callable[[], object]) -> None:
        """Set a callback that runs in the thread of the bus when there is something to take."""
        self._wake = wake

    def take(self, timeout: float | None = 0.0) -> list[TraceEvent]:
        """Return new events, oldest first; wait up to `timeout` seconds for them (None: for ever).

        Raises SubscriptionClosed if it was too slow: what it has not taken is in the ledger.
        """
        if self.is_behind:
            return self._replay()
        with self._ready:
            if not self._queue and not self._is_closed:
                self._ready.wait(timeout)
            if self._is_closed:
                raise SubscriptionClosed(self.cursor)
            events = self._queue.take()
            self.cursor = self._offered_until
        return events

    def offer(self, events: Sequence[SizedEvent], until: int) -> bool:
        """Queue events, after which everything up to `until` was offered; return False if it is too
        slow."""
        matching = self._select(events)
        with self._ready:
            if not self._is_closed and not self._queue.add(matching):
                self._is_closed = True
                self._queue.take()
            self._offered_until = max(until, self._offered_until)
            self._ready.notify_all()
            is_open = not self._is_closed
        if matching:
            self._wake()
        return is_open

    def _select(self, events: Sequence[SizedEvent]) -> Sequence[SizedEvent]:
        """Return the matching events of a page that were not in the ledger before; mostly all of
        it."""
        if events and events[0].event.position <= self._live_from:
            events = [one for one in events if one.event.position > self._live_from]
        if self._matches is match_all:
            return events
        return [one for one in events if self._matches(one.event)]

    def close(self) -> None:
        """End the subscription."""
        with self._ready:
            self._is_closed = True
            self._ready.notify_all()
        self._wake()

    def _replay(self) -> list[TraceEvent]:
        limit = min(_PAGE, self._live_from - self.cursor)
        entries = self._store.entries(self.cursor, limit)
        self.cursor = entries[-1].position if entries else self._live_from
        return [one for one in _trace_events(self._store, entries) if self._matches(one)]


class LocalBus:
    """Distributes events to all subscribers; any thread may subscribe."""

    def __init__(
        self, store: Store, hints: CommitHints, poll_interval: float = POLL_SECONDS
    ) -> None:
        self._store = store
        self._hints = hints
        self._poll_interval = poll_interval
        self._lock = threading.Lock()
        self._subscriptions: set[Subscription] = set()
        self._hinted = threading.Event()
        self._pump: threading.Thread | None = None
        self._position = 0
        self._is_closed = False

    def subscribe(
        self,
        after: int | None = None,
        matches: EventMatcher = match_all,
        *,
        max_events: int = QUEUE_SIZE,
        wake: Callable[[], object] = _no_wake,
    ) -> Subscription:
        """Subscribe from a position on; None: from now on. `wake` runs in the bus's thread."""
        with self._lock:
            if self._pump is None and not self._is_closed:
                self._position = self._store.head()
                self._pump = threading.Thread(target=self._run, name="dragoman-bus", daemon=True)
                self._pump.start()
            # A position beyond the end is one of another ledger: from now on.
            start = (
                self._position
                if after is None
                else min(after, max(self._position, self._store.head()))
            )
            subscription = Subscription(
                self._store, start, max(self._position, start), matches, EventQueue(max_events)
            )
            subscription.on_wake(wake)
            if self._is_closed:
                subscription.close()
            else:
                self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """End a subscription; the last one ends the thread."""
        with self._lock:
            self._subscriptions.discard(subscription)
        self._hinted.set()

    def close(self) -> None:
        """Close all subscriptions, for good."""
        with self._lock:
            self._is_closed = True
            pump = self._pump
        self._close_all()
        self._hinted.set()
        if pump is not None:
            pump.join()

    def _run(self) -> None:
        unsubscribe_hints = self._hints.subscribe(lambda _: self._hinted.set())
        try:
            while self._has_listeners():
                self._hinted.clear()
                # A store that does not answer may answer the next time.
                with suppress(StoreError):
                    while self._read_page():
                        pass
                self._hinted.wait(self._poll_interval)
        except BaseException:
            # On an unexpected error all subscriptions end, and the error goes to the log.
            self._close_all()
            raise
        finally:
            unsubscribe_hints()

    def _close_all(self) -> None:
        with self._lock:
            subscribed, self._subscriptions = self._subscriptions, set[Subscription]()
            self._pump = None
        for subscription in subscribed:
            subscription.close()

    def _has_listeners(self) -> bool:
        with self._lock:
            if self._subscriptions:
                return True
            self._pump = None
            return False

    def _read_page(self) -> bool:
        """Offer a page of the ledger; return whether there may be more."""
        entries = self._store.entries(self._position, _PAGE)
        if not entries:
            return False
        events = measure(_trace_events(self._store, entries))
        with self._lock:
            # Under the lock, so that a new subscriber is either offered a page or replays it.
            self._position = entries[-1].position
            slow = [one for one in self._subscriptions if not one.offer(events, self._position)]
            self._subscriptions.difference_update(slow)
        return len(entries) == _PAGE


def _trace_events(store: Store, entries: Collection[Entry]) -> list[TraceEvent]:
    return [one for entry in entries if (one := trace_event_of(store, entry)) is not None]
