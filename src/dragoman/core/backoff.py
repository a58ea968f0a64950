"""Backoff: the delay before a task is tried again after failures. Times are in milliseconds."""

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """Retry policy: the delay doubles with each failure, from `base_ms` up to `cap_ms`."""

    base_ms: int = 1_000
    """Delay before the first retry; it doubles with every further failure."""
    cap_ms: int = 300_000
    """The longest delay."""


def backoff_delay(failures: int, backoff: Backoff) -> int:
    """Milliseconds to wait after this many failures in a row."""
    doublings = min(failures - 1, 40)
    return min(backoff.base_ms << doublings, backoff.cap_ms)
