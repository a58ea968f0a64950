"""The bus: everyone is told from any position on; whoever is slow holds up nobody."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from dragoman.bus.backlog import MOST_TEXT, Backlog, coalesced, weighed
from dragoman.bus.local import Closed, LocalBus, Subscription
from dragoman.core.errors import StoreUnavailable
from dragoman.engine.ports import Store
from dragoman.engine.reads.traces import Told
from dragoman.ledger.entry import Entry
from dragoman.store.memory import MemoryStore
from tests.protocols.saop.hub import SaopHub, completed, event, invoked, pulse, thought
from tests.requirements import proves

LONG = 30.0


@contextmanager
def listening(desk: SaopHub, store: Store | None = None) -> Generator[LocalBus]:
    """A bus on what the desk writes."""
    bus = LocalBus(store or desk.store, desk.hints, look=0.01)
    yield bus
    bus.close()


def take(one: Subscription, count: int) -> list[Told]:
    """So many events, however they come."""
    found: list[Told] = []
    while len(found) < count:
        found += one.take(LONG)
    return found


def lines(events: list[Told]) -> list[str]:
    """What pulses say."""
    return [told.event["payload"]["line"] for told in events]


@proves("SAOP-BUS")
def test_everyone_is_told_live_and_from_any_position() -> None:
    desk = SaopHub()
    for number in range(5):
        desk.event(number, pulse(f"{number}"))
    with listening(desk) as bus:
        live, replay, middle = bus.subscribe(), bus.subscribe(0), bus.subscribe(3)
        assert (live.is_behind, replay.is_behind) == (False, True)
        for number in range(5, 9):
            desk.event(number, pulse(f"{number}"))
        assert lines(take(replay, 9)) == [f"{number}" for number in range(9)]
        assert lines(take(middle, 6)) == [f"{number}" for number in range(3, 9)]
        assert lines(take(live, 4)) == ["5", "6", "7", "8"]
        assert live.cursor == desk.store.head()
        assert live.take(0.0) == []
        bus.leave(live)


@proves("SAOP-BUS")
def test_a_listener_gets_only_what_it_wants() -> None:
    desk = SaopHub()
    with listening(desk) as bus:
        rung = threading.Event()
        one = bus.subscribe(0, lambda told: told.type.startswith("TOOL_"), wake=rung.set)
        desk.event(1, pulse("x"))
        desk.event(2, invoked("c"))
        assert [told.event["payload"]["call_id"] for told in take(one, 1)] == ["c"]
        assert rung.wait(LONG)


@proves("SAOP-BUS")
def test_a_bus_that_was_left_begins_again_and_one_that_is_closed_does_not() -> None:
    desk = SaopHub()
    with listening(desk) as bus:
        bus.leave(bus.subscribe())
        again = bus.subscribe()
        desk.event(1, pulse("x"))
        assert lines(take(again, 1)) == ["x"]
        bus.close()
        for one in (again, bus.subscribe()):
            with pytest.raises(Closed):
                one.take(LONG)


class Faulty(MemoryStore):
    """A store that does not answer at first."""

    faults = 2

    def entries(self, after: int, limit: int, *, until: int | None = None) -> list[Entry]:
        """What it has, when it answers."""
        if self.faults:
            self.faults -= 1
            raise StoreUnavailable("not now")
        return super().entries(after, limit, until=until)


@proves("SAOP-BUS")
def test_a_store_that_fails_for_a_while_loses_nothing() -> None:
    desk = SaopHub()
    store = Faulty("faulty")
    store.__dict__.update(vars(desk.store))
    with listening(desk, store) as bus:
        one = bus.subscribe()
        desk.event(1, pulse("x"))
        assert lines(take(one, 1)) == ["x"]


def told(position: int, payload: dict[str, object], session: str = "s-1") -> Told:
    """An event as the bus has it."""
    said = event(position, payload, session)
    return Told(position, f"{payload['type']}", "", False, said)


@proves("SAOP-SLOW")
def test_thoughts_and_lines_grow_together_and_nothing_else_does() -> None:
    events = [
        told(1, thought("a")),
        told(2, pulse("one")),
        told(3, thought("b")),
        told(4, invoked("c")),
        told(5, thought("c", final=True)),
        told(6, pulse("two")),
        told(7, pulse("three")),
        told(8, pulse("else"), "s-2"),
        told(9, completed("c")),
    ]
    found = coalesced(events)

    assert [one.position for one in found] == [2, 3, 4, 5, 7, 8, 9]
    assert found[1].event["payload"]["chunk"] == "ab"
    assert found[1].event["gap"] == {
        "coalesced": 2,
        "missing_characters": 0,
        "from_position": 1,
        "to_position": 3,
    }
    assert found[4].event["payload"]["line"] == "two\nthree"
    assert "gap" not in found[3].event
    assert found[2].event == events[3].event
    long = coalesced([told(n, thought("x" * 1_000)) for n in range(1, 11)])
    assert [len(one.event["payload"]["chunk"]) for one in long] == [MOST_TEXT]
    assert long[0].event["gap"]["missing_characters"] == 10_000 - MOST_TEXT


@proves("SAOP-SLOW")
def test_a_queue_has_an_end_and_tools_are_never_skipped() -> None:
    backlog = Backlog(10)
    assert not backlog
    assert backlog.add(weighed(told(n, thought("x")) for n in range(1, 50)))
    assert backlog.add(weighed(told(n, invoked(f"c-{n}")) for n in range(50, 59)))
    assert len(backlog.take()) == 10
    assert not backlog.add(weighed(told(n, invoked(f"c-{n}")) for n in range(11)))


@proves("SAOP-SLOW")
def test_a_listener_that_stops_reading_is_closed_with_its_cursor_and_goes_on_from_there() -> None:
    desk = SaopHub()
    with listening(desk) as bus:
        slow, quick = bus.subscribe(size=4), bus.subscribe()
        desk.event(1, invoked("c-1"))
        assert len(take(slow, 1)) == 1
        for number in range(2, 30):
            desk.event(number, invoked(f"c-{number}"))
        assert len(take(quick, 29)) == 29, "the slow one has held up nobody"
        with pytest.raises(Closed) as closed:
            slow.take(LONG)
        assert "go on after position" in str(closed.value)
        again = bus.subscribe(closed.value.cursor)
        calls = [one.event["payload"]["call_id"] for one in take(again, 28)]
        assert calls == [f"c-{number}" for number in range(2, 30)]


@proves("SAOP-BUS")
def test_a_position_beyond_the_ledger_is_its_end() -> None:
    desk = SaopHub()
    desk.event(0, pulse("before"))
    with listening(desk) as bus:
        one = bus.subscribe(after=5_000)
        assert one.cursor == desk.store.head()
        desk.event(1, invoked("c1"))
        assert [told.type for told in take(one, 1)] == ["TOOL_LIFECYCLE_INVOKED"]


@proves("SAOP-BUS")
def test_what_waits_is_bounded_in_bytes_too() -> None:
    backlog = Backlog(1_000)
    large = invoked("c1", text="x" * 1_000_000)
    told = weighed(Told(n, "TOOL_LIFECYCLE_INVOKED", "", False, event(n, large)) for n in range(20))
    assert backlog.add(told[:10])
    assert not backlog.add(told[10:])
    assert len(backlog.take()) == 20
    assert backlog.add(told[:10])


@proves("SAOP-BUS")
def test_what_cannot_be_read_on_ends_it_for_everyone_and_is_no_secret(
    recwarn: pytest.WarningsRecorder,
) -> None:
    def broken(_: Told) -> bool:
        raise LookupError("a fault of ours")

    desk, seen = SaopHub(), list[threading.ExceptHookArgs]()
    before, threading.excepthook = threading.excepthook, seen.append
    try:
        with listening(desk) as bus:
            one, other = bus.subscribe(), bus.subscribe(wanted=broken)
            desk.event(0, pulse("line"))
            for listener in (one, other):
                with pytest.raises(Closed):
                    take(listener, 2)
    finally:
        threading.excepthook = before
    assert [args.exc_type for args in seen] == [LookupError]
    assert not recwarn.list
