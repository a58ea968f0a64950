"""Trace bus: subscriptions from any position; a slow subscriber does not delay others."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from dragoman.bus.trace_bus import (
    MAX_TEXT,
    EventQueue,
    LocalBus,
    Subscription,
    SubscriptionClosed,
    coalesce,
    measure,
)
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Store
from dragoman.engine.queries.traces import TraceEvent
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from tests.protocols.saop.hub import SaopHub, completed, event, invoked, pulse, thought
from tests.requirements import proves

TIMEOUT_S = 30.0


@contextmanager
def running_bus(hub: SaopHub, store: Store | None = None) -> Generator[LocalBus]:
    """Run a bus on the events of a hub."""
    bus = LocalBus(store or hub.store, hub.hints, poll_interval=0.01)
    yield bus
    bus.close()


def take_events(subscription: Subscription, count: int) -> list[TraceEvent]:
    """Take this many events."""
    events: list[TraceEvent] = []
    while len(events) < count:
        events += subscription.take(TIMEOUT_S)
    return events


def lines_of(events: list[TraceEvent]) -> list[str]:
    """Return the lines of terminal pulses."""
    return [item.event["payload"]["line"] for item in events]


@proves("SAOP-BUS")
def test_subscribers_get_live_and_replayed_events() -> None:
    hub = SaopHub()
    for number in range(5):
        hub.event(number, pulse(f"{number}"))
    with running_bus(hub) as bus:
        live, replay, middle = bus.subscribe(), bus.subscribe(0), bus.subscribe(3)
        assert (live.is_behind, replay.is_behind) == (False, True)
        for number in range(5, 9):
            hub.event(number, pulse(f"{number}"))
        assert lines_of(take_events(replay, 9)) == [f"{number}" for number in range(9)]
        assert lines_of(take_events(middle, 6)) == [f"{number}" for number in range(3, 9)]
        assert lines_of(take_events(live, 4)) == ["5", "6", "7", "8"]
        assert live.cursor == hub.store.head()
        assert live.take(0.0) == []
        bus.unsubscribe(live)


@proves("SAOP-BUS")
def test_subscriber_gets_matching_events_only() -> None:
    hub = SaopHub()
    with running_bus(hub) as bus:
        woken = threading.Event()
        subscription = bus.subscribe(0, lambda item: item.type.startswith("TOOL_"), wake=woken.set)
        hub.event(1, pulse("x"))
        hub.event(2, invoked("c"))
        assert [item.event["payload"]["call_id"] for item in take_events(subscription, 1)] == ["c"]
        assert woken.wait(TIMEOUT_S)


@proves("SAOP-BUS")
def test_bus_without_subscribers_restarts_and_closed_bus_does_not() -> None:
    hub = SaopHub()
    with running_bus(hub) as bus:
        bus.unsubscribe(bus.subscribe())
        again = bus.subscribe()
        hub.event(1, pulse("x"))
        assert lines_of(take_events(again, 1)) == ["x"]
        bus.close()
        for subscription in (again, bus.subscribe()):
            with pytest.raises(SubscriptionClosed):
                subscription.take(TIMEOUT_S)


class FailingStore(MemoryStore):
    """Store whose first reads fail."""

    faults = 2

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """Fail, or return entries."""
        if self.faults:
            self.faults -= 1
            raise StoreUnavailable("not now")
        return super().entries(after, limit, until=until)


@proves("SAOP-BUS")
def test_store_failure_loses_no_events() -> None:
    hub = SaopHub()
    store = FailingStore("faulty")
    store.__dict__.update(vars(hub.store))
    with running_bus(hub, store) as bus:
        subscription = bus.subscribe()
        hub.event(1, pulse("x"))
        assert lines_of(take_events(subscription, 1)) == ["x"]


def trace_event(position: int, payload: dict[str, object], session: str = "s-1") -> TraceEvent:
    """Build an event as the bus has it."""
    envelope = event(position, payload, session)
    return TraceEvent(position, f"{payload['type']}", "", False, envelope)


@proves("SAOP-SLOW")
def test_only_thoughts_and_terminal_lines_are_coalesced() -> None:
    events = [
        trace_event(1, thought("a")),
        trace_event(2, pulse("one")),
        trace_event(3, thought("b")),
        trace_event(4, invoked("c")),
        trace_event(5, thought("c", final=True)),
        trace_event(6, pulse("two")),
        trace_event(7, pulse("three")),
        trace_event(8, pulse("else"), "s-2"),
        trace_event(9, completed("c")),
    ]
    merged = coalesce(events)

    assert [one.position for one in merged] == [2, 3, 4, 5, 7, 8, 9]
    assert merged[1].event["payload"]["chunk"] == "ab"
    assert merged[1].event["gap"] == {
        "coalesced": 2,
        "missing_characters": 0,
        "from_position": 1,
        "to_position": 3,
    }
    assert merged[4].event["payload"]["line"] == "two\nthree"
    assert "gap" not in merged[3].event
    assert merged[2].event == events[3].event
    long = coalesce([trace_event(n, thought("x" * 1_000)) for n in range(1, 11)])
    assert [len(one.event["payload"]["chunk"]) for one in long] == [MAX_TEXT]
    assert long[0].event["gap"]["missing_characters"] == 10_000 - MAX_TEXT


@proves("SAOP-SLOW")
def test_queue_is_bounded_and_never_drops_tool_calls() -> None:
    queue = EventQueue(10)
    assert not queue
    assert queue.add(measure(trace_event(n, thought("x")) for n in range(1, 50)))
    assert queue.add(measure(trace_event(n, invoked(f"c-{n}")) for n in range(50, 59)))
    assert len(queue.take()) == 10
    assert not queue.add(measure(trace_event(n, invoked(f"c-{n}")) for n in range(11)))


@proves("SAOP-SLOW")
def test_slow_subscriber_is_closed_and_resumes_at_its_cursor() -> None:
    hub = SaopHub()
    with running_bus(hub) as bus:
        slow, quick = bus.subscribe(max_events=4), bus.subscribe()
        hub.event(1, invoked("c-1"))
        assert len(take_events(slow, 1)) == 1
        for number in range(2, 30):
            hub.event(number, invoked(f"c-{number}"))
        assert len(take_events(quick, 29)) == 29, "the slow one has held up nobody"
        with pytest.raises(SubscriptionClosed) as closed:
            slow.take(TIMEOUT_S)
        assert "go on after position" in str(closed.value)
        again = bus.subscribe(closed.value.cursor)
        calls = [one.event["payload"]["call_id"] for one in take_events(again, 28)]
        assert calls == [f"c-{number}" for number in range(2, 30)]


@proves("SAOP-BUS")
def test_position_beyond_the_ledger_is_its_end() -> None:
    hub = SaopHub()
    hub.event(0, pulse("before"))
    with running_bus(hub) as bus:
        subscription = bus.subscribe(after=5_000)
        assert subscription.cursor == hub.store.head()
        hub.event(1, invoked("c1"))
        assert [item.type for item in take_events(subscription, 1)] == ["TOOL_LIFECYCLE_INVOKED"]


@proves("SAOP-BUS")
def test_queue_is_bounded_in_bytes() -> None:
    queue = EventQueue(1_000)
    large = invoked("c1", text="x" * 1_000_000)
    events = measure(
        TraceEvent(n, "TOOL_LIFECYCLE_INVOKED", "", False, event(n, large)) for n in range(20)
    )
    assert queue.add(events[:10])
    assert not queue.add(events[10:])
    assert len(queue.take()) == 20
    assert queue.add(events[:10])


@proves("SAOP-BUS")
def test_error_of_the_bus_closes_all_subscriptions_and_is_reported(
    recwarn: pytest.WarningsRecorder,
) -> None:
    def broken(_: TraceEvent) -> bool:
        raise LookupError("a fault of ours")

    hub, exceptions = SaopHub(), list[threading.ExceptHookArgs]()
    before, threading.excepthook = threading.excepthook, exceptions.append
    try:
        with running_bus(hub) as bus:
            failing_subscription, other_subscription = (
                bus.subscribe(),
                bus.subscribe(matches=broken),
            )
            hub.event(0, pulse("line"))
            for listener in (failing_subscription, other_subscription):
                with pytest.raises(SubscriptionClosed):
                    take_events(listener, 2)
    finally:
        threading.excepthook = before
    assert [args.exc_type for args in exceptions] == [LookupError]
    assert not recwarn.list
