"""Arithmetic of time: leases, retries, backoff. Times are milliseconds since the epoch."""

from msgspec import Struct


class Backoff(Struct, frozen=True):
    """How long a task rests after its n-th failure: `base_ms`, doubling, up to `cap_ms`."""

    base_ms: int = 1_000
    """How long a task rests after its first failure; the rest doubles with every further one."""
    cap_ms: int = 300_000
    """The longest rest."""


def rest_after(failures: int, backoff: Backoff) -> int:
    """Milliseconds to wait after this many failures in a row."""
    doublings = min(failures - 1, 40)
    return min(backoff.base_ms << doublings, backoff.cap_ms)
