"""What is asked for, in the imperative. Deciders check the contents before anything else."""

from msgspec import Struct

from dragoman.core.deadlines import Backoff
from dragoman.core.events import (
    Importance,
    LinkKind,
    Outcome,
    Priority,
    RejectReason,
    Role,
    Status,
    WaveBead,
)
from dragoman.core.offers import Candidate, Policy, Trust

DEFAULT_TTL_MS = 300_000
"""A lease without a heartbeat ends after five minutes (S-RUN)."""

DEFAULT_ATTEMPTS = 5
"""After this many failures in a row a task goes to the deadletter (S-RUN)."""

PAUSED_BY_HAND = "paused by hand"
"""Why an agent is paused, where nobody says more."""


class Command(Struct, frozen=True, omit_defaults=True):
    """One thing to do. A request is a tuple of them: all or none. The tag is its stable name."""

    @property
    def about(self) -> str:
        """The task that it is about, by any of its names; empty when there is none yet."""
        return ""

    @property
    def held(self) -> str:
        """The task whose holder shows by it that it is alive; empty: nobody's."""
        return ""

    @property
    def token(self) -> int | None:
        """The fencing token that it names; None: whichever its sender holds."""
        return getattr(self, "fence", None)


class CreateTask(Command, frozen=True, tag="task.create"):
    """Begin a task. Without an id the hub gives it the day's next AOF id."""

    title: str
    id: str = ""
    body: str = ""
    ready: bool = False
    assignee: str = ""
    parent: str = ""
    review_required: bool = True
    priority: Priority = "normal"
    blocked_by: tuple[str, ...] = ()
    discovered_from: str = ""
    aliases: tuple[str, ...] = ()
    origin: str = ""
    max_attempts: int = DEFAULT_ATTEMPTS


class AdoptTask(Command, frozen=True, tag="task.adopt"):
    """Make sure that a task born elsewhere exists: create it unless its name is known."""

    kind: str
    name: str
    title: str = ""
    origin: str = ""
    review_required: bool = True
    max_attempts: int = DEFAULT_ATTEMPTS
    ready: bool = True
    """Whether it may be claimed at once, if it is new here; else it waits in the backlog."""
    claim_for: str = ""
    """Who works on it already, if it is new here: its first attempt begins with it."""
    ttl_ms: int = DEFAULT_TTL_MS
    session: str = ""


class PostMail(Command, frozen=True, tag="mail.post"):
    """Hand in a letter of the caller's own; without an id it gets one, without a thread too."""

    to: tuple[str, ...]
    subject: str
    body: str
    kind: str = ""
    """What its dialect takes it for."""
    id: str = ""
    thread: str = ""
    cc: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    """Who gets it because of what it is."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_in_ms: int = 0
    """After how long a missing ack or answer is told as late; 0: never."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None

    @property
    def held(self) -> str:
        """Whoever writes about the task that it works on is alive."""
        return self.bead


class ReadMail(Command, frozen=True, tag="mail.read"):
    """The caller has read a letter in its box."""

    mail: str


class AckMail(Command, frozen=True, tag="mail.ack"):
    """The caller took notice of a letter in its box."""

    mail: str


class AnswerMail(Command, frozen=True, tag="mail.answer"):
    """A letter waits no longer: the one that this request hands in is its answer."""

    mail: str
    answer: str = ""
    """The id of that one, if it has one of its own."""
    roles: tuple[Role, ...] = ()
    """Who may answer though the letter is not in its box."""


class EscalateMail(Command, frozen=True, tag="mail.escalate"):
    """Record that an ack or an answer is late; nothing happens while it is not."""

    mail: str
    told: tuple[str, ...] = ()
    """Who gets the letter from now on."""


class StartWave(Command, frozen=True, tag="wave.start"):
    """Run tasks together; each is named by any of its names. Without an id the wave gets one."""

    beads: tuple[WaveBead, ...]
    parallel: int
    id: str = ""
    retries: dict[str, int] = {}
    told: str = ""
    """Who gets the closing report; empty: the caller."""
    beside: tuple[str, ...] = ()
    """The waves that run already, as far as was known just before."""


class AdvanceWave(Command, frozen=True, tag="wave.advance"):
    """Let those tasks of a wave go that may; nothing happens while none may."""

    wave: str = ""
    """Empty: the one that this request starts."""


class ReserveFiles(Command, frozen=True, tag="reservation.take"):
    """Keep others from files, by paths and globs, for a time."""

    patterns: tuple[str, ...]
    ttl_ms: int
    exclusive: bool = True
    task: str = ""
    """The task that they are for: the reservation ends when it is no longer in progress."""
    reason: str = ""


class RenewReservations(Command, frozen=True, tag="reservation.renew"):
    """Keep files for a time from now on; none named: all of the caller's."""

    names: tuple[str, ...]
    """Ids of reservations, or patterns as they were reserved."""
    ttl_ms: int


class ReleaseReservations(Command, frozen=True, tag="reservation.release"):
    """Give files back; none named: all of the caller's."""

    names: tuple[str, ...] = ()


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


class TaskCommand(Command, frozen=True):
    """A command about one existing task, by any of its names."""

    task: str

    @property
    def about(self) -> str:
        """The task that it is about."""
        return self.task

    @property
    def held(self) -> str:
        """The task whose holder shows by it that it is alive."""
        return self.task


class MoveTask(TaskCommand, frozen=True, tag="task.move"):
    """Change the status, other than into in-progress."""

    to: Status
    reason: str = ""
    fence: int | None = None
    if_at_rest: bool = False
    """Whether a task that somebody works on is left to that one."""


class ClaimTask(TaskCommand, frozen=True, tag="task.claim"):
    """Begin an attempt for an agent; an empty task means the next one that is ready for it."""

    agent: str
    session: str = ""
    ttl_ms: int = DEFAULT_TTL_MS
    queues: tuple[str, ...] = ()
    """Whose tasks it may be, said by whoever may claim for others: names that tasks are reserved
    for, and "" for those of anyone; none: anyone's, and the agent's own."""
    or_renew: bool = False
    """Whether an agent that holds the task already goes on with it, instead of being told no."""


class RenewLease(TaskCommand, frozen=True, tag="task.heartbeat"):
    """A heartbeat: the holder is alive."""

    fence: int | None = None


class ReleaseTask(TaskCommand, frozen=True, tag="task.release"):
    """The holder gives the task back without a failure."""

    reason: str = "released"
    fence: int | None = None


class CheckpointTask(TaskCommand, frozen=True, tag="task.checkpoint"):
    """The holder gives the task back with what its successor needs to go on."""

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    fence: int | None = None
    backoff: Backoff = Backoff()
    """How the task rests if nothing was reached."""


class ReportOutcome(TaskCommand, frozen=True, tag="task.report"):
    """The holder says how its attempt ended; applied at once, or when the attempt ends."""

    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}
    fence: int | None = None
    apply: bool = False
    backoff: Backoff = Backoff()


class EndAttempt(TaskCommand, frozen=True, tag="attempt.end"):
    """The holder's session is over: apply what it reported, if it did."""

    session: str = ""
    backoff: Backoff = Backoff()
    fence: int | None = None


class ExpireLease(TaskCommand, frozen=True, tag="lease.expire"):
    """Recover a task whose holder has gone silent; nothing happens while its lease lives."""

    backoff: Backoff = Backoff()
    told: tuple[str, ...] = ()
    """Who is to hear of it where the silent one has taken the task over by a handoff."""


class LinkTask(TaskCommand, frozen=True, tag="task.link"):
    """Point a task at another one."""

    kind: LinkKind
    target: str
    fence: int | None = None


class AliasTask(TaskCommand, frozen=True, tag="task.alias"):
    """Give a task one more name, KIND:NAME."""

    alias: str
    fence: int | None = None


class NoteTask(TaskCommand, frozen=True, tag="task.note"):
    """Add a line to a task's work log."""

    text: str
    fence: int | None = None


class UpdateTask(TaskCommand, frozen=True, tag="task.update"):
    """Word from whoever works on a task: another status where the table has the way, else a log."""

    to: Status | None = None
    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    sent_at: int | None = None
    fence: int | None = None


class EditTask(TaskCommand, frozen=True, tag="task.edit"):
    """Give fields of a task new values; None leaves a field as it is."""

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    assignee: str | None = None
    """The agent that it is reserved for; empty: anyone."""
    fence: int | None = None


class WarnTask(TaskCommand, frozen=True, tag="task.warn"):
    """Record that something about a message was odd, though no reason to refuse it."""

    reason: str
    detail: str = ""


class RequestDelegation(TaskCommand, frozen=True, tag="delegation.request"):
    """Ask an agent to take a task as a part of a parent task."""

    parent: str
    to_agent: str
    due_by: int
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()
    from_agent: str = ""
    """On whose behalf; empty: the caller's own."""

    @property
    def held(self) -> str:
        """Whoever delegates works on the parent."""
        return self.parent


class AcceptDelegation(TaskCommand, frozen=True, tag="delegation.accept"):
    """The agent that was asked takes the task."""


class RejectDelegation(TaskCommand, frozen=True, tag="delegation.reject"):
    """The agent that was asked does not take the task."""

    reason: str = ""


class EscalateDelegation(TaskCommand, frozen=True, tag="delegation.escalate"):
    """Record that a delegation is late; nothing happens while it is not."""


class RegisterAgent(Command, frozen=True, tag="agent.register"):
    """Make a name known, with its role and the dialects that it speaks."""

    name: str
    role: Role = "agent"
    speaks: tuple[str, ...] = ()
    plays: str | None = None
    """The part that it plays in traces; empty: its name, where that is one; None: as before."""


class KeyAgent(Command, frozen=True, tag="agent.key"):
    """Make known with which key a known agent signs; an empty one takes it away."""

    name: str
    key: str
    """The public half of an Ed25519 key, 32 bytes in base64url."""


class IssueToken(Command, frozen=True, tag="token.issue"):
    """Let whoever has a token speak for a known agent; the token itself stays with its maker."""

    name: str
    id: str
    digest: str
    """SHA-256 of the token, in hexadecimal."""
    expires_at: int


class RevokeToken(Command, frozen=True, tag="token.revoke"):
    """End a token of an agent; an empty id ends all that were given out so far."""

    name: str
    id: str = ""


class PauseAgent(Command, frozen=True, tag="agent.pause"):
    """Start nothing for a known agent; what it works on goes on."""

    name: str
    reason: str = PAUSED_BY_HAND
    until: int | None = None
    """When it goes on by itself; None: when somebody says so."""


class ResumeAgent(Command, frozen=True, tag="agent.resume"):
    """Let an agent be started again; nothing happens to one that is not paused."""

    name: str


class RejectMessage(Command, frozen=True, tag="message.reject"):
    """Refuse a message that is no command, so that it is recorded like every other refusal."""

    code: str
    detail: str
    target: str = ""
    kind: str = ""
    """What the sender calls its message."""

    @property
    def about(self) -> str:
        """The task that the message names, known or not."""
        return self.target


class DescribeAgent(Command, frozen=True, tag="agent.describe"):
    """Say what a known agent can do, and on which terms; it replaces what was said before."""

    name: str
    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    trust: Trust | None = None
    """None: what it has, or else what its describer may give: T1, and T0 from the agent itself."""
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    reach: str = ""


class DelegateIntent(Command, frozen=True, tag="intent.delegate"):
    """Give a goal to the first of its candidates that governance has nothing against.

    The same again is a no-op; of an intent that has come to nothing it is a new beginning.
    """

    goal: str
    id: str = ""
    """Without one it gets one; if a task has this name already, it is the one to be done."""
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    plan: str = ""
    follows: str = ""
    tries: int = 3
    review_required: bool = False
    candidates: tuple[Candidate, ...] = ()
    """As they were ranked just before; what may have changed is looked at again."""
    policy: Policy = Policy()
    agent: str = ""
    """Whom it is meant for, if nobody else will do."""
    request_id: str = ""
    """What whoever asks calls the request; empty: it gets a name. Said again, it is a repeat."""


class IntentCommand(Command, frozen=True):
    """A command about one existing intent."""

    intent: str

    @property
    def about(self) -> str:
        """Its task."""
        return f"intent:{self.intent}"

    @property
    def held(self) -> str:
        """Whoever works on it shows by this that it is alive."""
        return self.about


class ReceiveResult(IntentCommand, frozen=True, tag="intent.result"):
    """The result of a request; one that does not fit is an anomaly and changes nothing."""

    agent: str
    success: bool
    output: object = None
    error: str = ""
    request_id: str = ""
    left_out: int = 0
    """How many bytes of output there are that are not kept, and not said here."""
    digest: str = ""
    """Of such a result, by `result_digest`."""
    fault: str = ""
    """What is wrong with the shape of the message, which is an anomaly for that."""
    attempt: int = 0
    """Which request of the intent it answers, from 1; 0: it does not say."""


class UpdateIntent(IntentCommand, frozen=True, tag="intent.update"):
    """Word from whoever works on a request: how far it is, in percent."""

    agent: str
    progress: float | None = None
    message: str = ""
    request_id: str = ""
    sequence: int = 0
    """Which piece of a result that comes in pieces, once for each; 0: it has none."""
    partial: object = None
    """That piece, where policy says that it is kept."""
    attempt: int = 0
    """Which request of the intent it is about, from 1; 0: it does not say."""


class CancelIntent(TaskCommand, frozen=True, tag="intent.cancel"):
    """Nobody is to reach this goal any more; `task` is `intent:ID`."""

    reason: str = ""

    @property
    def held(self) -> str:
        """It is no sign of life."""
        return ""


class ExpireRequest(IntentCommand, frozen=True, tag="intent.expire"):
    """End a request whose deadline has passed; nothing happens while it has not."""

    @property
    def held(self) -> str:
        """It is no sign of life."""
        return ""


class RewindTask(TaskCommand, frozen=True, tag="task.rewind"):
    """Make a task what it was at an earlier entry of its own, by a new one."""

    version: int
    """Of that entry, in the stream of the task."""
    commit: str = ""
    branch: str = ""
    reason: str = ""


class RecordTurn(Command, frozen=True, tag="turn.record"):
    """Keep what an agent thought, did and saw in one turn; a repeat changes nothing."""

    task: str
    turn_index: int
    agent: str
    """The part that it plays, by its own words."""
    confidence: float
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    adopt: bool = True
    """Whether a task that is unknown becomes one, in the hands of the sender."""
    review_required: bool = True
    max_attempts: int = DEFAULT_ATTEMPTS
    ttl_ms: int = DEFAULT_TTL_MS

    @property
    def held(self) -> str:
        """Whoever shows its turns is alive."""
        return self.task


class RecordTrace(Command, frozen=True, tag="trace.record"):
    """Keep something that happened while an agent worked; a repeat changes nothing."""

    event_id: str
    session: str
    kind: str
    """The type that its dialect knows it by."""
    envelope: dict[str, object]
    digest: str
    masked: bool = False
    task: str = ""
    """The task that it names; empty: the one that its session works on."""
    agent: str = ""
    """The part of whoever it is about, if it says so."""
    call: str = ""
    ends_call: bool = False
    turn: int | None = None
    is_final: bool = False
    commit: str = ""
    """What the repository has checked out, if it tells that a task moves and does not say so."""


class RequestTransition(TaskCommand, frozen=True, tag="task.transition"):
    """Move a task because an event of a trace says that it moved."""

    to: Status
    asked_by: str
    """The id of that event."""
    commit: str = ""
    session: str = ""
    adopt: bool = True
    review_required: bool = True
    max_attempts: int = DEFAULT_ATTEMPTS
    ttl_ms: int = DEFAULT_TTL_MS
    fence: int | None = None


class EscalateEntropy(TaskCommand, frozen=True, tag="entropy.escalate"):
    """Tell that the turns of a task look as if its agent is getting lost; once until it settles."""

    kind: str
    detail: str
    turns: tuple[int, ...]
    measured: float
    threshold: float

    @property
    def held(self) -> str:
        """Nobody shows by it that it is alive."""
        return ""


class SettleEntropy(TaskCommand, frozen=True, tag="entropy.settle"):
    """Tell that it is no longer so."""

    kind: str
    measured: float

    @property
    def held(self) -> str:
        """Nobody shows by it that it is alive."""
        return ""


AnyCommand = (
    CreateTask
    | AdoptTask
    | MoveTask
    | ClaimTask
    | RenewLease
    | ReleaseTask
    | CheckpointTask
    | ReportOutcome
    | EndAttempt
    | ExpireLease
    | LinkTask
    | AliasTask
    | NoteTask
    | UpdateTask
    | EditTask
    | WarnTask
    | RequestDelegation
    | AcceptDelegation
    | RejectDelegation
    | EscalateDelegation
    | RegisterAgent
    | KeyAgent
    | IssueToken
    | RevokeToken
    | PauseAgent
    | ResumeAgent
    | RejectMessage
    | PostMail
    | ReadMail
    | AckMail
    | AnswerMail
    | EscalateMail
    | DraftHandoff
    | ProposeHandoff
    | AcceptHandoff
    | RejectHandoff
    | DiscardDraft
    | WithdrawHandoff
    | ActivateHandoff
    | CompleteHandoff
    | CloseHandoff
    | ApproveHandoff
    | EscalateHandoff
    | ExtendHandoff
    | ReassignHandoff
    | NoteHandoff
    | AddWorkItem
    | ClaimWorkItem
    | ReleaseWorkItem
    | StartWave
    | AdvanceWave
    | ReserveFiles
    | RenewReservations
    | ReleaseReservations
    | DescribeAgent
    | DelegateIntent
    | ReceiveResult
    | UpdateIntent
    | ExpireRequest
    | CancelIntent
    | RewindTask
    | RecordTurn
    | RecordTrace
    | RequestTransition
    | EscalateEntropy
    | SettleEntropy
)


def command_name(command: AnyCommand) -> str:
    """The stable name of a command, as refusals record it."""
    return str(type(command).__struct_config__.tag)
