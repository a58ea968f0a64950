"""The hub's clock: milliseconds since the epoch (UTC), handed in wherever time matters."""

import time


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> int:
        """Milliseconds since the epoch, UTC."""
        return time.time_ns() // 1_000_000


class FixedClock:
    """A clock that stands still, for a command that was told what time it is."""

    def __init__(self, at: int) -> None:
        self._at = at

    def now(self) -> int:
        """The one moment it knows."""
        return self._at


class HandClock:
    """A clock that moves only when it is moved, for tests and simulations."""

    def __init__(self, start: int) -> None:
        self._at = start

    def now(self) -> int:
        """The start and everything it was advanced by."""
        return self._at

    def advance(self, milliseconds: int) -> None:
        """Move on; a negative number plays a wall clock that was set back."""
        self._at += milliseconds
