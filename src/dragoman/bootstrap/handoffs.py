"""What handoffs are given from the outside: settings, a place for artifacts, and a work queue."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from dragoman.config import Settings
from dragoman.core.errors import Refusal
from dragoman.engine.artifacts import ArtifactStore
from dragoman.engine.hub import Hub
from dragoman.engine.workq import WorkQueue
from dragoman.files.handoffs.artifacts import FileArtifactStore
from dragoman.protocols import acp
from dragoman.services.workq import HubWorkq
from dragoman.system.beneath import SafeDisk
from dragoman.system.ids import new_id


class HandoffPorts(Struct, frozen=True):
    """Ports of handoffs: artifact store, work queue, and the check for secrets."""

    artifacts: ArtifactStore | None = None
    workq: WorkQueue | None = None
    check_secrets: Callable[[Any], Refusal | None] = lambda _: None
    sweep: Callable[[int], int] = lambda _: 0
    """Removes what a crash has left of artifacts, as of a timestamp."""


NO_HANDOFF_PORTS: Final = HandoffPorts()
"""No ports, for callers that only parse messages."""


def handoff_ports(settings: Settings, hub: Hub, data: Path) -> HandoffPorts:
    """Ports of a hub on this data directory."""
    section = settings.handoffs
    artifacts = FileArtifactStore(
        data,
        SafeDisk,
        new_id,
        tuple(data / root for root in section.artifact_roots),
        section.artifact_bytes,
    )
    return HandoffPorts(
        artifacts,
        _open_workq(settings, hub),
        hub.redaction.check_document,
        artifacts.remove_stale_incoming,
    )


def _open_workq(settings: Settings, hub: Hub) -> WorkQueue:
    section = settings.workq
    if not section.url:
        return HubWorkq(hub)
    from dragoman.system.fetch import SafeHttpClient
    from dragoman.system.workq_rpc import WorkqClient

    return WorkqClient(
        SafeHttpClient(section.url, "workq.url", section.allow_hosts).post_and_read, section.token
    )


def handoff_choices(settings: Settings, ports: HandoffPorts) -> acp.Choices:
    """ACP settings."""
    section = settings.handoffs
    return acp.Choices(
        adopt=section.adopt,
        review_required=settings.tasks.review_required,
        max_attempts=settings.tasks.max_attempts,
        backoff=settings.retry,
        ttl_ms=section.ttl_ms,
        sla_ms={
            "proposed": section.proposed_ms,
            "validating": section.validating_ms,
            "accepted": section.accepted_ms,
            "activated": section.activated_ms,
        },
        classifications=frozenset(section.classifications),
        visibilities=frozenset(section.visibilities),
        sensitivities=frozenset(section.sensitivities),
        teamspaces={
            name: acp.Teamspace(frozenset(team.members), frozenset(team.coordinators))
            for name, team in settings.teamspaces.items()
        },
        coordinator=section.coordinator,
        artifacts=ports.artifacts,
        max_artifact_bytes=section.artifacts_bytes,
        find_secret=ports.check_secrets,
        workq=ports.workq,
        uses_own_workq=not settings.workq.url,
    )
