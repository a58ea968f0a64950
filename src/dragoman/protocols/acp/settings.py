"""What can be chosen about ACP, and what is handed in to it: artifacts, and a work queue."""

from collections.abc import Callable, Mapping
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.deadlines import Backoff
from dragoman.core.deciding.handoffs.common import COORDINATOR
from dragoman.core.errors import Refusal
from dragoman.engine.artifacts import ArtifactStore
from dragoman.engine.workq import Workq
from dragoman.protocols.acp.wire import Classification, Sensitivity, Visibility

QUIET_TTL_MS: Final = 20 * 60_000
"""A lease that is taken by activate lasts this long without a word: ACP has no heartbeats."""


class Teamspace(Struct, frozen=True):
    """Who belongs to a teamspace, and who coordinates in it."""

    members: frozenset[str]
    coordinators: frozenset[str] = frozenset()


class Choices(Struct, frozen=True):
    """The settings that this dialect goes by."""

    adopt: bool = True
    """Whether an initiate about an unknown task makes it a task."""
    review_required: bool = True
    max_attempts: int = 5
    backoff: Backoff = Backoff()
    ttl_ms: int = QUIET_TTL_MS
    sla_ms: Mapping[str, int] = {}
    """State -> how long it may last, where that differs from the protocol's table."""
    classifications: frozenset[str] = frozenset(get_args(Classification))
    visibilities: frozenset[str] = frozenset(get_args(Visibility))
    sensitivities: frozenset[str] = frozenset(get_args(Sensitivity))
    """What of a policy is permitted here."""
    coordinator: str = COORDINATOR
    """Who is meant by `coordinator` where nobody has that role."""
    teamspaces: Mapping[str, Teamspace] = {}
    """Those that are not open to everyone."""
    artifacts: ArtifactStore | None = None
    """Where artifacts are looked at and kept; None: nowhere."""
    artifacts_bytes: int = 1 << 32
    """How many bytes the artifacts of one package may have together."""
    secret_in: Callable[[Any], Refusal | None] = lambda _: None
    """Why a document cannot be taken: a secret is in it; None: there is none."""
    workq: Workq | None = None
    """The work queue that items are handed on in; None: there is none."""
    has_own_workq: bool = True
    """Whether that is the hub's own; else its operations go there, and the hub's own keeps what
    that one has left orphaned."""


DEFAULTS: Final = Choices()
