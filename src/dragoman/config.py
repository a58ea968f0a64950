"""Settings: one `dragoman.toml` plus the environment, read once and passed down as values."""

import difflib
import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from dragoman.core.commands import DEFAULT_ATTEMPTS, DEFAULT_TTL_MS
from dragoman.core.deadlines import Backoff
from dragoman.core.entropy import Thresholds
from dragoman.core.errors import SettingsError
from dragoman.core.events import Status
from dragoman.core.ids import check_agent
from dragoman.core.limits import ATTEMPTS, PRICE, TRIES, TTL_MS, WAIT_MS
from dragoman.core.moments import duration
from dragoman.core.offers import Policy

DEFAULT_DATA = Path(".dragoman")
"""The data directory of whoever names none."""


class StoreSettings(Struct, frozen=True):
    """[store]"""

    url: str = ""
    """sqlite:///path or postgresql://user@host/db; empty: dragoman.db in the data directory."""


class TaskSettings(Struct, frozen=True):
    """[tasks]"""

    max_attempts: int = DEFAULT_ATTEMPTS
    """Failures in a row after which a task goes to the deadletter."""
    review_required: bool = True
    """Whether finished work waits for a review unless its task says otherwise."""


class LeaseSettings(Struct, frozen=True):
    """[leases]"""

    ttl_ms: int = DEFAULT_TTL_MS
    """How long a holder may be silent."""


class NotifySettings(Struct, frozen=True):
    """[notify]"""

    webhook_url: str = ""
    """Where notices are posted to, http or https; empty: nowhere."""
    webhook_secret: str = ""
    """What they are signed with: at least 16 bytes, or whsec_ and Base64."""
    webhook_secret_file: str = ""
    """A file that holds the secret instead; a relative path begins at the data directory."""
    command: tuple[str, ...] = ()
    """A program and its arguments, run with each notice on its standard input; empty: none."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that webhook_url may lead to although their address is a private or local one."""
    statuses: tuple[Status, ...] = ("review", "blocked", "done")
    """The statuses whose entering is told."""

    def __repr__(self) -> str:
        return "NotifySettings(…)"  # a URL and a secret must not reach a log


class AofSettings(Struct, frozen=True):
    """[aof]"""

    apply_completion: Literal["session_end", "immediately"] = "session_end"
    """When a completion report moves its task: with the end of its session, or at once."""


class AgentMailSettings(Struct, frozen=True):
    """[agentmail]"""

    adopt: bool = True
    """Whether the first letter about an unknown bead makes it a task."""
    ttl_ms: int = 1_200_000
    """How long a holder may be silent that took its task by mail, where there are no heartbeats."""
    helper: str = "chiron"
    """Who gets requests for help."""
    spawner: str = "spawner"
    """Who gets requests to start a worker; the hub answers them unless an agent has that name."""
    ack_within_ms: int = 1_800_000
    """After how long a missing ack or answer is told as late."""
    spawn_within_ms: int = 300_000
    """How long a task for which a worker was asked may wait for one before the hub says no."""
    summarize_command: tuple[str, ...] = ()
    """A program that reads a thread as JSON and prints what it comes to, on demand; empty: none."""


Visibility = Literal["private", "team", "human-audit"]


class HandoffSettings(Struct, frozen=True):
    """[handoffs]"""

    adopt: bool = True
    """Whether a handoff of an unknown task makes it a task."""
    ttl_ms: int = 1_200_000
    """How long a recipient may be silent that took its task by activate, without heartbeats."""
    proposed_ms: int = 300_000
    """How long an offer may wait to be looked at before a coordinator is told."""
    validating_ms: int = 600_000
    """The same until it is accepted or rejected."""
    accepted_ms: int = 900_000
    """The same until the work is begun."""
    activated_ms: int = 86_400_000
    """The same until the work is done, unless the handoff has a deadline of its own."""
    coordinator: str = "coordinator"
    """Who is told where nobody is registered in the role of coordinators."""
    artifact_roots: tuple[str, ...] = ()
    """Folders where artifacts may lie, besides teamspaces/ID/artifacts in the data directory."""
    artifact_bytes: int = 1_073_741_824
    """The largest artifact that is taken, in bytes."""
    artifacts_bytes: int = 4_294_967_296
    """How many bytes all artifacts of one package may have together."""
    classifications: tuple[Literal["internal", "restricted"], ...] = ("internal", "restricted")
    """Which classifications a package may have here."""
    visibilities: tuple[Visibility, ...] = ("private", "team", "human-audit")
    """Which visibilities it may have."""
    sensitivities: tuple[Literal["low", "moderate", "high"], ...] = ("low", "moderate", "high")
    """Which sensitivities it may have."""


class WorkqSettings(Struct, frozen=True):
    """[workq]"""

    url: str = ""
    """A work queue elsewhere, spoken to by JSON-RPC over http or https; empty: the hub's own."""
    token: str = ""
    """What is shown to it as a bearer token."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that url may lead to although their address is a private or local one."""

    def __repr__(self) -> str:
        return "WorkqSettings(…)"  # a URL and a token must not reach a log


class TeamspaceSettings(Struct, frozen=True):
    """[teamspaces.NAME]"""

    members: tuple[str, ...] = ()
    """Whose handoffs it is for: others get `not_found`. Without a section it is everyone's."""
    coordinators: tuple[str, ...] = ()
    """Which of the coordinators (by role) coordinate here; empty: each one who is a member."""


class CcosSettings(Struct, frozen=True):
    """[ccos]"""

    tries: int = 3
    """How many agents are tried for an intent before it is given up."""
    request_ms: int = 3_600_000
    """How long a request may take that says nothing about it, before it has failed."""
    payload_bytes: int = 65_536
    """Larger outputs are kept as a digest only, and so are all of them if it is 0."""
    policy: Policy = Policy()


class SaopSettings(Struct, frozen=True):
    """[saop]"""

    adopt: bool = True
    """Whether the first turn about an unknown task makes it one."""
    ttl_ms: int = 1_200_000
    """How long a holder may be silent that took its task by a turn, without heartbeats."""
    turn_bytes: int = 16_777_216
    """The longest turn, in bytes."""


class EntropySettings(Thresholds, frozen=True):
    """[entropy]"""


class GitSettings(Struct, frozen=True):
    """[git]"""

    repository: str = ""
    """A git repository: every transition of a task records what it has checked out; relative paths
    begin at the data directory."""


class RedactionSettings(Struct, frozen=True):
    """[redaction]"""

    rules: Literal["all", "known"] = "all"
    """What is masked: all that looks like a secret, or only values that the hub knows."""
    variables: tuple[str, ...] = ()
    """Variables of the hub whose values are masked wherever they turn up."""


class FilesSettings(Struct, frozen=True):
    """[files]"""

    trust_moves: bool = False
    """Whether a moved task file may approve a review, and a person speak through the inbox."""


class HttpSettings(Struct, frozen=True):
    """[http]"""

    host: str = "127.0.0.1"
    """The address that the hub listens at; another than this machine's own needs TLS or a proxy."""
    port: int = 4747
    """The port that the hub listens at; 0: any that is free."""
    tls_cert: str = ""
    """A file with the certificate chain, in PEM; with tls_key the hub speaks HTTPS."""
    tls_key: str = ""
    """A file with the private key of the certificate, in PEM."""
    proxy: tuple[str, ...] = ()
    """Addresses of proxies that end TLS before the hub; what they say about callers is believed."""
    allowed_hosts: tuple[str, ...] = ()
    """More names, or NAME:PORT, that the hub is called by; the Host of a request must be one."""
    allowed_origins: tuple[str, ...] = ()
    """Origins of web pages that may call the hub beside its own, e.g. https://desk.example."""
    rate_per_second: float = 100.0
    """How many requests or messages a second each caller may send over time; 0: any number."""
    burst: int = 1000
    """How many it may send at once after a pause."""
    max_body: int = 25165824
    """The largest request, in bytes; a single message has a smaller limit of its own."""


class HubSettings(Struct, frozen=True):
    """[hub]"""

    grace_ms: int = 30_000
    """How long agents may go on with their work when the hub is stopped."""
    on_stop: Literal["release", "keep"] = "release"
    """What becomes of work that is not finished then: back to its queue, or kept for its agent."""


class DispatchSettings(Struct, frozen=True):
    """[dispatch]"""

    concurrency: Annotated[int, Meta(ge=1)] = 8
    """How many agents may work at the same time, all together."""
    poll_ms: Annotated[int, Meta(ge=10)] = 1_000
    """How often to look for work that nobody has announced, such as the end of a rest."""
    stop_ms: int = 10_000
    """How long a program that has to end may clean up, before it is ended."""
    leave_ms: Annotated[int, Meta(ge=0)] = 60_000
    """How long a program may go on whose report has taken effect, before it has to end."""


class AgentSettings(Struct, frozen=True):
    """[agents.NAME]"""

    command: tuple[str, ...] = ()
    """A program and its arguments, started without a shell for each attempt."""
    url: str = ""
    """Where assignments are posted to instead, http or https."""
    function: str = ""
    """Or a function of the hub's own process, MODULE:NAME; it takes and gives CCOS messages."""
    speaks: tuple[Literal["aof", "ccos"], ...] = ("aof",)
    """The dialect that its assignments are in."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that url may lead to although their address is a private or local one."""
    concurrency: Annotated[int, Meta(ge=1)] = 1
    """How many tasks the agent may work on at the same time."""
    capabilities: tuple[str, ...] = ()
    """Names that tasks can be assigned to besides the agent's own."""
    takes_any: bool = True
    """Whether it also takes tasks that are assigned to nobody."""
    prompt: Literal["stdin", "file"] = "stdin"
    """Whether a program reads its prompt on standard input, or only in the file."""
    environment: tuple[str, ...] = ()
    """Variables of the hub that the program gets besides the harmless ones."""
    repository: str = ""
    """A git repository of which each task gets a worktree to work in."""
    base: str = ""
    """What the branch of a new worktree begins at; empty: what the repository has checked out."""
    attempt_ms: int = 3_600_000
    """How long an attempt may take, before it has failed; 0: as long as it likes."""
    output_bytes: int = 10_000_000
    """How much of an attempt's output is kept."""
    attempts_per_day: int = 0
    """After so many attempts the agent pauses until the next day (UTC); 0: no limit."""
    minutes_per_day: int = 0
    """The same for minutes of work, over all of its attempts."""
    output_per_day: int = 0
    """The same for bytes of output."""
    cost_per_day: float = 0
    """The same for what the agent says that its work has cost."""

    def __repr__(self) -> str:
        return "AgentSettings(…)"  # a URL and arguments may hold secrets


class ProfileSettings(Struct, frozen=True):
    """[profiles.NAME]"""

    tools: tuple[str, ...] = ("core",)
    """MCP tools by name, or `core`, or dialects: what is seen at /mcp/NAME, and by agent NAME."""


class GroupSettings(Struct, frozen=True):
    """[groups.NAME]"""

    members: tuple[str, ...] = ()
    """Who gets letters to @NAME."""


class Settings(Struct, frozen=True):
    """Everything that can be set."""

    store: StoreSettings = StoreSettings()
    tasks: TaskSettings = TaskSettings()
    leases: LeaseSettings = LeaseSettings()
    retry: Backoff = Backoff()
    aof: AofSettings = AofSettings()
    agentmail: AgentMailSettings = AgentMailSettings()
    saop: SaopSettings = SaopSettings()
    entropy: EntropySettings = EntropySettings()
    git: GitSettings = GitSettings()
    groups: dict[str, GroupSettings] = {}
    handoffs: HandoffSettings = HandoffSettings()
    workq: WorkqSettings = WorkqSettings()
    teamspaces: dict[str, TeamspaceSettings] = {}
    ccos: CcosSettings = CcosSettings()
    redaction: RedactionSettings = RedactionSettings()
    files: FilesSettings = FilesSettings()
    notify: NotifySettings = NotifySettings()
    http: HttpSettings = HttpSettings()
    hub: HubSettings = HubSettings()
    dispatch: DispatchSettings = DispatchSettings()
    agents: dict[str, AgentSettings] = {}
    profiles: dict[str, ProfileSettings] = {}


_LONGEST_REST = 365 * 86_400_000
_A_DAY_MS = 86_400_000
_MANY = 10**12
_RANGES: dict[tuple[str, str], tuple[float, float]] = {
    ("tasks", "max_attempts"): (1, ATTEMPTS),
    ("leases", "ttl_ms"): TTL_MS,
    ("agentmail", "ttl_ms"): TTL_MS,
    ("agentmail", "ack_within_ms"): WAIT_MS,
    ("agentmail", "spawn_within_ms"): WAIT_MS,
    ("handoffs", "ttl_ms"): TTL_MS,
    ("handoffs", "proposed_ms"): WAIT_MS,
    ("handoffs", "validating_ms"): WAIT_MS,
    ("handoffs", "accepted_ms"): WAIT_MS,
    ("handoffs", "activated_ms"): WAIT_MS,
    ("handoffs", "artifact_bytes"): (0, _MANY),
    ("handoffs", "artifacts_bytes"): (0, _MANY),
    ("ccos", "tries"): (1, TRIES),
    ("ccos", "request_ms"): WAIT_MS,
    ("ccos", "payload_bytes"): (0, 2**24),
    ("ccos.policy", "cost_ceiling"): (0, PRICE),
    ("saop", "ttl_ms"): TTL_MS,
    ("saop", "turn_bytes"): (1_024, 2**30),
    ("entropy", "window"): (2, 1_000),
    ("entropy", "least"): (2, 1_000),
    ("entropy", "fall"): (0, 1),
    ("entropy", "settle"): (-1, 1),
    ("entropy", "repeats"): (2, 1_000),
    ("entropy", "cycles"): (2, 100),
    ("retry", "base_ms"): (0, _LONGEST_REST),
    ("retry", "cap_ms"): (0, _LONGEST_REST),
    ("http", "port"): (0, 65_535),
    ("http", "rate_per_second"): (0, _MANY),
    ("http", "burst"): (1, _MANY),
    ("http", "max_body"): (1_024, 2**31),
    ("hub", "grace_ms"): (0, _A_DAY_MS),
    ("dispatch", "concurrency"): (1, 10_000),
    ("dispatch", "poll_ms"): (10, _A_DAY_MS),
    ("dispatch", "stop_ms"): (0, _A_DAY_MS),
    ("dispatch", "leave_ms"): (0, _A_DAY_MS),
    ("agents", "concurrency"): (1, 10_000),
    ("agents", "attempt_ms"): (0, _LONGEST_REST),
    ("agents", "output_bytes"): (0, _MANY),
    ("agents", "attempts_per_day"): (0, _MANY),
    ("agents", "minutes_per_day"): (0, _MANY),
    ("agents", "output_per_day"): (0, _MANY),
    ("agents", "cost_per_day"): (0, _MANY),
}
"""Section (or kind of table) and key -> the least and the most that a number may be."""

_PREFIX = "DRAGOMAN_"
_AT = re.compile(r"(.*) - at `\$\.([\w.]+)\.(\w+)[^`]*`", re.ASCII | re.DOTALL)
"""How msgspec says what is wrong, and at which section and key."""


class VariableError(SettingsError):
    """It is a variable of the environment that cannot be understood, and no line of a file."""


def environment() -> Mapping[str, str]:
    """The variables of this process; asked for once, at the start."""
    return os.environ


def setting_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Those variables that are settings."""
    names = (_variable(section, key) for section, keys in _sections().items() for key in keys)
    return {name: environ[name] for name in names if name in environ}


def load_settings(data: Path, environ: Mapping[str, str], file: Path | None = None) -> Settings:
    """The settings of a data directory, or of another file; without a file, the defaults."""
    path = file or data / "dragoman.toml"
    try:
        return _with_secret(parse(path.read_text(encoding="utf-8"), environ), data)
    except FileNotFoundError as error:
        if file is not None:
            raise SettingsError(f"there is no file {file}") from error
        return _with_secret(parse("", environ), data)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}") from error
    except VariableError:
        raise
    except SettingsError as error:
        raise SettingsError(f"{path}: {error.detail}") from error


def parse(text: str, environ: Mapping[str, str]) -> Settings:
    """Settings from TOML text, overlaid by variables named DRAGOMAN_<SECTION>_<KEY>.

    In a variable the words of a list are separated by commas.
    """
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"this is not valid TOML: {error}") from error
    _check_keys(given, known := _sections())
    _check_tables(given)
    _check_variables(environ, known)
    said = set[tuple[str, str]]()
    for section, keys in known.items():
        for key, kind in keys.items():
            value = environ.get(_variable(section, key))
            if value is not None:
                part = given
                for name in section.split("."):
                    part = part.setdefault(name, {})
                part[key] = _words(value) if kind is tuple else value
                said.add((section, key))
    try:
        # Not strict, because the environment knows only text.
        settings = msgspec.convert(given, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise _explained(error, said) from error
    _check_ranges(settings, said)
    _check_names(settings)
    return settings


def _variable(section: str, key: str) -> str:
    return f"{_PREFIX}{section}_{key}".replace(".", "_").upper()


def _check_variables(environ: Mapping[str, str], known: Mapping[str, Iterable[str]]) -> None:
    """A variable that looks like a setting and is none is a mistake, like a key of the file."""
    for name in environ:
        begun = [section for section in known if name.startswith(_variable(section, ""))]
        names = {_variable(section, key) for section in begun for key in known[section]}
        if begun and name not in names:
            raise VariableError(_not_known(f"the variable {name}", name, sorted(names)))


def _explained(error: msgspec.ValidationError, said: Collection[tuple[str, str]]) -> SettingsError:
    """What msgspec found, with the place as a person wrote it and with what would be right."""
    found = _AT.fullmatch(f"{error}")
    if found is None:
        return SettingsError(f"{error}")
    what, section, key = found.groups()
    chosen = _choices(section, key)
    allowed = f"; use one of: {', '.join(chosen)}" if chosen else ""
    return _at(section, key, f"{what}{allowed}", said)


def _choices(section: str, key: str) -> tuple[str, ...]:
    """The words that a setting may be, where there are only some."""
    struct = dict(sections()).get(section)
    if struct is None:
        return ()
    kinds = {field.name: field.type for field in msgspec.structs.fields(struct)}
    kind = kinds.get(key)
    if get_origin(kind) is tuple:
        kind = get_args(kind)[0]
    return get_args(kind) if get_origin(kind) is Literal else ()


def _at(section: str, key: str, what: str, said: Collection[tuple[str, str]]) -> SettingsError:
    if (section, key) in said:
        return VariableError(f"the variable {_variable(section, key)}: {what}")
    return SettingsError(f"{section}.{key}: {what}")


def _check_ranges(settings: Settings, said: Collection[tuple[str, str]]) -> None:
    for (section, key), (least, most) in _RANGES.items():
        part: Any = attrgetter(section)(settings)
        named = part.items() if section in TABLES else [("", part)]
        for name, one in named:
            value = getattr(one, key)
            if value is None or least <= value <= most:  # what is no number is not
                continue
            in_units = (
                f" ({duration(int(least))} to {duration(int(most))})" if key.endswith("_ms") else ""
            )
            full = ".".join(filter(None, (section, name, key)))
            is_said = (section, key) in said
            shown = f"the variable {_variable(section, key)}" if is_said else full
            raise (VariableError if is_said else SettingsError)(
                f"{shown} is {value}; it must be from {least} to {most}{in_units}"
            )


def _check_names(settings: Settings) -> None:
    mail = settings.agentmail
    named = [("agentmail.helper", mail.helper), ("agentmail.spawner", mail.spawner)]
    named.append(("handoffs.coordinator", settings.handoffs.coordinator))
    for space, team in settings.teamspaces.items():
        for key, names in (("members", team.members), ("coordinators", team.coordinators)):
            named += [(f"teamspaces.{space}.{key}", name) for name in names]
    for group, one in settings.groups.items():
        named += [(f"groups.{group}.members", name) for name in one.members]
    for key, name in named:
        malformed = check_agent(name)
        if malformed is not None:
            raise SettingsError(f"{key}: {malformed.detail}")


def _sections() -> dict[str, dict[str, Any]]:
    """Section -> its keys, each with what kind of value it has; `tuple` for a list."""
    return {
        section: {
            key.name: get_origin(key.type) or key.type
            for key in msgspec.structs.fields(struct)
            if not _is_section(key.type)
        }
        for section, struct in sections()
    }


def sections() -> Iterator[tuple[str, type[Struct]]]:
    """Every section of which there is one, with its keys; one within another as `outer.inner`."""
    for section in msgspec.structs.fields(Settings):
        if section.name not in TABLES:
            yield section.name, section.type
            for key in msgspec.structs.fields(section.type):
                if _is_section(key.type):
                    yield f"{section.name}.{key.name}", key.type


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


TABLES: dict[str, type[Struct]] = {
    "agents": AgentSettings,
    "profiles": ProfileSettings,
    "groups": GroupSettings,
    "teamspaces": TeamspaceSettings,
}
"""Sections of which there are any number, [agents.NAME]; they stand in the file only."""


def _words(value: str) -> list[str]:
    return [word.strip() for word in value.split(",") if word.strip()]


def _with_secret(settings: Settings, data: Path) -> Settings:
    """The settings with the secret that a file holds, if they name one."""
    notify = settings.notify
    if not notify.webhook_secret_file:
        return settings
    if notify.webhook_secret:
        raise SettingsError("notify has webhook_secret and webhook_secret_file: keep one of them")
    path = data / notify.webhook_secret_file
    try:
        secret = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise SettingsError(f"notify.webhook_secret_file {path} cannot be read: {why}") from None
    return replace(settings, notify=replace(notify, webhook_secret=secret))


def _check_tables(given: Mapping[str, Any]) -> None:
    for kind, struct in TABLES.items():
        tables = given.get(kind, {})
        if not isinstance(tables, dict) or not all(
            isinstance(table, dict) for table in cast(dict[str, Any], tables).values()
        ):
            raise SettingsError(f"{kind} has a section for each: write [{kind}.NAME] on a line")
        for name, table in cast(dict[str, dict[str, Any]], tables).items():
            malformed = check_agent(name)
            if malformed is not None:
                raise SettingsError(f"[{kind}.{name!a}]: {malformed.detail}")
            for key in table:
                _check_known(f"{kind}.{name}.{key}", key, struct.__struct_fields__)
            try:
                msgspec.convert(table, struct, strict=False)
            except msgspec.ValidationError as error:
                raise SettingsError(f"[{kind}.{name}]: {error}") from error


def _check_keys(given: Mapping[str, Any], known: Mapping[str, Iterable[str]]) -> None:
    for section, values in given.items():
        if section in TABLES:
            continue
        _check_known(f"[{section}]", section, (*known, *TABLES))
        if not isinstance(values, dict):
            raise SettingsError(f"{section} is a section: write [{section}] on a line of its own")
        for key, value in cast(dict[str, Any], values).items():
            inner = f"{section}.{key}"
            if inner in known:
                _check_inner(inner, value, known[inner])
            else:
                _check_known(inner, key, known[section])


def _check_inner(section: str, values: object, known: Iterable[str]) -> None:
    if not isinstance(values, dict):
        raise SettingsError(f"{section} is a section: write [{section}] on a line of its own")
    for key in cast(dict[str, Any], values):
        _check_known(f"{section}.{key}", key, known)


def _check_known(shown: str, name: str, known: Iterable[str]) -> None:
    names = list(known)
    if name not in names:
        raise SettingsError(_not_known(shown, name, names))


def _not_known(shown: str, name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1, cutoff=0)
    return f"{shown} is not a setting; did you mean {near[0]}? known: {', '.join(names)}"
