"""What can be chosen about Agent Mail."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from dragoman.core.deadlines import Backoff
from dragoman.engine.reads.teamspaces import NO_TEAMS, Team

QUIET_TTL_MS: Final = 20 * 60_000
"""A lease that is taken by mail lasts this long without a word: mail has no heartbeats (S-RUN)."""


class InWords(Struct, frozen=True):
    """What a program makes of a thread."""

    text: str = ""
    trouble: str = ""
    """Why there is no text."""


Model = Callable[[bytes], InWords]
"""Puts a thread, its letters as a JSON array, into words."""


class Choices(Struct, frozen=True):
    """The settings that this dialect goes by."""

    adopt: bool = True
    """Whether the first word about an unknown bead makes it a task."""
    review_required: bool = True
    max_attempts: int = 5
    backoff: Backoff = Backoff()
    ttl_ms: int = QUIET_TTL_MS
    helper: str = "chiron"
    """Who gets requests for help."""
    spawner: str = "spawner"
    """Who gets requests to start a worker: the hub itself, unless an agent has that name."""
    ack_within_ms: int = 30 * 60_000
    """After how long a missing ack or answer is told as late."""
    groups: Mapping[str, tuple[str, ...]] = {}
    """Name of a group -> who is in it; addressed as @NAME."""
    teamspaces: Mapping[str, Team] = NO_TEAMS
    """Those with members: letters about handoffs there are shown to nobody else."""
    model: Model | None = None
    """Whoever puts threads into words when asked to; None: nobody."""


DEFAULTS: Final = Choices()
