"""Settings of the dialects and of what they bring along, a section each."""

from typing import Literal

from msgspec import Struct

from dragoman.core.offers import Policy
from dragoman.core.rules.entropy import Thresholds


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
    """How long an offer may wait to be looked at before a coordinator is told. This and the next
    three are those of offers made from then on: what is offered keeps the times that it had."""
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
    """Whose handoffs it is for: others get `not_found`. Without members it is everyone's."""
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


class GroupSettings(Struct, frozen=True):
    """[groups.NAME]"""

    members: tuple[str, ...] = ()
    """Who gets letters to @NAME."""
