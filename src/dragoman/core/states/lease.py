"""A lease: who holds a task, under which fencing token, until when (S-RUN).

Leases live beside the ledger, because a heartbeat is not history. The claim that began one is.
"""

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.moments import clamp_timestamp


class Lease(Struct, frozen=True, gc=False):
    """An agent's hold on a task: valid before `expires_at`, expired from then on."""

    holder: str
    fence: int
    ttl_ms: int
    beat_at: int
    expires_at: int
    session: str = ""
    beats: int = 1

    def is_valid(self, now: int) -> bool:
        """True while the holder may write."""
        return now < self.expires_at


def grant_lease(holder: str, fence: int, session: str, ttl_ms: int, now: int) -> Lease:
    """Grant a lease; the claim is its first heartbeat, so that a crash before one is seen."""
    return Lease(holder, fence, ttl_ms, now, now + ttl_ms, session)


def renew_lease(lease: Lease, now: int) -> Lease:
    """Renew the lease by a sign of life. A clock that went back never shortens it.

    Its end is at most the last representable timestamp: no sign of life is refused for its time.
    """
    return Lease(
        lease.holder,
        lease.fence,
        lease.ttl_ms,
        max(now, lease.beat_at),
        max(clamp_timestamp(now + lease.ttl_ms), lease.expires_at),
        lease.session,
        lease.beats + 1,
    )


def set_lease_duration(lease: Lease, lasts_ms: int, now: int) -> Lease:
    """Set the lease to last this long from now on, longer or shorter than before.

    It is no sign of life.
    """
    return replace(lease, expires_at=clamp_timestamp(now + lasts_ms))
