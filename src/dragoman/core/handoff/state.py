"""Handoffs (ACP): commands, events, states and the fold from events to a handoff.

A handoff offers the work on a task to its next owner. The package that is handed over never
changes once it is proposed: its hash stands for it (S-ACP-2). The deciders are in `core/handoff/`.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, cast

from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core.actor import HUB_NAME
from dragoman.core.backoff import Backoff
from dragoman.core.base import ATTENTION_LIST, DEFAULT_LEASE_MS, Command, Event
from dragoman.core.ids import ACTOR_STREAMS, handoff_stream
from dragoman.core.timestamps import clamp_timestamp

# --- names of states and reasons --------------------------------------------------------------

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


# --- commands ---------------------------------------------------------------------------------


_KEPT_IN: Final = (handoff_stream(""), ACTOR_STREAMS)


class ProposeHandoff(Command, frozen=True, tag="handoff.propose"):
    """Propose a package to its recipient."""

    free_text = ("title", "reason")
    original_kept_in = _KEPT_IN

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

    original_kept_in = _KEPT_IN

    handoff: str


class AcceptHandoff(HandoffCommand, frozen=True, tag="handoff.accept"):
    """Accept a proposed handoff, if it passed the checks."""

    free_text = ("notes",)

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
    must_pass: bool = False
    """Refuse the request where a check fails or waits; what the gate found is recorded anyway."""


class RejectHandoff(HandoffCommand, frozen=True, tag="handoff.reject"):
    """Reject a handoff, or give the work back."""

    free_text = ("detail", "suggested_fix")

    reason: RejectReason
    detail: str
    suggested_fix: str = ""


class WithdrawHandoff(HandoffCommand, frozen=True, tag="handoff.withdraw"):
    """Withdraw a proposal."""

    free_text = ("note",)

    note: str = ""


class ActivateHandoff(HandoffCommand, frozen=True, tag="handoff.activate"):
    """Begin the accepted work."""

    free_text = ("work_state_update",)

    session: str = ""
    ttl_ms: int = DEFAULT_LEASE_MS
    work_state_update: dict[str, object] = {}
    failed: tuple[GateFailure, ...] = ()
    """Faults of the verified copies, which were checked again."""


class CompleteHandoff(HandoffCommand, frozen=True, tag="handoff.complete"):
    """Complete the work that was handed over."""

    free_text = ("notes", "final_artifacts")

    notes: str = ""
    final_artifacts: tuple[dict[str, object], ...] = ()
    is_confidential: bool = False
    """True if what it says stays with the handoff: the report of the task only names it."""
    backoff: Backoff = Backoff()


class CloseHandoff(HandoffCommand, frozen=True, tag="handoff.close"):
    """Close the record of a handoff."""

    free_text = ("notes",)

    notes: str = ""


class ApproveHandoff(HandoffCommand, frozen=True, tag="handoff.approve"):
    """Approve or deny a package, by a person."""

    free_text = ("note",)

    approved: bool = True
    package_hash: str = ""
    """Hash of the package that the person saw; empty: the present one."""
    note: str = ""


class EscalateHandoff(HandoffCommand, frozen=True, tag="handoff.escalate"):
    """Escalate a stage that exceeds its SLA; a no-op while it does not."""

    notify: tuple[str, ...] = ()


class ExtendHandoff(HandoffCommand, frozen=True, tag="handoff.extend"):
    """Extend the present stage."""

    by_ms: int
    stage: str = ""


class ReassignHandoff(HandoffCommand, frozen=True, tag="handoff.reassign"):
    """Offer the same package to another recipient."""

    free_text = ("notes",)

    recipient: str
    notes: str = ""


class NoteHandoff(HandoffCommand, frozen=True, tag="handoff.note"):
    """Add a note beside the package."""

    free_text = ("text", "data")

    kind: str
    text: str = ""
    data: dict[str, object] = {}


# --- events -----------------------------------------------------------------------------------


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
    releases_task: bool = False
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
    approved: bool = True
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


# --- transitions, deadlines and actions of each state -----------------------------------------

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

SLA_STATES: Final = tuple(DEFAULT_SLA_MS)
"""States with an SLA."""

LEGAL_ACTIONS: Final[Mapping[HandoffStatus, tuple[str, ...]]] = {
    "draft": ("initiate",),
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

WORKQ_NOTE_KIND: Final = "workq_integration"
"""Kind of the note that records the outcome of that transfer."""

_ITEM_TRANSFER_DONE: Final = frozenset({"not_applicable", "returned", "not_returned"})
"""Outcomes after which no item remains to be returned."""

_WORK_SECTIONS: Final = ("task", "context", "work_state", "artifacts")
"""Parts of a package that the agent of the work needs."""


# --- work items that a package refers to ------------------------------------------------------

ITEM_REF_TYPE: Final = "workq_item"

MAX_ITEMS: Final = 16
"""Largest number of items for one handoff: each may need a call to an external queue."""

_ITEM_PREFIX: Final = "workq:"


def strip_item_prefix(item: str) -> str:
    """Id of an item without its `workq:` prefix."""
    return item.removeprefix(_ITEM_PREFIX)


def work_items_of(package: Mapping[str, object]) -> tuple[str, ...]:
    """Work items that a package refers to, each once, up to the limit."""
    return all_work_items_of(package)[:MAX_ITEMS]


def all_work_items_of(package: Mapping[str, object]) -> tuple[str, ...]:
    """All work items that a package refers to, each once."""
    return tuple(dict.fromkeys(strip_item_prefix(name) for name in _item_refs(package)))


def _item_refs(package: Mapping[str, object]) -> Iterator[str]:
    task = package.get("task")
    for ref in _iter_objects(_as_object(task).get("external_refs")):
        if ref.get("type") == ITEM_REF_TYPE:
            yield str(ref.get("value", ""))
    for artifact in _iter_objects(package.get("artifacts")):
        ref = _as_object(artifact.get("ref"))
        if ref.get("type") == ITEM_REF_TYPE:
            yield str(ref.get("path", ""))


def _iter_objects(value: object) -> Iterator[dict[str, Any]]:
    if isinstance(value, list | tuple):
        for one in cast(list[object], value):
            yield _as_object(one)


def _as_object(value: object) -> dict[str, Any]:
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


# --- state ------------------------------------------------------------------------------------


class HandoffStep(Struct, frozen=True, omit_defaults=True):
    """One transition: state, time, actor and note."""

    to: HandoffStatus
    at: int
    by: str = ""
    note: str = ""


class HandoffApproval(HandoffApproved, frozen=True):
    """Approval or denial of a package by a person."""

    at: int = 0


class HandoffRejection(HandoffRejected, frozen=True):
    """Rejection of a handoff, with its reason."""

    at: int = 0


class HandoffEscalation(Struct, frozen=True, omit_defaults=True):
    """Escalation that was sent to a coordinator."""

    trigger: str
    stage: str
    sla_ms: int
    elapsed_ms: int
    to: str
    at: int


class HandoffNote(HandoffNoted, frozen=True):
    """Note beside the package (S-ACP-11)."""

    at: int = 0


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
    """Primary id of the task."""
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
    extension: HandoffExtended | None = None
    """Extension of the present state."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    artifacts: dict[str, str] = {}
    """Artifact -> SHA-256 of its verified copy."""
    left_out: tuple[str, ...] = ()
    """Artifacts that the recipient declined (S-ACP-15)."""
    approval: HandoffApproval | None = None
    rejection: HandoffRejection | None = None
    taken_over_by: str | None = None
    """Owner that the task got without a handoff, which ended this one; empty: nobody."""
    escalations: tuple[HandoffEscalation, ...] = ()
    is_escalated: bool = False
    """True if the present stage was escalated."""
    notes: tuple[HandoffNote, ...] = ()
    workq: str = ""
    resolved_at: int | None = None

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
        if self.taken_over_by is not None:
            return extend_chain(self.chain, self.taken_over_by)
        rejection = self.rejection
        was_given_back = rejection is not None and rejection.by != HUB_NAME
        has_begun = self.find_step("activated") is not None and not was_given_back
        return self.chain_after_activation if has_begun else self.chain

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
            approval is not None
            and approval.approved
            and approval.package_hash == self.package_hash
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
    def has_items_to_return(self) -> bool:
        """True if work that was begun was given back, and its work items were not."""
        is_given_back = self.find_step("activated") is not None and self.rejection is not None
        return is_given_back and self.workq not in _ITEM_TRANSFER_DONE

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
    """Lists that the handoff is on: all, by task, by sender, by recipient, by state; and what needs
    attention."""
    needs_attention = handoff.is_active and (handoff.awaits_approval or handoff.is_escalated)
    return (
        *((ATTENTION_LIST,) if needs_attention else ()),
        ALL_HANDOFFS,
        f"handoffs.space:{handoff.teamspace}",
        f"handoffs.task:{handoff.task}",
        f"handoffs.from:{handoff.sender}",
        f"handoffs.to:{handoff.recipient}",
        f"handoffs.status:{handoff.status}",
    )


# --- fold -------------------------------------------------------------------------------------

MAX_NOTES: Final = 64
"""Number of notes, and of escalations, that the state keeps; the ledger has all of them."""


def fold_proposed(_: None, event: HandoffProposed, at: int) -> Handoff:
    return Handoff(
        status="proposed",
        created_at=at,
        entered_at=at,
        steps=(HandoffStep("proposed", at, event.sender),),
        **asdict(event),
    )


def _fold_transitioned(handoff: Handoff, event: HandoffTransitioned, at: int) -> Handoff:
    return replace(
        handoff,
        status=event.to,
        entered_at=at,
        extension=None,
        is_escalated=False,
        steps=(*handoff.steps, HandoffStep(event.to, at, event.by, event.note)),
        superseded_by=event.superseded_by or handoff.superseded_by,
        taken_over_by=handoff.taken_over_by if event.owner is None else event.owner,
        resolved_at=handoff.resolved_at if event.to in ACTIVE_STATES else handoff.resolved_at or at,
    )


def _fold_verified(handoff: Handoff, event: HandoffVerified, _: int) -> Handoff:
    return replace(handoff, **asdict(event))


def _fold_rejected(handoff: Handoff, event: HandoffRejected, at: int) -> Handoff:
    return replace(handoff, rejection=HandoffRejection(at=at, **asdict(event)))


def _fold_approved(handoff: Handoff, event: HandoffApproved, at: int) -> Handoff:
    return replace(handoff, approval=HandoffApproval(at=at, **asdict(event)))


def _fold_escalated(handoff: Handoff, event: HandoffEscalated, at: int) -> Handoff:
    escalation = HandoffEscalation(
        event.trigger, event.stage, event.sla_ms, event.elapsed_ms, event.to, at
    )
    # One that names no recipient is about a stage that has ended.
    is_late = handoff.is_escalated or (event.trigger == "timeout" and bool(event.to))
    escalations = (*handoff.escalations, escalation)[-MAX_NOTES:]
    return replace(handoff, escalations=escalations, is_escalated=is_late)


def _fold_extended(handoff: Handoff, event: HandoffExtended, _: int) -> Handoff:
    return replace(handoff, extension=event, is_escalated=False)


def _fold_noted(handoff: Handoff, event: HandoffNoted, at: int) -> Handoff:
    notes = (*handoff.notes, HandoffNote(at=at, **asdict(event)))[-MAX_NOTES:]
    workq = event.text if event.kind == WORKQ_NOTE_KIND else handoff.workq
    superseded_by = event.text if event.kind == "superseded_by" else handoff.superseded_by
    return replace(handoff, notes=notes, workq=workq, superseded_by=superseded_by)


HANDOFF_FOLDS: dict[type[Event], Callable[[Any, Any, int], Handoff]] = {
    HandoffProposed: fold_proposed,
    HandoffTransitioned: _fold_transitioned,
    HandoffVerified: _fold_verified,
    HandoffRejected: _fold_rejected,
    HandoffApproved: _fold_approved,
    HandoffEscalated: _fold_escalated,
    HandoffExtended: _fold_extended,
    HandoffNoted: _fold_noted,
}
"""Event -> fold from the handoff before it (None at first), the event and its time to the handoff
after it.
"""
