"""Builds every dialect from the settings, with the ports that they need."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, overload

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import AgentSettings, Settings
from dragoman.core.errors import Refusal, SettingsError
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Dialect
from dragoman.engine.ports import ArtifactStore, Clock
from dragoman.engine.workq import WorkQueue
from dragoman.system.clock import new_id
from dragoman.system.safe_fs import SafeDisk
from dragoman.text.redact import Redactor

if TYPE_CHECKING:
    from dragoman.core.trace import RecordTrace
    from dragoman.protocols import acp, agentmail, saop
    from dragoman.system.redaction_carry_over_file import CarryOverFile

# --- traces -----------------------------------------------------------------------------------

_CARRY_OVER_FOLDER = "carry-over"


def open_carry_over(data: Path, secret: bytes, clock: Clock) -> "CarryOverFile":
    """Carry-over of thoughts between chunks, shared by all processes."""
    from dragoman.system.redaction_carry_over_file import CarryOverFile

    return CarryOverFile(data / _CARRY_OVER_FOLDER, secret, lambda: clock.now() / 1_000)


def trace_choices(
    settings: Settings, redactor: Redactor, hub: Hub, head: Callable[[], str]
) -> "saop.Choices":
    """SAOP settings."""
    from dragoman.protocols import saop

    section = settings.saop
    return saop.Choices(
        adopt=section.adopt,
        review_required=settings.tasks.review_required,
        max_attempts=settings.tasks.max_attempts,
        ttl_ms=section.ttl_ms,
        max_turn_bytes=section.max_turn_bytes,
        redactor=redactor,
        digest=hub.content_key,
        head=head,
    )


# --- handoffs ---------------------------------------------------------------------------------


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
    from dragoman.files.artifacts import FileArtifactStore

    section = settings.handoffs
    artifacts = FileArtifactStore(
        data,
        SafeDisk,
        new_id,
        tuple(data / root for root in section.artifact_roots),
        section.max_artifact_bytes,
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
        from dragoman.services.workq import HubWorkq

        return HubWorkq(hub)
    from dragoman.system.http_client import SafeHttpClient
    from dragoman.system.workq_client import WorkqClient

    return WorkqClient(
        SafeHttpClient(section.url, "workq.url", section.allow_hosts).post_and_read, section.token
    )


def handoff_choices(settings: Settings, ports: HandoffPorts) -> "acp.Choices":
    """ACP settings."""
    from dragoman.protocols import acp

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
        max_package_bytes=section.max_package_bytes,
        find_secret=ports.check_secrets,
        workq=ports.workq,
    )


# --- dialects that are installed beside the hub -----------------------------------------------

_ENTRY_POINTS = "dragoman.dialects"


@cache
def _installed_dialects() -> tuple[Dialect, ...]:
    """Dialects of other packages, by their entry points: each a function that builds one."""
    from importlib.metadata import entry_points

    return tuple(
        _load_dialect(one.name, one.value, one.load)
        for one in sorted(entry_points(group=_ENTRY_POINTS))
    )


def _load_dialect(name: str, origin: str, load: Callable[[], Any]) -> Dialect:
    try:
        built = load()()
    except Exception as error:
        raise SettingsError(
            f"the dialect {name} ({origin}) cannot be loaded: {error!r}; "
            "repair its package, or uninstall it"
        ) from error
    if not isinstance(built, Dialect) or built.name != name:
        raise SettingsError(
            f"{origin} does not build the dialect {name}: it has to return a Dialect of that name"
        )
    return built


def _check_unique(dialects: tuple[Dialect, ...]) -> tuple[Dialect, ...]:
    """Refuse two dialects, or two operations, of one name."""
    names = [one.name for one in dialects]
    names += [operation.name for one in dialects for operation in one.operations]
    for name, times in Counter(names).items():
        if times > 1:
            raise SettingsError(
                f"there are two dialects or operations {name}: uninstall one of the packages that "
                "bring a dialect"
            )
    return dialects


# --- all dialects -----------------------------------------------------------------------------


class AllDialects(Sequence[Dialect]):
    """Our own dialects, and behind them the installed ones.

    Each is built when it is first reached, because that takes longer than most commands: a message
    is seldom of the last one.
    """

    def __init__(self, *builders: Callable[[], Dialect]) -> None:
        self._builders = tuple(map(cache, builders))

    @cached_property
    def _all(self) -> tuple[Dialect, ...]:
        return _check_unique((*(build() for build in self._builders), *_installed_dialects()))

    def __iter__(self) -> Iterator[Dialect]:
        yield from (build() for build in self._builders)
        yield from self._all[len(self._builders) :]

    def __len__(self) -> int:
        return len(self._all)

    @overload
    def __getitem__(self, index: int) -> Dialect: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Dialect, ...]: ...

    def __getitem__(self, index: int | slice) -> Dialect | tuple[Dialect, ...]:
        return self._all[index]


class OpenedDialects(Struct, frozen=True, dict=True):
    """The dialects of the hub on a data directory, and what they share with the services."""

    settings: Settings
    data: Path
    hub: Hub
    secret: bytes

    @cached_property
    def dialects(self) -> AllDialects:
        """All dialects."""
        return build_dialects(
            self.settings,
            lambda: self.handoff_ports,
            lambda: replace(self._trace_choices, tails=self.carry_over),
        )

    @cached_property
    def handoff_ports(self) -> HandoffPorts:
        """Ports of handoffs."""
        return handoff_ports(self.settings, self.hub, self.data)

    @cached_property
    def carry_over(self) -> "CarryOverFile":
        """Carry-over of thoughts between chunks."""
        return open_carry_over(self.data, self.secret, self.hub.clock)

    @cached_property
    def _trace_choices(self) -> "saop.Choices":
        hub = self.hub
        return trace_choices(self.settings, hub.redaction.redactor, hub, hub.engine.current_commit)

    def close_stream(self, key: str, held: str) -> "RecordTrace | None":
        """End a thought that its sender never finished."""
        from dragoman.protocols import saop

        return saop.final_chunk(key, held, choices=self._trace_choices)


def build_dialects(
    settings: Settings | None = None,
    ports: Callable[[], HandoffPorts] = lambda: NO_HANDOFF_PORTS,
    traces: "Callable[[], saop.Choices | None]" = lambda: None,
) -> AllDialects:
    """Build every dialect, in the order in which they are shown a message."""
    settings = settings or Settings()
    return AllDialects(
        partial(_build_aof, settings),
        partial(_build_agentmail, settings),
        lambda: _build_acp(settings, ports()),
        partial(_build_ccos, settings),
        lambda: _build_saop(traces()),
    )


def _build_aof(settings: Settings) -> Dialect:
    from dragoman.protocols import aof

    return aof.dialect(apply_immediately=settings.aof.apply_completion == "immediately")


def _build_agentmail(settings: Settings) -> Dialect:
    from dragoman.protocols import agentmail

    return agentmail.dialect(_mail_choices(settings))


def _build_acp(settings: Settings, ports: HandoffPorts) -> Dialect:
    from dragoman.protocols import acp

    return acp.dialect(handoff_choices(settings, ports))


def _build_ccos(settings: Settings) -> Dialect:
    from dragoman.protocols import ccos

    return ccos.dialect(
        ccos.Choices(
            policy=settings.ccos.policy,
            max_agents=settings.ccos.max_agents,
            patience_ms=settings.ccos.request_ms,
            max_output_bytes=settings.ccos.max_output_bytes,
            review_required=settings.ccos.review,
            concurrency=_AgentConcurrency(settings.agents),
        )
    )


def _build_saop(traces: "saop.Choices | None") -> Dialect:
    from dragoman.protocols import saop

    return saop.dialect(traces)


class _AgentConcurrency(Mapping[str, int]):
    """The number of runs that each agent of the settings may have at a time."""

    def __init__(self, agents: Mapping[str, AgentSettings]) -> None:
        self._agents = agents

    def __getitem__(self, name: str) -> int:
        return self._agents[name].concurrency

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)


def _mail_choices(settings: Settings) -> "agentmail.Choices":
    from dragoman.protocols import agentmail

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
    )
