"""What is spoken at a place: every dialect, by the settings, with what it needs from outside."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from dragoman.bootstrap.handoffs import (
    NO_HANDOFF_PORTS,
    HandoffPorts,
    handoff_choices,
    handoff_ports,
)
from dragoman.bootstrap.traces import open_carry_over, trace_choices
from dragoman.config import Settings
from dragoman.core.commands import RecordTrace
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Dialect
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from dragoman.system.chunk_tails import CarryOverFile


class OpenedDialects(Struct, frozen=True):
    """The dialects, and what they share with the services."""

    dialects: tuple[Dialect, ...]
    handoff_ports: HandoffPorts
    carry_over: CarryOverFile
    close_stream: Callable[[str, str], RecordTrace | None]


def open_dialects(settings: Settings, data: Path, hub: Hub, secret: bytes) -> OpenedDialects:
    """Open every dialect of the hub on this data directory."""
    carry_over = open_carry_over(data, secret, hub.clock)
    traces = trace_choices(settings, hub.redaction.redactor, hub, hub.engine.current_commit)
    ports = handoff_ports(settings, hub, data)
    built = build_dialects(
        settings, _summary_model(settings, data), ports, replace(traces, tails=carry_over)
    )
    return OpenedDialects(built, ports, carry_over, partial(saop.final_chunk, choices=traces))


def build_dialects(
    settings: Settings | None = None,
    model: agentmail.Model | None = None,
    ports: HandoffPorts = NO_HANDOFF_PORTS,
    traces: saop.Choices | None = None,
) -> tuple[Dialect, ...]:
    """Build every dialect."""
    settings = settings or Settings()
    return (
        aof.dialect(apply_immediately=settings.aof.apply_completion == "immediately"),
        agentmail.dialect(_mail_choices(settings, model)),
        acp.dialect(handoff_choices(settings, ports)),
        ccos.dialect(
            ccos.Choices(
                policy=settings.ccos.policy,
                tries=settings.ccos.tries,
                patience_ms=settings.ccos.request_ms,
                kept_bytes=settings.ccos.payload_bytes,
                concurrency={name: one.concurrency for name, one in settings.agents.items()},
            )
        ),
        saop.dialect(traces),
    )


def _summary_model(settings: Settings, data: Path) -> agentmail.Model | None:
    """Summarizer of threads, if the settings name a program."""
    if not settings.agentmail.summarize_command:
        return None
    from dragoman.bootstrap.summaries import open_summary_model

    return open_summary_model(settings, data)


def _mail_choices(settings: Settings, model: agentmail.Model | None) -> agentmail.Choices:
    section = settings.agentmail
    return agentmail.Choices(
        adopt=section.adopt,
        review_required=settings.tasks.review_required,
        max_attempts=settings.tasks.max_attempts,
        backoff=settings.retry,
        ttl_ms=section.ttl_ms,
        helper=section.helper,
        spawner=section.spawner,
        ack_within_ms=section.ack_within_ms,
        groups={name: group.members for name, group in settings.groups.items()},
        teamspaces=settings.teamspaces,
        model=model,
    )
