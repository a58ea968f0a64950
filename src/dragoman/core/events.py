"""What happened, in the past tense: the bodies of ledger entries.

Names and fields are promises: a stored entry is never rewritten, so a change of shape means a new
version and an upcaster in `ledger.codec`. Times inside are milliseconds since the epoch.
"""

from typing import Literal

from msgspec import Struct

from dragoman.core.offers import Candidate, Parts, Policy, Trust

Status = Literal[
    "backlog", "ready", "in-progress", "blocked", "review", "done", "deadletter", "cancelled"
]
Priority = Literal["critical", "high", "normal", "low"]
LinkKind = Literal["blocked-by", "parent", "discovered-from"]
Outcome = Literal["done", "blocked", "needs_review", "partial", "failed"]
Importance = Literal["low", "normal", "high", "urgent"]
Role = Literal[
    "agent",
    "orchestrator",
    "coordinator",
    "human",
    "observer",
    "file",
    "trusted-file",
    "system",
]


class Event(Struct, frozen=True, omit_defaults=True, rename={"from_": "from"}):
    """One fact about one stream."""


class TaskCreated(Event, frozen=True):
    """A task began its life, in the status it was born with."""

    id: str
    aof_id: str
    title: str
    status: Status
    body: str = ""
    priority: Priority = "normal"
    review_required: bool = True
    max_attempts: int = 5
    reserved_for: str = ""
    origin: str = ""
    aliases: tuple[str, ...] = ()
    parent: str = ""
    blocked_by: tuple[str, ...] = ()
    open_blockers: tuple[str, ...] = ()
    discovered_from: str = ""


class TaskAliased(Event, frozen=True):
    """The task got one more name, KIND:NAME."""

    alias: str


class TaskLinked(Event, frozen=True):
    """The task points at another one; an open blocker keeps it out of the ready queue."""

    kind: LinkKind
    target: str
    open: bool = False


class TaskBacklinked(Event, frozen=True):
    """Another task points at this one."""

    kind: LinkKind
    source: str


class TaskUnblocked(Event, frozen=True):
    """A blocker of this task ended."""

    blocker: str
    status: Status


class TaskClaimed(Event, frozen=True):
    """An attempt began: the task went in-progress with an agent, under a fencing token."""

    from_: Status
    attempt: int
    fence: int
    agent: str
    ttl_ms: int
    session: str = ""
    dispatched_by: str = ""
    """The orchestrator that claimed it for the agent; empty: another did, or the agent itself."""
    commit: str = ""
    """What the repository had checked out then, where one is configured."""
    asked_by: str = ""
    """The event of a trace that asked for it, if one did: it is told by that one."""


class TaskTransitioned(Event, frozen=True):
    """The status changed, other than by a claim."""

    from_: Status
    to: Status
    reason: str = ""
    commit: str = ""
    """What the repository had checked out then, where one is configured."""
    asked_by: str = ""
    """The event of a trace that asked for it, if one did: it is told by that one."""


class TaskRequeued(Event, frozen=True):
    """An attempt failed or vanished; the task is ready again, not before its backoff."""

    attempt: int
    reason: str
    failures: int
    not_before: int
    commit: str = ""
    """What the repository had checked out then, where one is configured."""
    asked_by: str = ""
    """The event of a trace that asked for it, if one did: it is told by that one."""


class TaskReported(Event, frozen=True):
    """An attempt's agent said how it ended; `details` are the dialect's own fields."""

    attempt: int
    agent: str
    outcome: Outcome
    notes: str = ""
    blockers: tuple[str, ...] = ()
    details: dict[str, object] = {}


class TaskNoted(Event, frozen=True):
    """A line of the task's work log."""

    text: str


class TaskProgressed(Event, frozen=True):
    """Word from whoever works on the task: a line of its work log, as a status update says it."""

    progress: str = ""
    notes: str = ""
    blockers: tuple[str, ...] = ()
    sent_at: int | None = None
    """When the sender says that it wrote this; None: it did not say."""


class TaskEdited(Event, frozen=True):
    """Fields of the task got new values; None: unchanged."""

    title: str | None = None
    body: str | None = None
    priority: Priority | None = None
    review_required: bool | None = None
    reserved_for: str | None = None
    """Whose it is to take from now on; empty: anyone's."""


class TaskWarned(Event, frozen=True):
    """Something about a message was odd, and was no reason to refuse it."""

    reason: str
    detail: str = ""


class DelegationRequested(Event, frozen=True):
    """The holder of a parent task asked an agent to take this one; it replaces an earlier ask."""

    parent: str
    from_agent: str
    to_agent: str
    due_by: int
    depth: int
    """How many hands the work has been passed on through, this one included."""
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    constraints: tuple[str, ...] = ()


class DelegationAccepted(Event, frozen=True):
    """The agent that was asked has said yes."""

    agent: str


class DelegationRejected(Event, frozen=True):
    """The agent that was asked has said no."""

    agent: str
    reason: str = ""


class DelegationEscalated(Event, frozen=True):
    """The deadline of a delegation passed before its task had ended."""

    due_by: int


class CommandRefused(Event, frozen=True):
    """A command was refused; recorded with the actor, never with the target."""

    command: str
    target: str
    code: str
    detail: str
    kind: str = ""
    """What the sender called its message, where that never became a command."""
    words: str = ""
    """A digest of such a message: other words are another refusal, in the same sentence or not."""


class MessageReceived(Event, frozen=True):
    """A message was understood and changed nothing; recorded with the actor, not with a task."""

    dialect: str
    kind: str
    target: str = ""


class AgentRegistered(Event, frozen=True):
    """An agent or a person is known by this name, in this role, and speaks these dialects."""

    name: str
    role: Role
    speaks: tuple[str, ...] = ()
    plays: str = ""
    """The part that it plays in traces, where that is not its name; empty: none other."""


class AgentKeyed(Event, frozen=True):
    """The agent signs with the key whose public half this is; empty: with none from now on."""

    key: str
    """Ed25519, 32 bytes in base64url."""


class TokenIssued(Event, frozen=True):
    """A token speaks for the agent until it ends or is revoked; only its digest is kept."""

    id: str
    digest: str
    expires_at: int


class TokenRevoked(Event, frozen=True):
    """A token no longer speaks for the agent."""

    id: str = ""
    """Empty: none of those that were given out so far does, those of attempts included."""


class AgentPaused(Event, frozen=True):
    """The hub starts nothing for the agent, until a time if there is one, or until it resumes."""

    reason: str
    until: int | None = None


class AgentResumed(Event, frozen=True):
    """The agent is started again."""


class TaskCheckpointed(Event, frozen=True):
    """Whoever worked on the task left what its successor needs."""

    reason: str
    commit: str = ""
    description: str = ""
    next_steps: str = ""
    by: str = ""
    """Who said so while nobody worked on the task; empty: whoever worked on it."""


class MailPosted(Event, frozen=True):
    """A letter was handed in; it lies in the box of every recipient from now on."""

    id: str
    sender: str
    to: tuple[str, ...]
    thread: str
    kind: str
    subject: str
    body: str
    cc: tuple[str, ...] = ()
    copied: tuple[str, ...] = ()
    """Who gets it because of what it is, though its sender did not name them."""
    unknown: tuple[str, ...] = ()
    """Those of its recipients whom nobody has made known yet."""
    bead: str = ""
    reply_to: str = ""
    importance: Importance = "normal"
    ack_wanted: bool = False
    answer_wanted: bool = False
    due_by: int | None = None
    """When an ack or an answer that is still missing is told as late."""
    attachments: tuple[str, ...] = ()
    sent_at: int | None = None
    """When its sender says that it was written."""


class MailRead(Event, frozen=True):
    """A recipient has read the letter."""

    mail: str
    reader: str


class MailAcked(Event, frozen=True):
    """A recipient has said that it took notice."""

    mail: str
    agent: str


class MailAnswered(Event, frozen=True):
    """Another letter is the answer that this one waited for."""

    mail: str
    by: str
    answer: str


class MailEscalated(Event, frozen=True):
    """An ack or an answer did not come in time."""

    mail: str
    waiting_for: tuple[str, ...]
    told: tuple[str, ...] = ()
    """Who got a letter about it."""
    task: str = ""
    """The task that it is about, if there is one."""


class WaveBead(Struct, frozen=True, omit_defaults=True):
    """One of the tasks of a wave, and the files that whoever works on it will write."""

    task: str
    files: tuple[str, ...] = ()


class WaveStarted(Event, frozen=True):
    """Tasks are run together, at most so many at a time."""

    id: str
    beads: tuple[WaveBead, ...]
    parallel: int
    told: str
    """Who gets the closing report."""
    retries: dict[str, int] = {}
    """Type of failure -> how often a bead may fail with it and be tried again."""


class WaveBeadReleased(Event, frozen=True):
    """A task of the wave may begin."""

    wave: str
    task: str


class WaveCompleted(Event, frozen=True):
    """All tasks of the wave have ended; so many in each status."""

    wave: str
    counts: dict[str, int]


class ReservationTaken(Event, frozen=True):
    """Files are in somebody's hands, or in those of whoever works on a bead."""

    id: str
    patterns: tuple[str, ...]
    holder: str = ""
    until: int | None = None
    exclusive: bool = True
    task: str = ""
    wave: str = ""
    reason: str = ""
    fence: int = 0
    """Of the attempt on its task that it was taken in; 0 without one."""


class ReservationRenewed(Event, frozen=True):
    """A reservation lasts until a later time."""

    id: str
    until: int


class ReservationsEnded(Event, frozen=True):
    """Reservations stop nobody any more: given back, or over by themselves."""

    ids: tuple[str, ...]
    why: Literal["released", "over"]


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
    """A coordinator was told that something about the handoff does not go on."""

    trigger: str
    stage: str
    to: str
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


class AgentDescribed(Event, frozen=True):
    """What an agent can do, on which terms; it replaces what was said before."""

    name: str
    skills: tuple[str, ...]
    constraints: tuple[str, ...] = ()
    locality: tuple[str, ...] = ()
    """Where it works on data."""
    trust: Trust = "T0"
    cost: float = 0.0
    latency_ms: int = 0
    capacity: int = 0
    reach: str = ""
    """How it is reached: the queue, a program, a URL."""


class AgentAssigned(Event, frozen=True):
    """An agent was given a request."""

    name: str
    intent: str
    request_id: str


class AgentRelieved(Event, frozen=True):
    """A request is no longer an agent's, through no doing of its own: nothing is learned."""

    name: str
    intent: str
    request_id: str


class AgentRated(Event, frozen=True):
    """How an agent fared with a request: it counts when the next one is given out."""

    name: str
    intent: str
    request_id: str
    success: bool
    duration_ms: int


class IntentCreated(Event, frozen=True):
    """A goal is to be delegated, under rules that stay with it."""

    id: str
    task: str
    goal: str
    by: str
    params: dict[str, object] = {}
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    patience_ms: int = 0
    """How long each request of it may take; 0: as long as it likes."""
    plan: str = ""
    follows: str = ""
    """The intent that it follows up."""
    tries: int = 3
    """How many requests may be made of it before it is given up."""
    policy: Policy = Policy()


class IntentProposed(Event, frozen=True):
    """An agent is the next candidate."""

    intent: str
    agent: str
    score: float
    parts: Parts
    threshold: float
    candidates: tuple[Candidate, ...] = ()
    """All who come into question, the best first; on the first proposal after they were ranked."""
    policy: Policy | None = None
    """The rules from now on, where they are others than before."""
    patience_ms: int | None = None
    """How long a request may take from now on, where that is another time than before."""
    tries: int = 0
    """How many may be asked from now on, where that are other numbers than before; else 0."""


class IntentApproved(Event, frozen=True):
    """Governance has nothing against this agent."""

    intent: str
    agent: str
    checks: tuple[str, ...]
    """The rules that it has passed."""


class IntentRejected(Event, frozen=True):
    """Governance says no: to an agent, or to all of them."""

    intent: str
    reasons: tuple[str, ...]
    agent: str = ""
    """Empty: nobody is left who may be given it."""


class IntentDispatched(Event, frozen=True):
    """A request is open with an agent, which owns the task from now on."""

    intent: str
    request_id: str
    agent: str
    number: int
    after: int
    """How many attempts the task had seen before: only a later one's report answers it."""
    deadline: int | None = None


class IntentUpdated(Event, frozen=True):
    """Word from whoever works on a request."""

    intent: str
    request_id: str
    agent: str
    progress: float | None = None
    message: str = ""
    sequence: int = 0
    """Which piece of a result that comes in pieces."""
    partial: object = None


class IntentCompleted(Event, frozen=True):
    """A request has come to its end."""

    intent: str
    request_id: str
    agent: str
    success: bool
    duration_ms: int
    error: str = ""
    """Its beginning, if it is long."""
    synthetic: str = ""
    """Why the hub itself ended it: no result has come."""
    digest: str = ""
    """Of the result: tells a repeat from another one."""
    output: object = None
    """Where policy says that it is kept."""
    left_out: int = 0
    """So many bytes of output were not kept."""


class IntentFedBack(Event, frozen=True):
    """What came of a request was counted for its agent, in the same breath."""

    intent: str
    request_id: str
    agent: str
    success: bool
    successes: int
    failures: int


class IntentSatisfied(Event, frozen=True):
    """The task is done."""

    intent: str


class IntentNeedsFollowUp(Event, frozen=True):
    """It has come to nothing by itself: somebody has to see to it."""

    intent: str
    reason: str


class IntentSuperseded(Event, frozen=True):
    """The task has another owner: the request of the former one is void."""

    intent: str
    request_id: str
    agent: str
    owner: str = ""


class IntentFollowed(Event, frozen=True):
    """Another intent follows this one up."""

    intent: str
    by: str


class IntentAnomaly(Event, frozen=True):
    """Somebody said something about the intent that does not fit: it changed nothing."""

    intent: str
    reason: str
    agent: str = ""
    request_id: str = ""


class Restored(Struct, frozen=True, omit_defaults=True):
    """How a task stood at one of its transitions: all of it that a rewind brings back."""

    status: Status
    title: str
    body: str = ""
    priority: Priority = "normal"
    review_required: bool = True
    reserved_for: str = ""
    assignee: str = ""
    failures: int = 0
    report: TaskReported | None = None
    reported_at: int = 0
    checkpoint: TaskCheckpointed | None = None
    checkpointed_at: int = 0


class TaskRewound(Event, frozen=True):
    """The task is again as it was at an earlier entry of its own; what came since stays on record.

    Work that was under way then is ready, because whoever did it does so no longer.
    """

    from_: Status
    to: Status
    version: int
    """Of that entry, in the stream of the task."""
    restored: Restored
    commit: str = ""
    """The commit that goes with it: the one of then, if that is known."""
    branch: str = ""
    """The branch on which the files of then are, if one was made."""
    reason: str = ""


# Turns and traces


class TurnRecorded(Event, frozen=True):
    """An agent has shown what it thought, did and saw in one turn of its work."""

    task: str
    attempt: int
    turn_index: int
    agent: str
    """The part that it plays."""
    confidence: float
    envelope: dict[str, object]
    """All of it, in the form of its dialect, less secrets."""
    digest: str
    """Keyed, of the words as they came: by it a repeat is told from another turn."""
    masked: bool = False


class TraceRecorded(Event, frozen=True):
    """Something happened while an agent worked: a thought, a call of a tool, a terminal line."""

    event_id: str
    session: str
    type: str
    envelope: dict[str, object]
    digest: str
    task: str = ""
    """Empty: the session works on none that is known."""
    attempt: int = 0
    agent: str = ""
    masked: bool = False
    call: str = ""
    """The call of a tool that begins or ends with it."""
    ends_call: bool = False
    turn: int | None = None
    """The turn whose thought it is a part of."""
    is_final: bool = False
    commit: str = ""
    """What the repository had checked out, of a task that moved, where the words do not say it."""
    by: str = ""
    """Who sent it: calls and thoughts are told apart by that."""


class TraceAnomaly(Event, frozen=True):
    """What was recorded does not fit what came before it."""

    kind: str
    event_id: str
    session: str
    detail: str
    task: str = ""


class EntropyEscalated(Event, frozen=True):
    """The turns of a task look as if its agent is getting lost; somebody should look."""

    task: str
    kind: str
    detail: str
    attempt: int
    turns: tuple[int, ...]
    """The evidence: turns by their index."""
    measured: float
    threshold: float


class EntropySettled(Event, frozen=True):
    """What was told about the turns of a task is no longer so."""

    task: str
    kind: str
    measured: float


TaskEvent = (
    TaskCreated
    | TaskAliased
    | TaskLinked
    | TaskBacklinked
    | TaskUnblocked
    | TaskClaimed
    | TaskTransitioned
    | TaskRequeued
    | TaskReported
    | TaskNoted
    | TaskProgressed
    | TaskEdited
    | TaskWarned
    | DelegationRequested
    | DelegationAccepted
    | DelegationRejected
    | DelegationEscalated
    | TaskCheckpointed
    | TaskHandedOver
    | TaskRewound
)
HandoffEvent = (
    HandoffDrafted
    | HandoffDiscarded
    | HandoffProposed
    | HandoffMoved
    | HandoffVerified
    | HandoffRejected
    | HandoffApproved
    | HandoffEscalated
    | HandoffExtended
    | HandoffNoted
)
WorkItemEvent = WorkItemAdded | WorkItemPassed
ActorEvent = CommandRefused | MessageReceived
AgentEvent = AgentRegistered | AgentKeyed | TokenIssued | TokenRevoked | AgentPaused | AgentResumed
MailEvent = MailPosted | MailRead | MailAcked | MailAnswered | MailEscalated
WaveEvent = WaveStarted | WaveBeadReleased | WaveCompleted
ReservationEvent = ReservationTaken | ReservationRenewed | ReservationsEnded
StandingEvent = AgentDescribed | AgentAssigned | AgentRelieved | AgentRated
IntentEvent = (
    IntentCreated
    | IntentProposed
    | IntentApproved
    | IntentRejected
    | IntentDispatched
    | IntentUpdated
    | IntentCompleted
    | IntentFedBack
    | IntentSatisfied
    | IntentNeedsFollowUp
    | IntentSuperseded
    | IntentFollowed
    | IntentAnomaly
)
TraceEvent = TraceRecorded | TraceAnomaly
TurnEvent = TurnRecorded | EntropyEscalated | EntropySettled
AnyEvent = (
    TaskEvent
    | ActorEvent
    | AgentEvent
    | MailEvent
    | HandoffEvent
    | WorkItemEvent
    | WaveEvent
    | ReservationEvent
    | StandingEvent
    | IntentEvent
    | TraceEvent
    | TurnEvent
)

EVENT_NAMES: dict[type[Event], str] = {
    TaskCreated: "task.created",
    TaskAliased: "task.aliased",
    TaskLinked: "task.linked",
    TaskBacklinked: "task.backlinked",
    TaskUnblocked: "task.unblocked",
    TaskClaimed: "task.claimed",
    TaskTransitioned: "task.transitioned",
    TaskRequeued: "task.requeued",
    TaskReported: "task.reported",
    TaskNoted: "task.noted",
    TaskProgressed: "task.progressed",
    TaskEdited: "task.edited",
    TaskWarned: "task.warned",
    DelegationRequested: "delegation.requested",
    DelegationAccepted: "delegation.accepted",
    DelegationRejected: "delegation.rejected",
    DelegationEscalated: "delegation.escalated",
    CommandRefused: "command.refused",
    MessageReceived: "message.received",
    AgentRegistered: "agent.registered",
    AgentKeyed: "agent.keyed",
    TokenIssued: "token.issued",
    TokenRevoked: "token.revoked",
    AgentPaused: "agent.paused",
    AgentResumed: "agent.resumed",
    TaskCheckpointed: "task.checkpointed",
    MailPosted: "mail.posted",
    MailRead: "mail.read",
    MailAcked: "mail.acked",
    MailAnswered: "mail.answered",
    MailEscalated: "mail.escalated",
    TaskHandedOver: "task.handed_over",
    HandoffDrafted: "handoff.drafted",
    HandoffDiscarded: "handoff.discarded",
    HandoffProposed: "handoff.proposed",
    HandoffMoved: "handoff.moved",
    HandoffVerified: "handoff.verified",
    HandoffRejected: "handoff.rejected",
    HandoffApproved: "handoff.approved",
    HandoffEscalated: "handoff.escalated",
    HandoffExtended: "handoff.extended",
    HandoffNoted: "handoff.noted",
    WorkItemAdded: "workq.added",
    WorkItemPassed: "workq.passed",
    WaveStarted: "wave.started",
    WaveBeadReleased: "wave.bead_released",
    WaveCompleted: "wave.completed",
    ReservationTaken: "reservation.taken",
    ReservationRenewed: "reservation.renewed",
    ReservationsEnded: "reservation.ended",
    AgentDescribed: "agent.described",
    AgentAssigned: "agent.assigned",
    AgentRelieved: "agent.relieved",
    AgentRated: "agent.rated",
    IntentCreated: "intent.created",
    IntentProposed: "intent.proposed",
    IntentApproved: "intent.approved",
    IntentRejected: "intent.rejected",
    IntentDispatched: "intent.dispatched",
    IntentUpdated: "intent.updated",
    IntentCompleted: "intent.completed",
    IntentFedBack: "intent.fed_back",
    IntentSatisfied: "intent.satisfied",
    IntentNeedsFollowUp: "intent.needs_follow_up",
    IntentSuperseded: "intent.superseded",
    IntentFollowed: "intent.followed",
    IntentAnomaly: "intent.anomaly",
    TaskRewound: "task.rewound",
    TurnRecorded: "turn.recorded",
    TraceRecorded: "trace.recorded",
    TraceAnomaly: "trace.anomaly",
    EntropyEscalated: "entropy.escalated",
    EntropySettled: "entropy.settled",
}
"""The name under which each event is stored. We own these names; class names may change."""
