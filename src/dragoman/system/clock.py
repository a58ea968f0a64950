"""Clocks, in milliseconds since the epoch (UTC), and ids in the order of time."""

import time
from itertools import count

# --- clock ------------------------------------------------------------------------------------


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


# --- ids --------------------------------------------------------------------------------------


def new_id() -> str:
    """A UUIDv7: ordered by time, so that indexes grow at their end."""
    from uuid_utils import uuid7  # noqa: PLC0415  a command that only reads needs no ids

    return str(uuid7())


class SequentialIds:
    """Ids in the form of a UUIDv7 that count 1, 2, 3 and so are the same in every run."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def __call__(self) -> str:
        """The next id."""
        return f"00000000-0000-7000-8000-{next(self._numbers):012x}"
