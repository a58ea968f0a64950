"""What happened, in the past tense: the bodies of ledger entries.

Names and fields are promises: a stored entry is never rewritten, so a change of shape means a new
version and an upcaster in `ledger.codec`. Times inside are milliseconds since the epoch.
"""

from typing import Literal

from msgspec import Struct

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
    | TaskRewound
)
ActorEvent = CommandRefused | MessageReceived
AgentEvent = AgentRegistered | AgentKeyed | TokenIssued | TokenRevoked | AgentPaused | AgentResumed
MailEvent = MailPosted | MailRead | MailAcked | MailAnswered | MailEscalated
WaveEvent = WaveStarted | WaveBeadReleased | WaveCompleted
ReservationEvent = ReservationTaken | ReservationRenewed | ReservationsEnded
TraceEvent = TraceRecorded | TraceAnomaly
TurnEvent = TurnRecorded | EntropyEscalated | EntropySettled
AnyEvent = (
    TaskEvent
    | ActorEvent
    | AgentEvent
    | MailEvent
    | WaveEvent
    | ReservationEvent
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
    WaveStarted: "wave.started",
    WaveBeadReleased: "wave.bead_released",
    WaveCompleted: "wave.completed",
    ReservationTaken: "reservation.taken",
    ReservationRenewed: "reservation.renewed",
    ReservationsEnded: "reservation.ended",
    TaskRewound: "task.rewound",
    TurnRecorded: "turn.recorded",
    TraceRecorded: "trace.recorded",
    TraceAnomaly: "trace.anomaly",
    EntropyEscalated: "entropy.escalated",
    EntropySettled: "entropy.settled",
}
"""The name under which each event is stored. We own these names; class names may change."""
