"""Clocks: milliseconds since the epoch (UTC), handed in wherever time matters."""

import time


class SystemClock:
    """Wall clock of the machine."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


class FixedClock:
    """Clock that stands still, for a command with `--now`."""

    def __init__(self, at: int) -> None:
        self._at = at

    def now(self) -> int:
        """The fixed time."""
        return self._at


class ManualClock:
    """Clock that moves only when it is advanced, for tests and simulations."""

    def __init__(self, start: int) -> None:
        self._at = start

    def now(self) -> int:
        """Start time plus everything it was advanced by."""
        return self._at

    def advance(self, milliseconds: int) -> None:
        """Move on; a negative number simulates a wall clock that was set back."""
        self._at += milliseconds
