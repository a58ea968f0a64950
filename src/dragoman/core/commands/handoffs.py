"""What is asked for about handoffs and items of the work queue."""

from dragoman.core.commands.base import DEFAULT_TTL_MS, Command
from dragoman.core.deadlines import Backoff
from dragoman.core.events import RejectReason


class DraftHandoff(Command, frozen=True, tag="handoff.draft"):
    """Begin a package, or write over parts of one that was not offered yet."""

    package: dict[str, object]
    """The parts that are written."""
    id: str = ""
    recipient: str = ""
    teamspace: str = ""
    """Empty, like the recipient: as it is, or `default`."""


class DiscardDraft(Command, frozen=True, tag="handoff.discard"):
    """Throw a draft away."""

    id: str


class ProposeHandoff(Command, frozen=True, tag="handoff.propose"):
    """Offer a package, or the draft with this id, to its recipient."""

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
    """When the work has to be done; it is told when that is not so."""
    drafted: str = ""
    """What the draft is known by that this was made of, where it was made of one."""

    @property
    def about(self) -> str:
        """The task that is handed over."""
        return self.task

    @property
    def held(self) -> str:
        """Whoever hands on the task that it works on is alive."""
        return self.task


Failure = tuple[RejectReason, str]
"""What a check of the gate found: the reason, and what is wrong."""


class HandoffCommand(Command, frozen=True):
    """A command about one handoff that there is."""

    handoff: str


class AcceptHandoff(HandoffCommand, frozen=True, tag="handoff.accept"):
    """Take what was offered, as far as it stands the checks that were made of it."""

    package_hash: str
    """Of the package that was checked."""
    passed: tuple[str, ...] = ()
    failed: tuple[Failure, ...] = ()
    waits_for: str = ""
    """What could not be checked just now."""
    artifacts: dict[str, str] = {}
    """Artifact -> the SHA-256 under which its verified copy is kept."""
    left_out: tuple[str, ...] = ()
    notes: str = ""


class RejectHandoff(HandoffCommand, frozen=True, tag="handoff.reject"):
    """Do not take what was offered, or give it back."""

    reason: RejectReason
    detail: str
    suggested_fix: str = ""


class WithdrawHandoff(HandoffCommand, frozen=True, tag="handoff.withdraw"):
    """Take an offer back."""

    note: str = ""


class ActivateHandoff(HandoffCommand, frozen=True, tag="handoff.activate"):
    """Begin the work that was accepted."""

    session: str = ""
    ttl_ms: int = DEFAULT_TTL_MS
    work_state_update: dict[str, object] = {}
    failed: tuple[Failure, ...] = ()
    """What was found wrong when the verified copies were looked at again."""


class CompleteHandoff(HandoffCommand, frozen=True, tag="handoff.complete"):
    """The work that was handed over is done."""

    notes: str = ""
    final_artifacts: tuple[dict[str, object], ...] = ()
    backoff: Backoff = Backoff()


class CloseHandoff(HandoffCommand, frozen=True, tag="handoff.close"):
    """End the record of a handoff."""

    notes: str = ""


class ApproveHandoff(HandoffCommand, frozen=True, tag="handoff.approve"):
    """A person's yes or no to a package."""

    is_yes: bool = True
    package_hash: str = ""
    """Of the package that was seen; empty: the one that there is."""
    note: str = ""


class EscalateHandoff(HandoffCommand, frozen=True, tag="handoff.escalate"):
    """Tell that a state lasts too long; nothing happens while it does not."""

    told: tuple[str, ...] = ()


class ExtendHandoff(HandoffCommand, frozen=True, tag="handoff.extend"):
    """Give the present state more time."""

    by_ms: int
    stage: str = ""


class ReassignHandoff(HandoffCommand, frozen=True, tag="handoff.reassign"):
    """Offer the same package to somebody else."""

    recipient: str
    notes: str = ""


class NoteHandoff(HandoffCommand, frozen=True, tag="handoff.note"):
    """Add something beside the package."""

    kind: str
    text: str = ""
    data: dict[str, object] = {}


class AddWorkItem(Command, frozen=True, tag="workq.add"):
    """Put an item into the work queue."""

    title: str = ""
    id: str = ""


class ClaimWorkItem(Command, frozen=True, tag="workq.claim"):
    """Own an item of the work queue, or give it to somebody."""

    item: str
    owner: str = ""
    """Empty: whoever asks."""
    sender: str = ""
    """From whom it may be taken, beside whoever asks."""


class ReleaseWorkItem(Command, frozen=True, tag="workq.release"):
    """Own an item no more."""

    item: str
    is_orphaned: bool = False
    """It has lost its owner, who is nobody else than the sender."""
    sender: str = ""
