"""All events in one table, and which of them change the status of a task.

Names and fields are promises: a stored entry is never rewritten, so a change of shape means a
new version and an upcaster in `ledger.codec`. Times inside are milliseconds since the epoch.
"""

from typing import Final

from dragoman.core.actor import CommandRefused, MessageReceived
from dragoman.core.agent import (
    AgentAssigned,
    AgentDescribed,
    AgentKeySet,
    AgentPaused,
    AgentRated,
    AgentRegistered,
    AgentRelieved,
    AgentResumed,
    TokenIssued,
    TokenRevoked,
)
from dragoman.core.attempt_state import (
    AttemptEscalated,
    AttemptQuiet,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
)
from dragoman.core.base import Event
from dragoman.core.check_state import TaskChecked
from dragoman.core.handoff.state import (
    HandoffApproved,
    HandoffEscalated,
    HandoffExtended,
    HandoffNoted,
    HandoffProposed,
    HandoffRejected,
    HandoffTransitioned,
    HandoffVerified,
)
from dragoman.core.intent.state import (
    IntentAnomaly,
    IntentApproved,
    IntentCompleted,
    IntentCreated,
    IntentDispatched,
    IntentFeedbackApplied,
    IntentNeedsFollowUp,
    IntentProposed,
    IntentRejected,
    IntentSatisfied,
    IntentSuperseded,
    IntentUpdated,
)
from dragoman.core.mail import (
    MailAcked,
    MailAnswered,
    MailEscalated,
    MailPosted,
    MailRead,
)
from dragoman.core.presence import PresenceReported
from dragoman.core.question_state import QuestionAnswered, QuestionAsked, QuestionWithdrawn
from dragoman.core.reservation import (
    ReservationRenewed,
    ReservationsEnded,
    ReservationTaken,
)
from dragoman.core.task_state import (
    STATUS_CHANGES,
    DelegationAccepted,
    DelegationEscalated,
    DelegationRejected,
    DelegationRequested,
    TaskAliased,
    TaskBacklinked,
    TaskCreated,
    TaskEdited,
    TaskHandedOver,
    TaskLinked,
    TaskNoted,
    TaskProgressed,
    TaskRewound,
    TaskTransitioned,
    TaskUnbacklinked,
    TaskUnblocked,
    TaskUnlinked,
    TaskWarned,
)
from dragoman.core.trace import (
    EntropyEscalated,
    EntropySettled,
    TraceAnomaly,
    TraceRecorded,
    TurnRecorded,
)
from dragoman.core.wave import WaveBeadReleased, WaveCompleted, WaveStarted
from dragoman.core.work_queue import WorkItemAdded, WorkItemOwnerChanged

EVENT_NAMES: dict[type[Event], str] = {
    TaskCreated: "task.created",
    TaskAliased: "task.aliased",
    TaskLinked: "task.linked",
    TaskBacklinked: "task.backlinked",
    TaskUnlinked: "task.unlinked",
    TaskUnbacklinked: "task.unbacklinked",
    TaskUnblocked: "task.unblocked",
    TaskClaimed: "task.claimed",
    TaskTransitioned: "task.transitioned",
    TaskRequeued: "task.requeued",
    TaskReported: "task.reported",
    AttemptQuiet: "attempt.quiet",
    AttemptEscalated: "attempt.escalated",
    TaskChecked: "task.checked",
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
    AgentKeySet: "agent.key_set",
    TokenIssued: "token.issued",
    TokenRevoked: "token.revoked",
    AgentPaused: "agent.paused",
    AgentResumed: "agent.resumed",
    PresenceReported: "agent.presence",
    TaskCheckpointed: "task.checkpointed",
    QuestionAsked: "question.asked",
    QuestionAnswered: "question.answered",
    QuestionWithdrawn: "question.withdrawn",
    MailPosted: "mail.posted",
    MailRead: "mail.read",
    MailAcked: "mail.acked",
    MailAnswered: "mail.answered",
    MailEscalated: "mail.escalated",
    TaskHandedOver: "task.handoff_changed",
    HandoffProposed: "handoff.proposed",
    HandoffTransitioned: "handoff.transitioned",
    HandoffVerified: "handoff.verified",
    HandoffRejected: "handoff.rejected",
    HandoffApproved: "handoff.approved",
    HandoffEscalated: "handoff.escalated",
    HandoffExtended: "handoff.extended",
    HandoffNoted: "handoff.noted",
    WorkItemAdded: "workq.added",
    WorkItemOwnerChanged: "workq.owner_changed",
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
    IntentFeedbackApplied: "intent.feedback_applied",
    IntentSatisfied: "intent.satisfied",
    IntentNeedsFollowUp: "intent.needs_follow_up",
    IntentSuperseded: "intent.superseded",
    IntentAnomaly: "intent.anomaly",
    TaskRewound: "task.rewound",
    TurnRecorded: "turn.recorded",
    TraceRecorded: "trace.recorded",
    TraceAnomaly: "trace.anomaly",
    EntropyEscalated: "entropy.escalated",
    EntropySettled: "entropy.settled",
}
"""Stored name of each event. Names are ours and stable; class names may change."""


# --- status changes ---------------------------------------------------------------------------

STATUS_CHANGE_NAMES: Final = frozenset(EVENT_NAMES[moved] for moved in STATUS_CHANGES)
