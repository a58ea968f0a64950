"""Sections of the settings: one struct each, with defaults."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, Literal, get_origin

import msgspec
from msgspec import Struct

from dragoman.core.backoff import Backoff
from dragoman.core.base import DEFAULT_LEASE_MS, DEFAULT_MAX_ATTEMPTS, AttentionKind, Status
from dragoman.core.entropy import Thresholds
from dragoman.core.intent.candidate import Policy
from dragoman.core.task_state import CreateTask

# --- dialects ---------------------------------------------------------------------------------


class AofSettings(Struct, frozen=True):
    """[aof]"""

    apply_completion: Literal["session_end", "immediately"] = "session_end"
    """Moment at which a completion report moves its task: the end of its session, or at once."""


class AgentMailSettings(Struct, frozen=True):
    """[agentmail]"""

    adopt: bool = True
    """Create a task from the first letter about an unknown bead."""
    ttl_ms: int = 1_200_000
    """Lease of a task that was claimed by mail, where there are no heartbeats."""
    helper: str = "chiron"
    """Addressee of requests for help."""
    spawner: str = "spawner"
    """Addressee of requests to start a worker; the hub answers them unless an agent has that
    name."""
    ack_within_ms: int = 1_800_000
    """Time after which a missing ack or answer is reported as late."""
    spawn_within_ms: int = 300_000
    """Time that a task may wait for a requested worker before the hub declines."""


Visibility = Literal["private", "team", "human-audit"]


class HandoffSettings(Struct, frozen=True):
    """[handoffs]"""

    adopt: bool = True
    """Create a task from a handoff of an unknown task."""
    ttl_ms: int = 1_200_000
    """Lease of a recipient that has activated a handoff, without heartbeats."""
    proposed_ms: int = 300_000
    """Time that an offer may wait for validation before a coordinator is notified. This and the
    next three apply to new offers: a handoff keeps the times that it was offered with."""
    validating_ms: int = 600_000
    """The same until it is accepted or rejected."""
    accepted_ms: int = 900_000
    """The same until the work is begun."""
    activated_ms: int = 86_400_000
    """The same until the work is done, unless the handoff has a deadline of its own."""
    coordinator: str = "coordinator"
    """Name that is notified where no agent is registered in the role of coordinators."""
    artifact_roots: tuple[str, ...] = ()
    """Folders where artifacts may lie, besides teamspaces/ID/artifacts in the data directory."""
    max_artifact_bytes: int = 1_073_741_824
    """The largest artifact that is accepted, in bytes."""
    max_package_bytes: int = 4_294_967_296
    """The largest total size of all artifacts of one package, in bytes."""
    classifications: tuple[Literal["internal", "restricted"], ...] = ("internal", "restricted")
    """Classifications that a package may have here."""
    visibilities: tuple[Visibility, ...] = ("private", "team", "human-audit")
    """Visibilities that a package may have here."""
    sensitivities: tuple[Literal["low", "moderate", "high"], ...] = ("low", "moderate", "high")
    """Sensitivities that a package may have here."""


class WorkqSettings(Struct, frozen=True):
    """[workq]"""

    url: str = ""
    """A remote work queue, called by JSON-RPC over http or https; empty: the hub's own."""
    token: str = ""
    """Bearer token for the remote work queue."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that url may lead to although their address is a private or local one."""

    def __repr__(self) -> str:
        return "WorkqSettings(…)"  # a URL and a token must not reach a log


class TeamspaceSettings(Struct, frozen=True):
    """[teamspaces.NAME]"""

    members: tuple[str, ...] = ()
    """Members that may use handoffs of this teamspace: others get `not_found`. Without members it
    is everyone's."""
    coordinators: tuple[str, ...] = ()
    """Coordinators (by role) of this teamspace; empty: each one who is a member."""


class CcosSettings(Struct, frozen=True):
    """[ccos]"""

    max_agents: int = 3
    """Number of agents that are tried for an intent before it is given up."""
    request_ms: int = 3_600_000
    """Time limit of a request that sets none itself."""
    max_output_bytes: int = 65_536
    """Larger outputs are kept as a digest only; 0: all of them are."""
    review: bool = False
    """Review the work for an intent. What an agent does for an intent of its own is reviewed in any
    case."""
    policy: Policy = Policy()


class SaopSettings(Struct, frozen=True):
    """[saop]"""

    adopt: bool = True
    """Create a task from the first turn about an unknown task."""
    ttl_ms: int = 1_200_000
    """Lease of a task that was claimed by a turn, without heartbeats."""
    max_turn_bytes: int = 16_777_216
    """The longest turn, in bytes."""


class EntropySettings(Thresholds, frozen=True):
    """[entropy]"""


class GitSettings(Struct, frozen=True):
    """[git]"""

    repository: str = ""
    """A git repository: every transition of a task records the commit that it has checked out;
    relative paths begin at the data directory."""


class RedactionSettings(Struct, frozen=True):
    """[redaction]"""

    rules: Literal["all", "known"] = "all"
    """Values to mask: all that look like secrets, or only those that the hub knows."""
    variables: tuple[str, ...] = ()
    """Variables of the hub whose values are masked wherever they turn up."""


class GroupSettings(Struct, frozen=True):
    """[groups.NAME]"""

    members: tuple[str, ...] = ()
    """Recipients of letters to @NAME."""


# --- hub --------------------------------------------------------------------------------------


class StoreSettings(Struct, frozen=True):
    """[store]"""

    url: str = ""
    """sqlite:///path (a relative one begins at the data directory) or postgresql://user@host/db;
    empty: dragoman.db in the data directory."""


class TaskSettings(Struct, frozen=True):
    """[tasks]"""

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    """Failures in a row after which a task goes to the deadletter; it keeps the number that held
    when it was made."""
    review_required: bool = True
    """Review finished work, unless its task says otherwise."""
    agents_skip_review: bool = False
    """Let agents create tasks whose work nobody reviews."""

    def creation(self, fields: Mapping[str, Any]) -> CreateTask:
        """Command that creates a task with these fields; what is None is as the settings say."""
        defaults: dict[str, Any] = {
            "review_required": self.review_required,
            "may_skip_review": self.may_skip_review,
            "max_attempts": self.max_attempts,
        }
        given = {name: value for name, value in fields.items() if value is not None}
        return CreateTask(**{**defaults, **given})

    @property
    def may_skip_review(self) -> bool:
        """True if an agent may create a task without review."""
        return self.agents_skip_review or not self.review_required


class LeaseSettings(Struct, frozen=True):
    """[leases]"""

    ttl_ms: int = DEFAULT_LEASE_MS
    """Time without a heartbeat after which a lease expires."""


class AttemptSettings(Struct, frozen=True):
    """[attempts]"""

    max_ms: int = 0
    """Time limit of an attempt, whoever works: then it ends like one whose lease is lost; 0: none.
    Agents that the hub starts also have their own, attempt_ms."""
    quiet_ms: int = 1_800_000
    """Time without progress after which an attempt is flagged, though its lease is renewed; it
    keeps the task. 0: never."""
    escalate_ms: int = 1_800_000
    """Further time without progress after which it is escalated; 0: never."""
    pauses_limited: bool = True
    """Pause an agent whose vendor's usage limit is reached until that ends, and start others
    meanwhile; without it, its program has failed."""


_TOLD: tuple[AttentionKind, ...] = (
    "question",
    "help",
    "paused",
    "no_progress",
    "deadletter",
    "escalation",
)
"""Needs of a person that the owner is told of by default."""


class NotifySettings(Struct, frozen=True):
    """[notify]"""

    webhook_url: str = ""
    """URL that notifications are posted to, http or https; empty: none."""
    webhook_secret: str = ""
    """Secret that signs notifications: at least 16 bytes, or whsec_ and Base64."""
    webhook_secret_file: str = ""
    """A file that holds the secret instead; a relative path begins at the data directory."""
    command: tuple[str, ...] = ()
    """A program and its arguments, run with a notification on its standard input; empty: none."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that webhook_url may lead to although their address is a private or local one."""
    statuses: tuple[Status, ...] = ("review", "blocked", "done")
    """Statuses that cause a notification when a task enters one; a new task has entered none."""

    attention: tuple[AttentionKind, ...] = _TOLD
    """Kinds of what needs a person that cause a notification, and a letter to the owner."""
    inbox: bool = True
    """Write these letters into the owner's inbox while a hub runs, and at each tick."""

    def tells_owner_of(self, kind: AttentionKind) -> bool:
        """Check whether the owner gets a letter about what needs a person in this way."""
        return self.inbox and kind in self.attention

    def notifies_on(self, status: Status) -> bool:
        """Check whether a notification is sent when a task enters this status."""
        return bool(self.webhook_url or self.command) and status in self.statuses

    def __repr__(self) -> str:
        return "NotifySettings(…)"  # a URL and a secret must not reach a log


class OwnerSettings(Struct, frozen=True):
    """[owner]"""

    name: str = "owner"
    """Name of the person at the keyboard, who acts under it and gets what is addressed to nobody
    else."""


class FilesSettings(Struct, frozen=True):
    """[files]"""

    trust_moves: bool = False
    """Let a moved task file approve a review, and a person use the inbox."""


class HttpSettings(Struct, frozen=True):
    """[http]"""

    host: str = "127.0.0.1"
    """Address that the hub listens at; another than this machine's own needs TLS or a proxy."""
    port: int = 4747
    """Port that the hub listens at; 0: any that is free."""
    tls_cert: str = ""
    """A file with the certificate chain, in PEM; with tls_key the hub speaks HTTPS. A relative
    path begins where `dragoman up` is started."""
    tls_key: str = ""
    """A file with the private key of the certificate, in PEM."""
    proxy: tuple[str, ...] = ()
    """Addresses of proxies that end TLS before the hub; their headers about callers are trusted."""
    allowed_hosts: tuple[str, ...] = ()
    """More names, or NAME:PORT, that the hub is called by; the Host of a request must be one."""
    rate_per_second: float = 100.0
    """Requests or messages a second that each caller may send over time; 0: any number."""
    burst: int = 1000
    """Number that a caller may send at once after a pause."""
    max_body: int = 25165824
    """The largest request, in bytes; a message of a dialect has a limit of its own."""


class HubSettings(Struct, frozen=True):
    """[hub]"""

    quiet: bool = False
    """Print no lines about tasks and agents at the hub's terminal; warnings are printed anyway."""

    drain_ms: int = 30_000
    """Time that agents may go on with their work when the hub is stopped."""


class DispatchSettings(Struct, frozen=True):
    """[dispatch]"""

    concurrency: int = 8
    """Number of agents that may work at the same time, all together."""
    poll_ms: int = 1_000
    """Interval of polling for work that causes no hint: the end of a backoff, or entries of another
    hub."""
    stop_grace_ms: int = 10_000
    """Time that a program may clean up when it is stopped, before it is killed."""
    exit_grace_ms: int = 60_000
    """Time that a program may go on after its report has taken effect, before it is stopped."""


class CheckSettings(Struct, frozen=True):
    """[checks]"""

    timeout_ms: int = 600_000
    """Time that one check may take before it has failed."""
    output_bytes: int = 1_000_000
    """Output that one check may write before it has failed."""
    concurrency: int = 2
    """Number of tasks whose checks run at the same time."""
    folder: str = ""
    """Folder to run in where the agent has no worktree of its own. A relative path begins at the
    data directory. Empty: the task's own `work/`; for an agent that is not in the settings, the
    project whose `.dragoman` the data directory is."""


class AgentSettings(Struct, frozen=True):
    """[agents.NAME]"""

    command: tuple[str, ...] = ()
    """A program and its arguments, started without a shell for each attempt."""
    url: str = ""
    """URL that assignments are posted to instead, http or https."""
    function: str = ""
    """Or a function of the hub's own process, MODULE:NAME; it takes and returns CCOS messages."""
    speaks: tuple[str, ...] = ("aof",)
    """Dialects that it understands; with ccos its assignments are requests of CCOS."""
    allow_hosts: tuple[str, ...] = ()
    """Hosts that url may lead to although their address is a private or local one."""
    concurrency: int = 1
    """Number of tasks that the agent may work on at the same time."""
    capabilities: tuple[str, ...] = ()
    """Names that tasks can be assigned to besides the agent's own."""
    takes_unassigned: bool = True
    """Take tasks that are assigned to nobody, too."""
    prompt: Literal["stdin", "file"] = "stdin"
    """A program reads its prompt on standard input, or only in the file."""
    environment: tuple[str, ...] = ()
    """Variables of the hub that the program gets besides the harmless ones."""
    user: str = ""
    """A user of this machine that the program runs as, so that the hub's files are closed to it;
    the hub has to run as root."""
    sandbox: Literal["", "bwrap"] = ""
    """Program that keeps the agent in a sandbox: bwrap (bubblewrap); empty: none."""
    sandbox_network: bool = True
    """Let a program in a sandbox use the network, which it needs for the hub's address, too."""
    sandbox_readable: tuple[str, ...] = ()
    """Files and folders that it may read in a sandbox, besides the system's programs; absolute
    paths."""
    sandbox_writable: tuple[str, ...] = ()
    """Files and folders that it may also write to; absolute paths."""
    repository: str = ""
    """A git repository of which each task gets a worktree to work in; relative paths begin at the
    data directory."""
    base: str = ""
    """Start of a new worktree's branch; empty: what the repository has checked out."""
    checks: tuple[str, ...] = ()
    """Commands that the hub runs in the worktree before a completion of this agent counts."""
    attempt_ms: int = 3_600_000
    """Time limit of an attempt, after which it has failed; 0: none."""
    output_bytes: int = 10_000_000
    """Largest log of an attempt's output."""
    max_trace_lines: int = 2_000
    """Number of output lines that are also events of the task's trace (SANDBOX_PULSE), as they
    come."""
    limit_exit_code: int = 0
    """Exit code by which the program says that a usage limit is reached; 0: only its last lines
    say so."""
    attempts_per_day: int = 0
    """Number of attempts after which the agent pauses until the next day (UTC); 0: no limit."""
    minutes_per_day: int = 0
    """The same for minutes of work, over all of its attempts."""
    output_per_day: int = 0
    """The same for bytes of output."""
    cost_per_day: float = 0
    """The same for the cost that the agent reports for its work."""

    def __repr__(self) -> str:
        return "AgentSettings(…)"  # a URL and arguments may hold secrets

    @property
    def is_local(self) -> bool:
        """True if it runs on this machine, started by the hub."""
        return bool(self.command or self.function)

    @property
    def needs_ways(self) -> bool:
        """True if it reaches its folders as another user, through the data directory."""
        return bool(self.user) and not self.sandbox

    @property
    def separation(self) -> str:
        """Means of separating its programs from the hub, for a person; empty: none."""
        network = "" if self.sandbox_network else " without network"
        means = [f"the user {self.user}"] if self.user else []
        return " in ".join(means + ([f"a sandbox ({self.sandbox}){network}"] * bool(self.sandbox)))


def describe_separation(agents: Mapping[str, AgentSettings]) -> str:
    """One line about what separates the agents that a hub starts on this machine from it."""
    local = {name: one.separation for name, one in agents.items() if one.is_local}
    if not local:
        return "the hub starts no program on this machine"
    kept = [f"{name} by {what}" for name, what in local.items() if what]
    free = [name for name, what in local.items() if not what]
    if free:
        kept.append(
            f"{', '.join(free)} by nothing: as the hub's user, with all of its rights "
            "(docs/identity.md)"
        )
    return "; ".join(kept)


class RunningAgents(Mapping[str, AgentSettings]):
    """The agents of a running hub: a reload replaces them all, for whoever looks them up."""

    def __init__(self, agents: Mapping[str, AgentSettings]) -> None:
        self._agents = agents

    def __getitem__(self, name: str) -> AgentSettings:
        return self._agents[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._agents)

    def __len__(self) -> int:
        return len(self._agents)

    def replace(self, agents: Mapping[str, AgentSettings]) -> None:
        """Take these agents from now on."""
        self._agents = agents


class Settings(Struct, frozen=True):
    """All settings."""

    store: StoreSettings = StoreSettings()
    owner: OwnerSettings = OwnerSettings()
    tasks: TaskSettings = TaskSettings()
    leases: LeaseSettings = LeaseSettings()
    attempts: AttemptSettings = AttemptSettings()
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
    checks: CheckSettings = CheckSettings()
    agents: Mapping[str, AgentSettings] = {}

    @property
    def served_names(self) -> frozenset[str]:
        """Names that a task can be assigned to because the hub starts an agent for them."""
        capabilities = (agent.capabilities for agent in self.agents.values())
        return frozenset((*self.agents, *chain.from_iterable(capabilities)))


@cache
def section_keys() -> Mapping[str, Mapping[str, Any]]:
    """Section -> its keys, each with the type of its value; `tuple` for a list."""
    return {
        section: {
            key.name: get_origin(key.type) or key.type
            for key in msgspec.structs.fields(struct)
            if not _is_section(key.type)
        }
        for section, struct in iter_sections()
    }


def iter_sections() -> Iterator[tuple[str, type[Struct]]]:
    """Every section with a fixed name, and its keys; one within another as `outer.inner`."""
    for section in msgspec.structs.fields(Settings):
        if section.name not in TABLE_SECTIONS:
            yield section.name, section.type
            for key in msgspec.structs.fields(section.type):
                if _is_section(key.type):
                    yield f"{section.name}.{key.name}", key.type


def _is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


TABLE_SECTIONS: dict[str, type[Struct]] = {
    "agents": AgentSettings,
    "groups": GroupSettings,
    "teamspaces": TeamspaceSettings,
}
"""Sections of which there are any number, [agents.NAME]; they stand in the file only."""
