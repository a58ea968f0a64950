"""A handoff: work on its way from one owner to the next, and its table.

The package is what is handed over. It never changes once it is proposed: its hash stands for it.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.core.actors import HUB_NAME
from dragoman.core.events import HandoffStatus, RejectReason
from dragoman.core.moments import clamp_timestamp
from dragoman.core.states.handoff_items import work_items_of

HANDOFF_TRANSITIONS: Final[Mapping[HandoffStatus, tuple[HandoffStatus, ...]]] = {
    "draft": ("proposed",),
    "proposed": ("validating", "rejected"),
    "validating": ("accepted", "rejected"),
    "accepted": ("activated", "rejected"),
    "rejected": ("closed",),
    "activated": ("completed", "rejected"),
    "completed": ("closed",),
    "closed": (),
}
"""State -> states that a handoff may go to."""

ACTIVE_STATES: Final[frozenset[HandoffStatus]] = frozenset(
    {"proposed", "validating", "accepted", "activated"}
)
"""States of an active handoff; a task has at most one."""

DEFAULT_SLA_MS: Final[Mapping[HandoffStatus, int]] = {
    "proposed": 5 * 60_000,
    "validating": 10 * 60_000,
    "accepted": 15 * 60_000,
    "activated": 24 * 3_600_000,
}
"""State -> time after which a coordinator is notified."""

STAGE_LABELS: Final[Mapping[HandoffStatus, str]] = {
    "proposed": "proposed→validating",
    "validating": "validating→accepted/rejected",
    "accepted": "accepted→activated",
    "activated": "activated→completed",
}
"""State -> label of the transition that an escalation waits for."""

_WORK_SECTIONS: Final = ("task", "context", "work_state", "artifacts")
"""Parts of a package that the agent of the work needs."""

SLA_STATES: Final = tuple(DEFAULT_SLA_MS)
"""States with an SLA."""

LEGAL_ACTIONS: Final[Mapping[HandoffStatus, tuple[str, ...]]] = {
    "draft": ("draft", "propose", "discard"),
    "proposed": ("accept", "reject", "withdraw", "extend_sla", "reassign"),
    "validating": ("accept", "reject", "withdraw", "extend_sla", "reassign"),
    "accepted": ("activate", "reject", "withdraw", "extend_sla", "reassign"),
    "activated": ("complete", "reject", "extend_sla", "reassign"),
    "rejected": ("close",),
    "completed": ("close",),
    "closed": (),
}
"""State -> actions that it allows; after an expired lease an activated handoff can be activated
again.
"""

ALL_HANDOFFS: Final = "handoffs"
"""List of all handoffs that were proposed."""
PENDING_ITEM_TRANSFERS: Final = "handoffs.items"
"""List of handoffs whose work items have not been transferred to the present owner yet."""
WORKQ_NOTE_KIND: Final = "workq_integration"
"""Kind of the note that records the outcome of that transfer."""
_ITEM_TRANSFER_DONE: Final = frozenset({"not_applicable", "returned", "not_returned"})
"""Outcomes after which no item remains to be returned."""


class HandoffStep(Struct, frozen=True, omit_defaults=True):
    """One transition: state, time, actor and note."""

    to: HandoffStatus
    at: int
    by: str = ""
    note: str = ""


class SlaExtension(Struct, frozen=True):
    """Extension of a stage by a coordinator."""

    until: int
    by: str
    by_ms: int


class HandoffApproval(Struct, frozen=True, omit_defaults=True):
    """Approval or denial of a package by a person."""

    by: str
    at: int
    package_hash: str
    is_yes: bool
    note: str = ""


class HandoffRejection(Struct, frozen=True, omit_defaults=True):
    """Rejection of a handoff, with its reason."""

    by: str
    at: int
    reason: RejectReason
    detail: str
    suggested_fix: str = ""


class HandoffEscalation(Struct, frozen=True, omit_defaults=True):
    """Escalation that was sent to a coordinator."""

    trigger: str
    stage: str
    sla_ms: int
    elapsed_ms: int
    to: str
    at: int


class HandoffNote(Struct, frozen=True, omit_defaults=True):
    """Note beside the package (S-ACP-11)."""

    by: str
    at: int
    kind: str
    text: str = ""
    data: dict[str, object] = {}


class Handoff(Struct, frozen=True, omit_defaults=True):
    """State of one handoff, folded from its entries."""

    id: str
    sender: str
    recipient: str
    status: HandoffStatus
    created_at: int
    entered_at: int
    """Time at which the present state began."""
    package: dict[str, object]
    task: str = ""
    """Primary id of the task; empty while the handoff is a draft."""
    teamspace: str = "default"
    thread: str = ""
    title: str = ""
    reason: str = ""
    package_hash: str = ""
    chain: tuple[str, ...] = ()
    """Owners at the time of the proposal, the first one first (S-ACP-5)."""
    supersedes: str = ""
    superseded_by: str = ""
    sla_ms: dict[str, int] = {}
    """State -> its SLA, if it differs from the hub's default at the time."""
    due_at: int | None = None
    """Deadline of the work, if its sender stated one."""
    steps: tuple[HandoffStep, ...] = ()
    """Transitions since the proposal."""
    extension: SlaExtension | None = None
    """Extension of the present state."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    artifacts: dict[str, str] = {}
    """Artifact -> SHA-256 of its verified copy."""
    left_out: tuple[str, ...] = ()
    """Artifacts that the recipient declined (S-ACP-15)."""
    approval: HandoffApproval | None = None
    rejection: HandoffRejection | None = None
    went_to: str | None = None
    """Owner that the task got without a handoff, which ended this one; empty: nobody."""
    escalations: tuple[HandoffEscalation, ...] = ()
    is_escalated: bool = False
    """True if the present stage was escalated."""
    notes: tuple[HandoffNote, ...] = ()
    workq: str = ""
    resolved_at: int | None = None
    is_discarded: bool = False
    """True if it is a discarded draft, of which only the id is left."""

    @property
    def initiated_at(self) -> int:
        """Time of the proposal; of a draft, time of its creation."""
        return self.steps[0].at if self.steps else self.created_at

    @property
    def owner(self) -> str:
        """Owner of the work until the recipient activates it, and again after a rejection."""
        return self.chain[-1] if self.chain else self.sender

    @property
    def chain_after_activation(self) -> tuple[str, ...]:
        """Owners after the recipient activates it."""
        return extend_chain(self.chain, self.recipient)

    @property
    def owners(self) -> tuple[str, ...]:
        """Present chain: it includes the recipient from activation until a rejection.

        If the hub ends the handoff because the task has ended, the recipient stays in it.
        """
        if self.went_to is not None:
            return extend_chain(self.chain, self.went_to)
        rejection = self.rejection
        was_given_back = rejection is not None and rejection.by != HUB_NAME
        has_begun = self.find_step("activated") is not None and not was_given_back
        return self.chain_after_activation if has_begun else self.chain

    @property
    def is_offered_back(self) -> bool:
        """True if it is offered to the owner before the present one."""
        return self.chain[-2:-1] == (self.recipient,)

    @property
    def was_redelegated(self) -> bool:
        """True if the recipient activated it and then passed the work on, which completed it."""
        step = self.find_step("completed")
        if step is None or step.note != redelegation_note(self.superseded_by):
            return False
        return self.find_note("completion_notes", step.at) is None  # no completion note of its own

    @property
    def is_active(self) -> bool:
        """True if it is proposed and not ended yet."""
        return self.status in ACTIVE_STATES

    @property
    def needs_approval(self) -> bool:
        """True if a person has to approve it before it is accepted (S-ACP-9)."""
        policy = package_section(self.package, "policy")
        return bool(policy.get("requires_human_approval")) or policy.get("human_gate") == "required"

    @property
    def is_approved(self) -> bool:
        """True if a person has approved exactly this package."""
        approval = self.approval
        return (
            approval is not None and approval.is_yes and approval.package_hash == self.package_hash
        )

    @property
    def awaits_approval(self) -> bool:
        """True if it cannot be accepted before a person approves it."""
        return self.needs_approval and not self.is_approved

    @property
    def escalation_due_at(self) -> int | None:
        """Time of the next escalation; None: none is due."""
        return None if self.is_escalated else self.stage_due_at

    @property
    def stage_due_at(self) -> int | None:
        """Deadline of the present stage; None: it has none."""
        if not self.is_active:
            return None
        if self.extension is not None:
            return self.extension.until
        return clamp_timestamp(self.entered_at + self.stage_sla_ms)

    def is_overdue(self, now: int) -> bool:
        """Return whether the present stage exceeds its SLA and was not escalated yet."""
        deadline = self.escalation_due_at
        return deadline is not None and deadline <= now

    @property
    def stage_sla_ms(self) -> int:
        """SLA of the present stage without extensions."""
        if self.status == "activated" and self.due_at is not None:
            return max(0, self.due_at - self.entered_at)
        return self.sla_ms.get(self.status, DEFAULT_SLA_MS.get(self.status, 0))

    @property
    def extended_sla_ms(self) -> int:
        """SLA of the present stage with its extension."""
        if self.extension is None:
            return self.stage_sla_ms
        return max(0, self.extension.until - self.entered_at)

    @property
    def pending_items_owner(self) -> str:
        """Agent that the work items have to be transferred to; empty: nothing is pending."""
        if self.find_step("activated") is None:
            return ""
        if self.rejection is not None:
            return "" if self.workq in _ITEM_TRANSFER_DONE else self.sender
        return "" if self.workq else self.recipient

    def work_summary(self) -> dict[str, object]:
        """Parts of the package that the agent of the work needs, with the updates of the work
        state.
        """
        parts = {name: self.package.get(name) for name in _WORK_SECTIONS}
        updates = [note.data for note in self.notes if note.kind == "work_state_update"]
        parts["work_state_update"] = {
            name: value for update in updates for name, value in update.items()
        }
        return {name: part for name, part in parts.items() if part}

    def find_step(self, to: HandoffStatus) -> HandoffStep | None:
        """Step into this state; each state is entered at most once."""
        return next((step for step in self.steps if step.to == to), None)

    def find_note(self, kind: str, since: int) -> HandoffNote | None:
        """First note of a kind since this time, among those in memory."""
        return next((note for note in self.notes if note.kind == kind and note.at >= since), None)


def redelegation_note(successor: str) -> str:
    """Note on a completed handoff whose recipient passed the work on."""
    return f"re-delegated as {successor}"


def extend_chain(chain: tuple[str, ...], owner: str) -> tuple[str, ...]:
    """Append an owner to a chain; if it is in the chain already, cut the chain after it.

    An empty owner changes nothing.
    """
    if not owner:
        return chain
    return (*chain, owner) if owner not in chain else chain[: chain.index(owner) + 1]


def package_section(package: Mapping[str, object], name: str) -> dict[str, Any]:
    """Part of a package; empty if it is missing."""
    part = package.get(name)
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}


def handoff_list_keys(handoff: Handoff) -> tuple[str, ...]:
    """Lists that the handoff is on: all, by task, by sender, by recipient, by state.

    A draft is only on its sender's list of drafts, until it is discarded.
    """
    if handoff.is_discarded:
        return ()
    if handoff.status == "draft":
        return (f"handoffs.draft:{handoff.sender}",)
    is_due = bool(handoff.pending_items_owner) and bool(work_items_of(handoff.package))
    return (
        *((PENDING_ITEM_TRANSFERS,) if is_due else ()),
        ALL_HANDOFFS,
        f"handoffs.space:{handoff.teamspace}",
        f"handoffs.task:{handoff.task}",
        f"handoffs.from:{handoff.sender}",
        f"handoffs.to:{handoff.recipient}",
        f"handoffs.status:{handoff.status}",
    )
