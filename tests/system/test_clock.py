"""Clocks in milliseconds: system, fixed, and manual."""

from datetime import UTC, datetime

from dragoman.engine.ports import Clock
from dragoman.system.clock import FixedClock, ManualClock, SystemClock
from tests.requirements import proves

EARLIEST = int(datetime(2025, 1, 1, tzinfo=UTC).timestamp() * 1000)
LATEST = int(datetime(2200, 1, 1, tzinfo=UTC).timestamp() * 1000)


@proves("CLI-NOW")
def test_system_clock_returns_epoch_milliseconds() -> None:
    clock: Clock = SystemClock()
    assert EARLIEST < clock.now() < LATEST


@proves("CLI-NOW")
def test_fixed_clock_stands_still() -> None:
    clock: Clock = FixedClock(42)
    assert [clock.now(), clock.now()] == [42, 42]


@proves("TESTING-HUB")
def test_manual_clock_moves_only_by_advance() -> None:
    clock = ManualClock(1_000)
    assert clock.now() == 1_000
    clock.advance(500)
    assert clock.now() == 1_500
    clock.advance(-1_000)
    assert clock.now() == 500
