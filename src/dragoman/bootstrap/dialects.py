"""Builds every dialect and the redactor from the settings, with the ports that they need."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from dragoman.config import Settings, environment, load_settings
from dragoman.core.errors import Refusal, SettingsError
from dragoman.core.trace import RecordTrace
from dragoman.engine.hub import Hub
from dragoman.engine.operation import Dialect
from dragoman.engine.ports import ArtifactStore, Clock
from dragoman.engine.workq import WorkQueue
from dragoman.files.artifacts import FileArtifactStore
from dragoman.protocols import acp, agentmail, aof, ccos, saop
from dragoman.services.workq import HubWorkq
from dragoman.system.bearer_tokens import load_token, new_secret
from dragoman.system.git import GitHead
from dragoman.system.ids import new_id
from dragoman.system.keys import LedgerKey, load_keys
from dragoman.system.redaction_carry_over_file import CarryOverFile
from dragoman.system.safe_fs import BadKey, SafeDisk
from dragoman.text.base64url import encode_base64url
from dragoman.text.keyed_digest import keyed_digest
from dragoman.text.redact import MIN_SECRET_LENGTH, Redactor, Secret, is_secret_variable

# --- traces -----------------------------------------------------------------------------------

_CARRY_OVER_FOLDER = "carry-over"


def open_git_head(settings: Settings, data: Path) -> Callable[[], str]:
    """Reader of the commit that is checked out in the repository of the settings; empty without
    one.
    """
    repository = settings.git.repository
    return GitHead(data / repository) if repository else lambda: ""


def open_carry_over(data: Path, secret: bytes, clock: Clock) -> CarryOverFile:
    """Carry-over of thoughts between chunks, shared by all processes."""
    return CarryOverFile(data / _CARRY_OVER_FOLDER, secret, lambda: clock.now() / 1_000)


def trace_choices(
    settings: Settings, redactor: Redactor, hub: Hub, head: Callable[[], str]
) -> saop.Choices:
    """SAOP settings."""
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
        return HubWorkq(hub)
    from dragoman.system.http_client import SafeHttpClient
    from dragoman.system.workq_client import WorkqClient

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
        max_package_bytes=section.max_package_bytes,
        find_secret=ports.check_secrets,
        workq=ports.workq,
        uses_own_workq=not settings.workq.url,
    )


# --- dialects that are installed beside the hub -----------------------------------------------

_ENTRY_POINTS = "dragoman.dialects"


@cache
def _installed_dialects() -> tuple[Dialect, ...]:
    """Dialects of other packages, by their entry points: each a function that builds one."""
    return tuple(_load_dialect(one) for one in sorted(entry_points(group=_ENTRY_POINTS)))


def _load_dialect(entry_point: EntryPoint) -> Dialect:
    try:
        built = entry_point.load()()
    except Exception as error:
        raise SettingsError(
            f"the dialect {entry_point.name} ({entry_point.value}) cannot be loaded: {error!r}; "
            "repair its package, or uninstall it"
        ) from error
    if not isinstance(built, Dialect) or built.name != entry_point.name:
        raise SettingsError(
            f"{entry_point.value} does not build the dialect {entry_point.name}: it has to return "
            "a Dialect of that name"
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
    built = build_dialects(settings, ports, replace(traces, tails=carry_over))
    return OpenedDialects(built, ports, carry_over, partial(saop.final_chunk, choices=traces))


def build_dialects(
    settings: Settings | None = None,
    ports: HandoffPorts = NO_HANDOFF_PORTS,
    traces: saop.Choices | None = None,
) -> tuple[Dialect, ...]:
    """Build every dialect, in the order in which they are shown a message."""
    settings = settings or Settings()
    own = (
        aof.dialect(apply_immediately=settings.aof.apply_completion == "immediately"),
        agentmail.dialect(_mail_choices(settings)),
        acp.dialect(handoff_choices(settings, ports)),
        ccos.dialect(
            ccos.Choices(
                policy=settings.ccos.policy,
                max_agents=settings.ccos.max_agents,
                patience_ms=settings.ccos.request_ms,
                max_output_bytes=settings.ccos.max_output_bytes,
                concurrency={name: one.concurrency for name, one in settings.agents.items()},
            )
        ),
        saop.dialect(traces),
    )
    return _check_unique((*own, *_installed_dialects()))


def _mail_choices(settings: Settings) -> agentmail.Choices:
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


_DOMAIN = b"redaction"
_WEBHOOK_KEY_PREFIX = "whsec_"


def open_redactor(settings: Settings, data: Path, key: LedgerKey) -> Redactor:
    """Open the redactor, with a key that only this data directory has."""
    section = settings.redaction
    known = (*_hub_secrets(data, key), *_settings_secrets(settings), *variable_secrets(settings))
    return Redactor(known, keyed_digest(key.secret, _DOMAIN), known_only=section.rules == "known")


def find_redactor(data: Path) -> Redactor:
    """Redactor of a data directory; without one, its digests mean nothing elsewhere."""
    if not (data / "keys").is_dir():
        return Redactor(key=new_secret().encode())
    return open_redactor(load_settings(data, environment()), data, load_keys(data))


def _hub_secrets(data: Path, key: LedgerKey) -> Iterator[Secret]:
    """Secrets that the hub has made itself."""
    yield Secret("hub_secret", encode_base64url(key.secret))
    yield Secret("hub_secret", key.secret.hex())
    with suppress(FileNotFoundError, BadKey):  # the user of the token reports what is wrong with it
        yield Secret("hub_token", load_token(data).decode())


def _settings_secrets(settings: Settings) -> Iterator[Secret]:
    webhook = settings.notify.webhook_secret
    yield Secret("webhook_secret", webhook)
    yield Secret("webhook_secret", webhook.removeprefix(_WEBHOOK_KEY_PREFIX))
    for url in (
        settings.store.url,
        settings.notify.webhook_url,
        *(agent.url for agent in settings.agents.values()),
    ):
        password = _password(url)
        yield Secret("url_password", password)
        yield Secret("url_password", unquote(password))


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:  # the user of the URL reports what is wrong with it
        return ""


def variable_secrets(settings: Settings) -> Iterator[Secret]:
    """Secrets in environment variables: those of the settings, and those passed to agents that look
    like secrets.
    """
    environ = environment()
    for name in settings.redaction.variables:
        value = environ.get(name, "")
        if 0 < len(value) < MIN_SECRET_LENGTH:
            raise SettingsError(
                f"redaction.variables: {name} has fewer than {MIN_SECRET_LENGTH} characters, "
                "which stand "
                "in ordinary words as well: give it a longer value, or take it off the list"
            )
        yield Secret(_variable_kind(name), value)
    for agent in settings.agents.values():
        for name in agent.environment:
            value = environ.get(name, "")
            if is_secret_variable(name, value):
                yield Secret(_variable_kind(name), value)


def _variable_kind(name: str) -> str:
    return "".join(
        character if character.isascii() and character.isalnum() else "_" for character in name
    ).lower()[:64]
