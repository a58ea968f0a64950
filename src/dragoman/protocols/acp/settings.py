"""Settings of ACP, with the artifact store and the work queue that it is handed."""

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.backoff import Backoff
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import COORDINATOR
from dragoman.engine.ports import ArtifactStore
from dragoman.engine.workq import WorkQueue
from dragoman.protocols.acp.wire import Classification, Sensitivity, Visibility

HANDOFF_LEASE_MS: Final = 20 * 60_000
"""Duration of a lease that `activate` grants: ACP has no heartbeats."""


class Teamspace(Struct, frozen=True):
    """Members and coordinators of a teamspace."""

    members: frozenset[str]
    coordinators: frozenset[str] = frozenset()


class Choices(Struct, frozen=True):
    """Settings of this dialect."""

    adopt: bool = True
    """True if an initiate about an unknown task creates it."""
    review_required: bool = True
    max_attempts: int = 5
    backoff: Backoff = Backoff()
    ttl_ms: int = HANDOFF_LEASE_MS
    sla_ms: Mapping[str, int] = {}
    """State -> its SLA, if it differs from the protocol's default."""
    classifications: frozenset[str] = frozenset(get_args(Classification))
    visibilities: frozenset[str] = frozenset(get_args(Visibility))
    sensitivities: frozenset[str] = frozenset(get_args(Sensitivity))
    """Permitted values of a package's policy, like the two above."""
    coordinator: str = COORDINATOR
    """Recipient for `coordinator` if nobody has that role."""
    teamspaces: Mapping[str, Teamspace] = {}
    """Teamspaces that are not open to everyone."""
    artifacts: ArtifactStore | None = None
    """Store that verifies and keeps artifacts; None: there is none."""
    max_package_bytes: int = 1 << 32
    """Largest total size of a package's artifacts, in bytes."""
    find_secret: Callable[[Any], Refusal | None] = lambda _: None
    """Refusal of a document that contains a secret; None: it contains none."""
    workq: WorkQueue | None = None
    """Work queue in which items are transferred; None: there is none."""


DEFAULTS: Final = Choices()
