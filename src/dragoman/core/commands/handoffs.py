"""What is asked for about handoffs and items of the work queue."""

from dragoman.core.commands.base import DEFAULT_LEASE_MS, Command
from dragoman.core.deadlines import Backoff
from dragoman.core.events import RejectReason


class DraftHandoff(Command, frozen=True, tag="handoff.draft"):
    """Create a draft, or overwrite parts of one."""

    package: dict[str, object]
    """Parts to write."""
    id: str = ""
    recipient: str = ""
    teamspace: str = ""
    """Empty, like the recipient: unchanged, or `default`."""


class DiscardDraft(Command, frozen=True, tag="handoff.discard"):
    """Discard a draft."""

    id: str


class ProposeHandoff(Command, frozen=True, tag="handoff.propose"):
    """Propose a package, or the draft with this id, to its recipient."""

    task: str
    recipient: str
    package: dict[str, object]
    id: str = ""
    title: str = ""
    reason: str = ""
    thread: str = ""
    teamspace: str = "default"
    stated_hash: str = ""
    supersedes: str = ""
    sla_ms: dict[str, int] = {}
    """State -> how long it may last."""
    due_at: int | None = None
    """Deadline of the work; it is escalated when it passes."""
    drafted: str = ""
    """Fingerprint of the draft that this was made from, if any."""

    @property
    def target_task(self) -> str:
        """The task that is handed over."""
        return self.task

    @property
    def heartbeat_task(self) -> str:
        """The holder of the task shows by this that it is alive."""
        return self.task


GateFailure = tuple[RejectReason, str]
"""Failed check of the gate: the reason, and the detail."""


class HandoffCommand(Command, frozen=True):
    """A command about one existing handoff."""

    handoff: str


class AcceptHandoff(HandoffCommand, frozen=True, tag="handoff.accept"):
    """Accept a proposed handoff, if it passed the checks."""

    package_hash: str
    """Hash of the package that was checked."""
    passed: tuple[str, ...] = ()
    failed: tuple[GateFailure, ...] = ()
    waits_for: str = ""
    """Checks that could not be made just now."""
    artifacts: dict[str, str] = {}
    """Artifact -> SHA-256 of its verified copy."""
    left_out: tuple[str, ...] = ()
    notes: str = ""


class RejectHandoff(HandoffCommand, frozen=True, tag="handoff.reject"):
    """Reject a handoff, or give the work back."""

    reason: RejectReason
    detail: str
    suggested_fix: str = ""


class WithdrawHandoff(HandoffCommand, frozen=True, tag="handoff.withdraw"):
    """Withdraw a proposal."""

    note: str = ""


class ActivateHandoff(HandoffCommand, frozen=True, tag="handoff.activate"):
    """Begin the accepted work."""

    session: str = ""
    ttl_ms: int = DEFAULT_LEASE_MS
    work_state_update: dict[str, object] = {}
    failed: tuple[GateFailure, ...] = ()
    """Faults of the verified copies, which were checked again."""


class CompleteHandoff(HandoffCommand, frozen=True, tag="handoff.complete"):
    """Complete the work that was handed over."""

    notes: str = ""
    final_artifacts: tuple[dict[str, object], ...] = ()
    backoff: Backoff = Backoff()


class CloseHandoff(HandoffCommand, frozen=True, tag="handoff.close"):
    """Close the record of a handoff."""

    notes: str = ""


class ApproveHandoff(HandoffCommand, frozen=True, tag="handoff.approve"):
    """Approve or deny a package, by a person."""

    is_yes: bool = True
    package_hash: str = ""
    """Hash of the package that the person saw; empty: the present one."""
    note: str = ""


class EscalateHandoff(HandoffCommand, frozen=True, tag="handoff.escalate"):
    """Escalate a stage that exceeds its SLA; a no-op while it does not."""

    told: tuple[str, ...] = ()


class ExtendHandoff(HandoffCommand, frozen=True, tag="handoff.extend"):
    """Extend the present stage."""

    by_ms: int
    stage: str = ""


class ReassignHandoff(HandoffCommand, frozen=True, tag="handoff.reassign"):
    """Offer the same package to another recipient."""

    recipient: str
    notes: str = ""


class NoteHandoff(HandoffCommand, frozen=True, tag="handoff.note"):
    """Add a note beside the package."""

    kind: str
    text: str = ""
    data: dict[str, object] = {}


class AddWorkItem(Command, frozen=True, tag="workq.add"):
    """Add an item to the work queue."""

    title: str = ""
    id: str = ""


class ClaimWorkItem(Command, frozen=True, tag="workq.claim"):
    """Own an item of the work queue, or give it to somebody."""

    item: str
    owner: str = ""
    """Empty: the caller."""
    sender: str = ""
    """Owner from whom it may be taken, besides the caller."""


class ReleaseWorkItem(Command, frozen=True, tag="workq.release"):
    """Release an item of the work queue."""

    item: str
    is_orphaned: bool = False
    """Its owner, which can only be the sender, is gone."""
    sender: str = ""
