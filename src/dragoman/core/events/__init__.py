"""What happened, in the past tense: the bodies of ledger entries.

Names and fields are promises: a stored entry is never rewritten, so a change of shape means a new
version and an upcaster in `ledger.codec`. Times inside are milliseconds since the epoch.
"""

from dragoman.core.events.agents import (
    AgentKeySet,
    AgentPaused,
    AgentRegistered,
    AgentResumed,
    CommandRefused,
    MessageReceived,
    TokenIssued,
    TokenRevoked,
)
from dragoman.core.events.base import Event
from dragoman.core.events.base import Importance as Importance
from dragoman.core.events.base import LinkKind as LinkKind
from dragoman.core.events.base import Outcome as Outcome
from dragoman.core.events.base import Priority as Priority
from dragoman.core.events.base import Role as Role
from dragoman.core.events.base import Status as Status
from dragoman.core.events.handoffs import (
    HandoffApproved,
    HandoffDiscarded,
    HandoffDrafted,
    HandoffEscalated,
    HandoffExtended,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
    TaskHandedOver,
    WorkItemAdded,
    WorkItemOwnerChanged,
)
from dragoman.core.events.handoffs import HandoffStatus as HandoffStatus
from dragoman.core.events.handoffs import RejectReason as RejectReason
from dragoman.core.events.handoffs import WorkItemStatus as WorkItemStatus
from dragoman.core.events.intents import (
    AgentAssigned,
    AgentDescribed,
    AgentRated,
    AgentRelieved,
    IntentAnomaly,
    IntentApproved,
    IntentCompleted,
    IntentCreated,
    IntentDispatched,
    IntentFeedbackApplied,
    IntentFollowedUp,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    IntentUpdated,
)
from dragoman.core.events.mail import (
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
    ReservationRenewed,
    ReservationsEnded,
    ReservationTaken,
    WaveBeadReleased,
    WaveCompleted,
    WaveStarted,
)
from dragoman.core.events.mail import WaveBead as WaveBead
from dragoman.core.events.tasks import (
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    TaskAliased,
    TaskBacklinked,
    TaskCheckpointed,
    TaskClaimed,
    TaskCreated,
    TaskEdited,
    TaskLinked,
    TaskNoted,
    TaskProgressed,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
    TaskWarned,
)
from dragoman.core.events.tasks import RestoredState as RestoredState
from dragoman.core.events.traces import (
    EntropyEscalated,
    EntropySettled,
    TraceAnomaly,
    TraceRecorded,
    TurnRecorded,
)

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
    | HandoffTransitioned
    | HandoffVerified
    | HandoffRejected
    | HandoffApproved
    | HandoffEscalated
    | HandoffExtended
    | HandoffNoted
)
WorkItemEvent = WorkItemAdded | WorkItemOwnerChanged
ActorEvent = CommandRefused | MessageReceived
AgentEvent = AgentRegistered | AgentKeySet | TokenIssued | TokenRevoked | AgentPaused | AgentResumed
MailEvent = MailPosted | MailRead | MailAcked | MailAnswered | MailEscalated
WaveEvent = WaveStarted | WaveBeadReleased | WaveCompleted
ReservationEvent = ReservationTaken | ReservationRenewed | ReservationsEnded
ReputationEvent = AgentDescribed | AgentAssigned | AgentRelieved | AgentRated
IntentEvent = (
    IntentCreated
    | IntentProposed
    | IntentApproved
    | IntentRejected
    | IntentDispatched
    | IntentUpdated
    | IntentCompleted
    | IntentFeedbackApplied
    | IntentSatisfied
    | IntentNeedsFollowUp
    | IntentSuperseded
    | IntentFollowedUp
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
    | ReputationEvent
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
    AgentKeySet: "agent.keyed",
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
    HandoffTransitioned: "handoff.moved",
    HandoffVerified: "handoff.verified",
    HandoffRejected: "handoff.rejected",
    HandoffApproved: "handoff.approved",
    HandoffEscalated: "handoff.escalated",
    HandoffExtended: "handoff.extended",
    HandoffNoted: "handoff.noted",
    WorkItemAdded: "workq.added",
    WorkItemOwnerChanged: "workq.passed",
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
    IntentFeedbackApplied: "intent.fed_back",
    IntentSatisfied: "intent.satisfied",
    IntentNeedsFollowUp: "intent.needs_follow_up",
    IntentSuperseded: "intent.superseded",
    IntentFollowedUp: "intent.followed",
    IntentAnomaly: "intent.anomaly",
    TaskRewound: "task.rewound",
    TurnRecorded: "turn.recorded",
    TraceRecorded: "trace.recorded",
    TraceAnomaly: "trace.anomaly",
    EntropyEscalated: "entropy.escalated",
    EntropySettled: "entropy.settled",
}
"""Stored name of each event. Names are ours and stable; class names may change."""
