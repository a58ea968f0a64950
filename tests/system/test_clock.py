"""A clock tells milliseconds: the machine's, one that stands, one that is moved."""

from datetime import UTC, datetime

from dragoman.engine.ports import Clock
from dragoman.system.clock import FixedClock, HandClock, SystemClock
from tests.requirements import proves

BEFORE_THIS_WAS_WRITTEN = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1000)
LONG_AFTER = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp() * 1000)


@proves("CLI-NOW")
def test_the_system_clock_tells_milliseconds_of_our_age() -> None:
    clock: Clock = SystemClock()
    assert BEFORE_THIS_WAS_WRITTEN < clock.now() < LONG_AFTER


@proves("CLI-NOW")
def test_a_fixed_clock_stands_still() -> None:
    clock: Clock = FixedClock(42)
    assert [clock.now(), clock.now()] == [42, 42]


@proves("TESTING-HUB")
def test_a_hand_clock_moves_only_when_it_is_moved() -> None:
    clock = HandClock(1_000)
    assert clock.now() == 1_000
    clock.advance(500)
    assert clock.now() == 1_500
    clock.advance(-1_000)
    assert clock.now() == 500
