"""Settings of Agent Mail."""

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.backoff import Backoff
from dragoman.engine.queries.visibility import NO_TEAMS, Team

MAIL_LEASE_MS: Final = 20 * 60_000
"""Lease of a task that is claimed by mail; long, because mail has no heartbeats (S-RUN)."""


class Choices(Struct, frozen=True):
    """Settings of the dialect."""

    adopt: bool = True
    """Create a task for the first letter about an unknown bead."""
    review_required: bool = True
    max_attempts: int = 5
    backoff: Backoff = Backoff()
    ttl_ms: int = MAIL_LEASE_MS
    helper: str = "chiron"
    """Recipient of requests for help."""
    spawner: str = "spawner"
    """Recipient of requests to spawn a worker: the hub itself, unless an agent has that name."""
    ack_within_ms: int = 30 * 60_000
    """Time after which a missing ack or answer is escalated as late."""
    groups: Mapping[str, tuple[str, ...]] = {}
    """Group -> its members; addressed as @NAME."""
    teamspaces: Mapping[str, Team] = NO_TEAMS
    """Teamspaces with members: letters about their handoffs are shown to nobody else."""


DEFAULTS: Final = Choices()
