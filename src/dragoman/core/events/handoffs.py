"""What happened to handoffs and items of the work queue."""

from typing import Literal

from dragoman.core.events.base import Event

HandoffStatus = Literal[
    "draft",
    "proposed",
    "validating",
    "accepted",
    "rejected",
    "activated",
    "completed",
    "closed",
]
RejectReason = Literal[
    "missing_artifact",
    "hash_mismatch",
    "schema_invalid",
    "policy_violation",
    "capacity_unavailable",
    "capability_mismatch",
    "success_criteria_ambiguous",
    "ownership_conflict",
    "timeout_risk",
    "other",
]


class HandoffDrafted(Event, frozen=True):
    """A package is being put together; it replaces what its draft held before."""

    id: str
    sender: str
    recipient: str
    package: dict[str, object]
    teamspace: str = "default"


class HandoffDiscarded(Event, frozen=True):
    """A draft was thrown away: its sender may begin another one under its id."""

    by: str


class HandoffProposed(Event, frozen=True):
    """A package was offered: from here on it does not change."""

    id: str
    task: str
    sender: str
    recipient: str
    package: dict[str, object]
    package_hash: str
    title: str
    reason: str
    thread: str
    teamspace: str = "default"
    chain: tuple[str, ...] = ()
    supersedes: str = ""
    sla_ms: dict[str, int] = {}
    due_at: int | None = None


class HandoffMoved(Event, frozen=True):
    """The handoff went from one state to another."""

    from_: HandoffStatus
    to: HandoffStatus
    note: str = ""
    superseded_by: str = ""
    by: str = ""
    frees: bool = False
    """Whether its task is nobody's again, as it was before it was offered."""
    owner: str | None = None
    """Whose its task is from then on, where that one got it beside handoffs; empty: nobody's."""


class HandoffVerified(Event, frozen=True):
    """The gate has looked at the package and what it refers to."""

    passed: tuple[str, ...]
    failed: tuple[str, ...] = ()
    """What was not as it has to be, the first by the order of the checks first."""
    artifacts: dict[str, str] = {}
    """Artifact -> the SHA-256 under which its verified copy is kept."""
    left_out: tuple[str, ...] = ()


class HandoffRejected(Event, frozen=True):
    """The work is not taken over, or given back."""

    by: str
    reason: RejectReason
    detail: str
    suggested_fix: str = ""


class HandoffApproved(Event, frozen=True):
    """A person has said yes or no to the package with this hash."""

    by: str
    package_hash: str
    is_yes: bool = True
    note: str = ""


class HandoffEscalated(Event, frozen=True):
    """Something about the handoff does not go on, or has not gone on in time."""

    trigger: str
    stage: str
    to: str
    """Who was told; empty: nobody, because it was over when somebody saw that it was late."""
    sla_ms: int = 0
    elapsed_ms: int = 0
    recommended: str = ""
    task: str = ""


class HandoffExtended(Event, frozen=True):
    """A coordinator gave the present state more time."""

    until: int
    by: str
    by_ms: int


class HandoffNoted(Event, frozen=True):
    """Something was said beside the package."""

    by: str
    kind: str
    text: str = ""
    data: dict[str, object] = {}


class TaskHandedOver(Event, frozen=True):
    """The task's way from owner to owner has changed: a handoff began, was taken, or is over."""

    handoff: str
    chain: tuple[str, ...]
    owner: str = ""
    """Whose it is until it is taken, and again when it is given back."""
    recipient: str = ""
    """Both empty: no handoff is under way any more."""
    is_taken: bool = False
    """Whether the recipient has it in hand."""
    lifts_block: bool = False
    """Whether its owner has offered it though it is blocked or in the backlog: that lifts it."""
    was_free: bool = False
    """Whether nobody had it before it was offered."""


ItemStatus = Literal["open", "claimed", "orphaned"]


class WorkItemAdded(Event, frozen=True):
    """Something is to be seen to."""

    id: str
    title: str


class WorkItemPassed(Event, frozen=True):
    """An item has another owner, or (empty) none."""

    id: str
    owner: str
    status: ItemStatus
