"""Expected transitions and the actors that may make them, by hand from S-TASK and S-ROLE."""

from dragoman.core.base import Status
from dragoman.core.intent.state import IntentState

# S-TASK: one line for each status, one letter for each kind of actor that may make the change.
#
#   h human, o orchestrator, s the hub itself, c coordinator, f an edited file, t a trusted one,
#   H the holder, a the assignee, n the assignee where no review is needed
#
# A pair that is missing is no transition. In-progress is entered only by a claim.
EXPECTED_TRANSITIONS: dict[Status, dict[Status, str]] = {
    "backlog": {"ready": "hoscft", "blocked": "hoscft", "cancelled": "hosc"},
    "ready": {
        "in-progress": "",
        "blocked": "hoscftan",
        "backlog": "hoscft",
        "deadletter": "hosc",
        "cancelled": "hosc",
    },
    "in-progress": {
        "review": "hoscH",
        "ready": "hoscH",
        "blocked": "hoscH",
        "deadletter": "hosc",
        "cancelled": "hosc",
    },
    "blocked": {
        "ready": "hoscftan",
        "review": "hoscan",
        "deadletter": "hosc",
        "cancelled": "hosc",
    },
    "review": {
        "done": "hosnt",
        "in-progress": "",
        "ready": "hosct",
        "blocked": "hosc",
        "cancelled": "hosc",
    },
    "deadletter": {"ready": "hosc"},
    "done": {},
    "cancelled": {},
}

# S-CCOS-4: New -> DelegationProposed -> DelegationApproved | DelegationRejected -> TaskDispatched
# -> TaskCompleted -> FeedbackApplied -> Satisfied | NeedsFollowUp.
INTENT_LIFE: dict[IntentState, set[IntentState]] = {
    "New": {"DelegationProposed"},
    "DelegationProposed": {"DelegationApproved", "DelegationRejected"},
    "DelegationApproved": {"TaskDispatched"},
    "TaskDispatched": {"TaskCompleted"},
    "TaskCompleted": {"FeedbackApplied"},
    "FeedbackApplied": {"Satisfied", "NeedsFollowUp"},
}

# Beyond it, with the reason.
INTENT_DETOURS: dict[tuple[IntentState, IntentState], str] = {
    ("New", "DelegationRejected"): "nobody is eligible, or the goal is forbidden",
    ("DelegationRejected", "DelegationProposed"): "the next candidate, or a new start",
    ("DelegationRejected", "Satisfied"): "somebody has brought its task to done",
    ("DelegationRejected", "NeedsFollowUp"): "nobody is left after a failure, or it is cancelled",
    ("TaskDispatched", "DelegationProposed"): "its task has another owner",
    ("TaskDispatched", "DelegationRejected"): "its texts have come to be forbidden",
    ("TaskDispatched", "Satisfied"): "a rewind leads to done",
    ("TaskDispatched", "NeedsFollowUp"): "its task has no owner, or waits for others",
    # What an agent has delegated to itself, or a person has ended, gets no feedback.
    ("TaskCompleted", "DelegationProposed"): "the next candidate",
    ("TaskCompleted", "DelegationRejected"): "no other candidate may have the goal any more",
    ("TaskCompleted", "TaskDispatched"): "a reviewer has sent the work back",
    ("TaskCompleted", "Satisfied"): "its task is done",
    ("TaskCompleted", "NeedsFollowUp"): "it is cancelled, without feedback",
    ("FeedbackApplied", "DelegationProposed"): "the next candidate after a failure",
    ("FeedbackApplied", "DelegationRejected"): "no other candidate may have the goal any more",
    ("FeedbackApplied", "TaskDispatched"): "a reviewer has sent the work back",
    ("Satisfied", "DelegationProposed"): "a rewind leads to an owner",
    ("Satisfied", "NeedsFollowUp"): "a rewind leads to nobody",
    ("NeedsFollowUp", "DelegationProposed"): "a new start",
    ("NeedsFollowUp", "DelegationRejected"): "a new start that nobody is eligible for",
    ("NeedsFollowUp", "Satisfied"): "somebody has brought its task to done",
}
