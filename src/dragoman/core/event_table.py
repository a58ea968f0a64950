"""All events in one table, and which of them change the status of a task.

Names and fields are promises: a stored entry is never rewritten, so a change of shape means a
new version and an upcaster in `ledger.codec`. Times inside are milliseconds since the epoch.
"""

from typing import Final

from dragoman.core import (
    actor,
    agent,
    attempt_state,
    check_state,
    mail,
    presence,
    question_state,
    reservation,
    task_state,
    trace,
    wave,
    work_queue,
)
from dragoman.core.base import Event
from dragoman.core.handoff import state as handoff_state
from dragoman.core.intent import state as intent_state

EVENT_NAMES: dict[type[Event], str] = {
    task_state.TaskCreated: "task.created",
    task_state.TaskAliased: "task.aliased",
    task_state.TaskLinked: "task.linked",
    task_state.TaskBacklinked: "task.backlinked",
    task_state.TaskUnlinked: "task.unlinked",
    task_state.TaskUnbacklinked: "task.unbacklinked",
    task_state.TaskUnblocked: "task.unblocked",
    attempt_state.TaskClaimed: "task.claimed",
    task_state.TaskTransitioned: "task.transitioned",
    attempt_state.TaskRequeued: "task.requeued",
    attempt_state.TaskReported: "task.reported",
    attempt_state.AttemptQuiet: "attempt.quiet",
    attempt_state.AttemptEscalated: "attempt.escalated",
    check_state.TaskChecked: "task.checked",
    task_state.TaskNoted: "task.noted",
    task_state.TaskProgressed: "task.progressed",
    task_state.TaskEdited: "task.edited",
    task_state.TaskWarned: "task.warned",
    task_state.DelegationRequested: "delegation.requested",
    task_state.DelegationAccepted: "delegation.accepted",
    task_state.DelegationRejected: "delegation.rejected",
    task_state.DelegationEscalated: "delegation.escalated",
    actor.CommandRefused: "command.refused",
    actor.MessageReceived: "message.received",
    agent.AgentRegistered: "agent.registered",
    agent.AgentKeySet: "agent.key_set",
    agent.TokenIssued: "token.issued",
    agent.TokenRevoked: "token.revoked",
    agent.AgentPaused: "agent.paused",
    agent.AgentResumed: "agent.resumed",
    presence.PresenceReported: "agent.presence",
    attempt_state.TaskCheckpointed: "task.checkpointed",
    question_state.QuestionAsked: "question.asked",
    question_state.QuestionAnswered: "question.answered",
    question_state.QuestionWithdrawn: "question.withdrawn",
    mail.MailPosted: "mail.posted",
    mail.MailRead: "mail.read",
    mail.MailAcked: "mail.acked",
    mail.MailAnswered: "mail.answered",
    mail.MailEscalated: "mail.escalated",
    task_state.TaskHandedOver: "task.handoff_changed",
    handoff_state.HandoffProposed: "handoff.proposed",
    handoff_state.HandoffTransitioned: "handoff.transitioned",
    handoff_state.HandoffVerified: "handoff.verified",
    handoff_state.HandoffRejected: "handoff.rejected",
    handoff_state.HandoffApproved: "handoff.approved",
    handoff_state.HandoffEscalated: "handoff.escalated",
    handoff_state.HandoffExtended: "handoff.extended",
    handoff_state.HandoffNoted: "handoff.noted",
    work_queue.WorkItemAdded: "workq.added",
    work_queue.WorkItemOwnerChanged: "workq.owner_changed",
    wave.WaveStarted: "wave.started",
    wave.WaveBeadReleased: "wave.bead_released",
    wave.WaveCompleted: "wave.completed",
    reservation.ReservationTaken: "reservation.taken",
    reservation.ReservationRenewed: "reservation.renewed",
    reservation.ReservationsEnded: "reservation.ended",
    agent.AgentDescribed: "agent.described",
    agent.AgentAssigned: "agent.assigned",
    agent.AgentRelieved: "agent.relieved",
    agent.AgentRated: "agent.rated",
    intent_state.IntentCreated: "intent.created",
    intent_state.IntentProposed: "intent.proposed",
    intent_state.IntentApproved: "intent.approved",
    intent_state.IntentRejected: "intent.rejected",
    intent_state.IntentDispatched: "intent.dispatched",
    intent_state.IntentUpdated: "intent.updated",
    intent_state.IntentCompleted: "intent.completed",
    intent_state.IntentFeedbackApplied: "intent.feedback_applied",
    intent_state.IntentSatisfied: "intent.satisfied",
    intent_state.IntentNeedsFollowUp: "intent.needs_follow_up",
    intent_state.IntentSuperseded: "intent.superseded",
    intent_state.IntentAnomaly: "intent.anomaly",
    task_state.TaskRewound: "task.rewound",
    trace.TurnRecorded: "turn.recorded",
    trace.TraceRecorded: "trace.recorded",
    trace.TraceAnomaly: "trace.anomaly",
    trace.EntropyEscalated: "entropy.escalated",
    trace.EntropySettled: "entropy.settled",
}
"""Stored name of each event. Names are ours and stable; class names may change."""


# --- status changes ---------------------------------------------------------------------------

STATUS_CHANGE_NAMES: Final = frozenset(EVENT_NAMES[moved] for moved in task_state.STATUS_CHANGES)
