"""A lease: who holds a task, under which fencing token, until when (S-RUN).

Leases live beside the ledger, because a heartbeat is not history. The claim that began one is.
"""

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.moments import within_span


class Lease(Struct, frozen=True, gc=False):
    """One agent's hold on one task; it is alive before `expires_at` and dead from then on."""

    holder: str
    fence: int
    ttl_ms: int
    beat_at: int
    expires_at: int
    session: str = ""
    beats: int = 1

    def is_live(self, now: int) -> bool:
        """Whether the holder may still write."""
        return now < self.expires_at


def granted(holder: str, fence: int, session: str, ttl_ms: int, now: int) -> Lease:
    """A new lease; its first heartbeat is the claim itself, so that a crash before one is seen."""
    return Lease(holder, fence, ttl_ms, now, now + ttl_ms, session)


def renewed(lease: Lease, now: int) -> Lease:
    """The lease after a sign of life. A clock that went back never shortens it.

    At the end of the calendar it ends with that: a sign of life is never refused for its time.
    """
    return Lease(
        lease.holder,
        lease.fence,
        lease.ttl_ms,
        max(now, lease.beat_at),
        max(within_span(now + lease.ttl_ms), lease.expires_at),
        lease.session,
        lease.beats + 1,
    )


def kept(lease: Lease, lasts_ms: int, now: int) -> Lease:
    """The lease that lasts so long from now on, whether that is longer than before or shorter.

    It is no sign of life.
    """
    return replace(lease, expires_at=within_span(now + lasts_ms))
