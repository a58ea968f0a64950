"""Settings of the dialects and of what they bring along, a section each."""

from typing import Literal

from msgspec import Struct

from dragoman.core.offers import Policy
from dragoman.core.rules.entropy import Thresholds


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
    summarize_command: tuple[str, ...] = ()
    """A program that reads a thread as JSON and prints a summary, on demand; empty: none."""


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
    artifact_bytes: int = 1_073_741_824
    """The largest artifact that is accepted, in bytes."""
    artifacts_bytes: int = 4_294_967_296
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

    tries: int = 3
    """Number of agents that are tried for an intent before it is given up."""
    request_ms: int = 3_600_000
    """Time limit of a request that sets none itself."""
    payload_bytes: int = 65_536
    """Larger outputs are kept as a digest only; 0: all of them are."""
    policy: Policy = Policy()


class SaopSettings(Struct, frozen=True):
    """[saop]"""

    adopt: bool = True
    """Create a task from the first turn about an unknown task."""
    ttl_ms: int = 1_200_000
    """Lease of a task that was claimed by a turn, without heartbeats."""
    turn_bytes: int = 16_777_216
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
