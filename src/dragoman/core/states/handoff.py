"""A handoff: work on its way from one owner to the next, and its table.

The package is what is handed over. It never changes once it is proposed: its hash stands for it.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Struct

from dragoman.core.actors import HUB
from dragoman.core.events import HandoffStatus, RejectReason
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

_ABOUT_WORK: Final = ("task", "context", "work_state", "artifacts")
"""The parts of a package that are for whoever does the work."""

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
    """The owners when it was offered, the first one first (S-ACP-5)."""
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
    went_to: str | None = None
    """Whose the task became beside it, which has ended it; empty: nobody's."""
    escalations: tuple[Escalation, ...] = ()
    is_escalated: bool = False
    """Whether it was told that its present state lasts too long."""
    notes: tuple[Note, ...] = ()
    workq: str = ""
    resolved_at: int | None = None
    is_discarded: bool = False
    """Whether it is a draft that was thrown away: nothing of it is left but its id."""

    @property
    def initiated_at(self) -> int:
        """When it was offered; of a draft, when it was begun."""
        return self.steps[0].at if self.steps else self.created_at

    @property
    def owner(self) -> str:
        """Whose the work is until its recipient begins, and again when that one gives it back."""
        return self.chain[-1] if self.chain else self.sender

    @property
    def chain_once_taken(self) -> tuple[str, ...]:
        """The owners from when its recipient begins."""
        return with_owner(self.chain, self.recipient)

    @property
    def owners(self) -> tuple[str, ...]:
        """The chain by now: its recipient too, from when that one begins until it gives it back.

        What the hub itself ends, because the task has ended too, stays the recipient's.
        """
        if self.went_to is not None:
            return with_owner(self.chain, self.went_to)
        said = self.rejection
        was_given_back = said is not None and said.by != HUB
        has_begun = self.step("activated") is not None and not was_given_back
        return self.chain_once_taken if has_begun else self.chain

    @property
    def goes_back(self) -> bool:
        """Whether it is offered to the one who had the work before its owner."""
        return self.chain[-2:-1] == (self.recipient,)

    @property
    def was_passed_on(self) -> bool:
        """Whether its recipient has begun and then offered the work further, which ended it."""
        step = self.step("completed")
        if step is None or step.note != passing_on(self.superseded_by):
            return False
        return self.note("completion_notes", step.at) is None  # nobody has said these words

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
    def awaits_approval(self) -> bool:
        """Whether nobody can accept it before a person has said yes."""
        return self.needs_approval and not self.is_approved

    @property
    def deadline(self) -> int | None:
        """When a coordinator has to be told; None: never, or one was."""
        return None if self.is_escalated else self.due_by

    @property
    def due_by(self) -> int | None:
        """Until when its present state may last; None: for ever."""
        if not self.is_active:
            return None
        if self.extension is not None:
            return self.extension.until
        return within_span(self.entered_at + self.stage_ms)

    def is_late(self, now: int) -> bool:
        """Whether its present state has lasted too long, and nobody was told yet."""
        deadline = self.deadline
        return deadline is not None and deadline <= now

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

    def about_work(self) -> dict[str, object]:
        """What whoever does the work has to know: those parts of the package, and how it was said
        to stand since.
        """
        parts = {name: self.package.get(name) for name in _ABOUT_WORK}
        said = [note.data for note in self.notes if note.kind == "work_state_update"]
        parts["work_state_update"] = {
            name: word for update in said for name, word in update.items()
        }
        return {name: part for name, part in parts.items() if part}

    def step(self, to: HandoffStatus) -> Step | None:
        """When and by whom it came into this state; it comes into each once."""
        return next((step for step in self.steps if step.to == to), None)

    def note(self, kind: str, since: int) -> Note | None:
        """The first note of a kind since a moment, as far as it is at hand."""
        return next((note for note in self.notes if note.kind == kind and note.at >= since), None)


def passing_on(successor: str) -> str:
    """How the end of a handoff is worded whose recipient offers the work further."""
    return f"re-delegated as {successor}"


def with_owner(chain: tuple[str, ...], owner: str) -> tuple[str, ...]:
    """The owners so far, this one last; what came back to one, by whatever way, is as if it had
    not gone on from there. Nobody (empty) is no owner.
    """
    if not owner:
        return chain
    return (*chain, owner) if owner not in chain else chain[: chain.index(owner) + 1]


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
