"""What handoffs are given from the outside: settings, a place for artifacts, and a work queue."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from dragoman.config import Settings
from dragoman.core.errors import Refusal
from dragoman.engine.artifacts import ArtifactStore
from dragoman.engine.hub import Hub
from dragoman.engine.workq import Workq
from dragoman.files.handoffs.artifacts import ArtifactShelf
from dragoman.protocols import acp
from dragoman.services.workq import HubWorkq
from dragoman.system.beneath import Beneath
from dragoman.system.ids import new_id


class Ports(Struct, frozen=True):
    """Ports of handoffs: artifact store, work queue, and the check for secrets."""

    artifacts: ArtifactStore | None = None
    workq: Workq | None = None
    secret_in: Callable[[Any], Refusal | None] = lambda _: None
    sweep: Callable[[int], int] = lambda _: 0
    """Removes what a crash has left of artifacts, as of a timestamp."""


NO_PORTS: Final = Ports()
"""No ports, for callers that only parse messages."""


def handoff_ports(settings: Settings, hub: Hub, data: Path) -> Ports:
    """Ports of a hub on this data directory."""
    chosen = settings.handoffs
    shelf = ArtifactShelf(
        data,
        Beneath,
        new_id,
        tuple(data / root for root in chosen.artifact_roots),
        chosen.artifact_bytes,
    )
    return Ports(shelf, _workq(settings, hub), hub.redaction.refusal, shelf.sweep)


def _workq(settings: Settings, hub: Hub) -> Workq:
    chosen = settings.workq
    if not chosen.url:
        return HubWorkq(hub)
    from dragoman.system.fetch import Endpoint
    from dragoman.system.workq_rpc import WorkqRpc

    return WorkqRpc(Endpoint(chosen.url, "workq.url", chosen.allow_hosts).exchange, chosen.token)


def handoff_choices(settings: Settings, ports: Ports) -> acp.Choices:
    """ACP settings."""
    chosen = settings.handoffs
    return acp.Choices(
        adopt=chosen.adopt,
        review_required=settings.tasks.review_required,
        max_attempts=settings.tasks.max_attempts,
        backoff=settings.retry,
        ttl_ms=chosen.ttl_ms,
        sla_ms={
            "proposed": chosen.proposed_ms,
            "validating": chosen.validating_ms,
            "accepted": chosen.accepted_ms,
            "activated": chosen.activated_ms,
        },
        classifications=frozenset(chosen.classifications),
        visibilities=frozenset(chosen.visibilities),
        sensitivities=frozenset(chosen.sensitivities),
        teamspaces={
            name: acp.Teamspace(frozenset(team.members), frozenset(team.coordinators))
            for name, team in settings.teamspaces.items()
        },
        coordinator=chosen.coordinator,
        artifacts=ports.artifacts,
        artifacts_bytes=chosen.artifacts_bytes,
        secret_in=ports.secret_in,
        workq=ports.workq,
        has_own_workq=not settings.workq.url,
    )
