"""A handoff: work on its way from one owner to the next, its table, and how each event changes it.

The package is what is handed over. It never changes once it is proposed: its hash stands for it.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import (
    HandoffApproved,
    HandoffDiscarded,
    HandoffDrafted,
    HandoffEscalated,
    HandoffEvent,
    HandoffExtended,
    HandoffMoved,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffStatus,
    HandoffVerified,
    RejectReason,
)
from dragoman.core.moments import within_span
from dragoman.core.states.handoff_items import items_of

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
"""From each state, the states that a handoff may go to."""

ACTIVE: Final[frozenset[HandoffStatus]] = frozenset(
    {"proposed", "validating", "accepted", "activated"}
)
"""At most one handoff of a task is in one of these."""

DEFAULT_SLA_MS: Final[Mapping[HandoffStatus, int]] = {
    "proposed": 5 * 60_000,
    "validating": 10 * 60_000,
    "accepted": 15 * 60_000,
    "activated": 24 * 3_600_000,
}
"""State -> how long it may last before a coordinator is told."""

NEXT_STAGE: Final[Mapping[HandoffStatus, str]] = {
    "proposed": "proposed→validating",
    "validating": "validating→accepted/rejected",
    "accepted": "accepted→activated",
    "activated": "activated→completed",
}
"""State -> how an escalation names the way that was not gone in time."""

SLA_STAGES: Final = tuple(DEFAULT_SLA_MS)
"""The states that have a time."""

LEGAL: Final[Mapping[HandoffStatus, tuple[str, ...]]] = {
    "draft": ("draft", "propose", "discard"),
    "proposed": ("accept", "reject", "withdraw", "extend_sla", "reassign"),
    "validating": ("accept", "reject", "withdraw", "extend_sla", "reassign"),
    "accepted": ("activate", "reject", "withdraw", "extend_sla", "reassign"),
    "activated": ("complete", "reject", "extend_sla", "reassign"),
    "rejected": ("close",),
    "completed": ("close",),
    "closed": (),
}
"""State -> the actions that it has; where the lease has ended, what is activated is so again."""

ALL_HANDOFFS: Final = "handoffs"
"""The list of all that were offered."""
ITEMS_DUE: Final = "handoffs.items"
"""The list of those whose items of a work queue are not yet where the work is."""
WORKQ_NOTE: Final = "workq_integration"
"""The kind of note that says how it went with them."""
_OVER: Final = frozenset({"not_applicable", "returned", "not_returned"})
"""How it went, where nothing is left to be given back."""

REMEMBERED: Final = 64
"""How many notes, and how many escalations, a handoff keeps at hand; the ledger has them all."""


class Step(Struct, frozen=True, omit_defaults=True):
    """One transition: where to, when, by whom."""

    to: HandoffStatus
    at: int
    by: str = ""
    note: str = ""


class Extension(Struct, frozen=True):
    """More time for a state, by a coordinator's word."""

    until: int
    by: str
    by_ms: int


class Approval(Struct, frozen=True, omit_defaults=True):
    """A person's word on a package."""

    by: str
    at: int
    package_hash: str
    is_yes: bool
    note: str = ""


class Rejection(Struct, frozen=True, omit_defaults=True):
    """Why the work is not taken over."""

    by: str
    at: int
    reason: RejectReason
    detail: str
    suggested_fix: str = ""


class Escalation(Struct, frozen=True, omit_defaults=True):
    """Something that was told to a coordinator."""

    trigger: str
    stage: str
    sla_ms: int
    elapsed_ms: int
    to: str
    at: int


class Note(Struct, frozen=True, omit_defaults=True):
    """Something that was said beside the package (S-ACP-11)."""

    by: str
    at: int
    kind: str
    text: str = ""
    data: dict[str, object] = {}


class Handoff(Struct, frozen=True, omit_defaults=True):
    """The state of one handoff, folded from its entries."""

    id: str
    sender: str
    recipient: str
    status: HandoffStatus
    created_at: int
    entered_at: int
    """When it came into its present state."""
    package: dict[str, object]
    task: str = ""
    """The task's primary id; empty while it is a draft."""
    teamspace: str = "default"
    thread: str = ""
    title: str = ""
    reason: str = ""
    package_hash: str = ""
    chain: tuple[str, ...] = ()
    """The owners so far, the first one first (S-ACP-5)."""
    supersedes: str = ""
    superseded_by: str = ""
    sla_ms: dict[str, int] = {}
    """State -> how long it may last, where that differs from the hub's rule at the time."""
    due_at: int | None = None
    """When the work has to be done, where its sender has said so."""
    steps: tuple[Step, ...] = ()
    """The way that it has gone since it was offered."""
    extension: Extension | None = None
    """Of its present state."""
    passed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    artifacts: dict[str, str] = {}
    """Artifact -> the SHA-256 under which its verified copy is kept."""
    left_out: tuple[str, ...] = ()
    """Artifacts that the recipient did not take (S-ACP-15)."""
    approval: Approval | None = None
    rejection: Rejection | None = None
    escalations: tuple[Escalation, ...] = ()
    is_escalated: bool = False
    """Whether it was told that its present state lasts too long."""
    notes: tuple[Note, ...] = ()
    workq: str = ""
    resolved_at: int | None = None
    is_discarded: bool = False
    """Whether it is a draft that was thrown away: nothing of it is left but its id."""

    @property
    def is_active(self) -> bool:
        """Whether the task is on its way, or in the recipient's hands."""
        return self.status in ACTIVE

    @property
    def needs_approval(self) -> bool:
        """Whether a person has to say yes before it is accepted (S-ACP-9)."""
        policy = section(self.package, "policy")
        return bool(policy.get("requires_human_approval")) or policy.get("human_gate") == "required"

    @property
    def is_approved(self) -> bool:
        """Whether a person has said yes to this very package."""
        said = self.approval
        return said is not None and said.is_yes and said.package_hash == self.package_hash

    @property
    def deadline(self) -> int | None:
        """When a coordinator has to be told; None: never, or one was."""
        if not self.is_active or self.is_escalated:
            return None
        if self.extension is not None:
            return self.extension.until
        return within_span(self.entered_at + self.stage_ms)

    @property
    def stage_ms(self) -> int:
        """How long its present state may last, as it was set at first."""
        if self.status == "activated" and self.due_at is not None:
            return max(0, self.due_at - self.entered_at)
        return self.sla_ms.get(self.status, DEFAULT_SLA_MS.get(self.status, 0))

    @property
    def granted_ms(self) -> int:
        """How long its present state may last by now, with the time that it was given besides."""
        if self.extension is None:
            return self.stage_ms
        return max(0, self.extension.until - self.entered_at)

    @property
    def items_due(self) -> str:
        """Whose the items of a work queue have to become; empty: they are, as far as that went."""
        if self.step("activated") is None:
            return ""
        if self.rejection is not None:
            return "" if self.workq in _OVER else self.sender
        return "" if self.workq else self.recipient

    def step(self, to: HandoffStatus) -> Step | None:
        """When and by whom it came into this state; it comes into each once."""
        return next((step for step in self.steps if step.to == to), None)

    def note(self, kind: str, since: int) -> Note | None:
        """The first note of a kind since a moment, as far as it is at hand."""
        return next((note for note in self.notes if note.kind == kind and note.at >= since), None)


def section(package: Mapping[str, object], name: str) -> dict[str, Any]:
    """A part of a package; empty when it has no such part."""
    part = package.get(name)
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}


def lists_of_handoff(handoff: Handoff) -> tuple[str, ...]:
    """The lists that a query walks along: all, by task, by each side, by state.

    A draft stands on its sender's list alone, until it is thrown away.
    """
    if handoff.is_discarded:
        return ()
    if handoff.status == "draft":
        return (f"handoffs.draft:{handoff.sender}",)
    is_due = bool(handoff.items_due) and bool(items_of(handoff.package))
    return (
        *((ITEMS_DUE,) if is_due else ()),
        ALL_HANDOFFS,
        f"handoffs.space:{handoff.teamspace}",
        f"handoffs.task:{handoff.task}",
        f"handoffs.from:{handoff.sender}",
        f"handoffs.to:{handoff.recipient}",
        f"handoffs.status:{handoff.status}",
    )


def _drafted(old: Handoff | None, event: HandoffDrafted, at: int) -> Handoff:
    """A draft is written over as often as its sender likes."""
    created_at = at if old is None or old.is_discarded else old.created_at
    return Handoff(
        id=event.id,
        sender=event.sender,
        recipient=event.recipient,
        status="draft",
        created_at=created_at,
        entered_at=created_at,
        package=event.package,
        teamspace=event.teamspace,
    )


def _discarded(handoff: Handoff, event: HandoffDiscarded, at: int) -> Handoff:
    """Its sender keeps the id."""
    del event
    return Handoff(handoff.id, handoff.sender, "", "draft", at, at, {}, is_discarded=True)


def handoff_proposed(old: Handoff | None, event: HandoffProposed, at: int) -> Handoff:
    """The handoff as it is offered."""
    return Handoff(
        id=event.id,
        sender=event.sender,
        recipient=event.recipient,
        status="proposed",
        created_at=at if old is None or old.is_discarded else old.created_at,
        entered_at=at,
        package=event.package,
        task=event.task,
        teamspace=event.teamspace,
        thread=event.thread,
        title=event.title,
        reason=event.reason,
        package_hash=event.package_hash,
        chain=event.chain,
        supersedes=event.supersedes,
        sla_ms=event.sla_ms,
        due_at=event.due_at,
        steps=(Step("proposed", at, event.sender),),
    )


def _moved(handoff: Handoff, event: HandoffMoved, at: int) -> Handoff:
    return replace(
        handoff,
        status=event.to,
        entered_at=at,
        extension=None,
        is_escalated=False,
        steps=(*handoff.steps, Step(event.to, at, event.by, event.note)),
        superseded_by=event.superseded_by or handoff.superseded_by,
        resolved_at=handoff.resolved_at if event.to in ACTIVE else handoff.resolved_at or at,
    )


def _verified(handoff: Handoff, event: HandoffVerified, at: int) -> Handoff:
    del at
    return replace(
        handoff,
        passed=event.passed,
        failed=event.failed,
        artifacts=event.artifacts,
        left_out=event.left_out,
    )


def _rejected(handoff: Handoff, event: HandoffRejected, at: int) -> Handoff:
    said = Rejection(event.by, at, event.reason, event.detail, event.suggested_fix)
    return replace(handoff, rejection=said)


def _approved(handoff: Handoff, event: HandoffApproved, at: int) -> Handoff:
    said = Approval(event.by, at, event.package_hash, event.is_yes, event.note)
    return replace(handoff, approval=said)


def _escalated(handoff: Handoff, event: HandoffEscalated, at: int) -> Handoff:
    told = Escalation(event.trigger, event.stage, event.sla_ms, event.elapsed_ms, event.to, at)
    is_late = handoff.is_escalated or event.trigger == "timeout"
    escalations = (*handoff.escalations, told)[-REMEMBERED:]
    return replace(handoff, escalations=escalations, is_escalated=is_late)


def _extended(handoff: Handoff, event: HandoffExtended, at: int) -> Handoff:
    del at
    longer = Extension(event.until, event.by, event.by_ms)
    return replace(handoff, extension=longer, is_escalated=False)


def _noted(handoff: Handoff, event: HandoffNoted, at: int) -> Handoff:
    note = Note(event.by, at, event.kind, event.text, event.data)
    notes = (*handoff.notes, note)[-REMEMBERED:]
    workq = event.text if event.kind == WORKQ_NOTE else handoff.workq
    superseded_by = event.text if event.kind == "superseded_by" else handoff.superseded_by
    return replace(handoff, notes=notes, workq=workq, superseded_by=superseded_by)


EVOLVE_HANDOFF: dict[type[HandoffEvent], Callable[[Any, Any, int], Handoff]] = {
    HandoffDrafted: _drafted,
    HandoffDiscarded: _discarded,
    HandoffProposed: handoff_proposed,
    HandoffMoved: _moved,
    HandoffVerified: _verified,
    HandoffRejected: _rejected,
    HandoffApproved: _approved,
    HandoffEscalated: _escalated,
    HandoffExtended: _extended,
    HandoffNoted: _noted,
}
"""Event -> the handoff after it, from the handoff before it (None at first) and its time."""
