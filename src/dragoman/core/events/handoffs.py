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
    """A draft was created or updated; the package replaces the one before."""

    id: str
    sender: str
    recipient: str
    package: dict[str, object]
    teamspace: str = "default"


class HandoffDiscarded(Event, frozen=True):
    """A draft was discarded; its sender may reuse the id."""

    by: str


class HandoffProposed(Event, frozen=True):
    """A package was proposed: from now on it does not change."""

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


class HandoffTransitioned(Event, frozen=True):
    """A handoff changed its state."""

    from_: HandoffStatus
    to: HandoffStatus
    note: str = ""
    superseded_by: str = ""
    by: str = ""
    frees: bool = False
    """True if the task has no owner any more, as before the proposal."""
    owner: str | None = None
    """Owner that the task got without a handoff; empty: nobody; None: no change."""


class HandoffVerified(Event, frozen=True):
    """The gate checked the package and its artifacts."""

    passed: tuple[str, ...]
    failed: tuple[str, ...] = ()
    """Failed checks, in the order of the gate."""
    artifacts: dict[str, str] = {}
    """Artifact -> SHA-256 of its verified copy."""
    left_out: tuple[str, ...] = ()


class HandoffRejected(Event, frozen=True):
    """A handoff was rejected, or the work was given back."""

    by: str
    reason: RejectReason
    detail: str
    suggested_fix: str = ""


class HandoffApproved(Event, frozen=True):
    """A person approved or denied the package with this hash."""

    by: str
    package_hash: str
    is_yes: bool = True
    note: str = ""


class HandoffEscalated(Event, frozen=True):
    """A handoff does not proceed, or has not proceeded in time."""

    trigger: str
    stage: str
    to: str
    """Recipient of the notice; empty: nobody, because the stage had ended when the delay was
    noticed.
    """
    sla_ms: int = 0
    elapsed_ms: int = 0
    recommended: str = ""
    task: str = ""


class HandoffExtended(Event, frozen=True):
    """A coordinator extended the present stage."""

    until: int
    by: str
    by_ms: int


class HandoffNoted(Event, frozen=True):
    """A note was added beside the package."""

    by: str
    kind: str
    text: str = ""
    data: dict[str, object] = {}


class TaskHandedOver(Event, frozen=True):
    """The active handoff or the chain of owners of a task changed."""

    handoff: str
    chain: tuple[str, ...]
    owner: str = ""
    """Owner until the handoff is activated, and again after a rejection."""
    recipient: str = ""
    """Empty, like the owner: no handoff is active any more."""
    is_taken: bool = False
    """True if the recipient has activated it."""
    lifts_block: bool = False
    """True if the owner offered it while it was blocked or in the backlog: that lifts the block."""
    was_free: bool = False
    """True if the task had no owner before the proposal."""


WorkItemStatus = Literal["open", "claimed", "orphaned"]


class WorkItemAdded(Event, frozen=True):
    """An item was added to the work queue."""

    id: str
    title: str


class WorkItemOwnerChanged(Event, frozen=True):
    """An item got another owner, or (empty) none."""

    id: str
    owner: str
    status: WorkItemStatus
