"""Decider of what is not wanted any more: an intent is taken back by whoever may."""

from dragoman.core import missing
from dragoman.core.actors import Actor
from dragoman.core.authority import MAY_DELEGATE
from dragoman.core.commands import CancelIntent
from dragoman.core.deciding.tasks.lifecycle import transition_events
from dragoman.core.errors import Refusal
from dragoman.core.ids import intent_stream
from dragoman.core.limits import MAX_REASON, check_text
from dragoman.core.reading import Decision, LeaseChange, Read, Receipt
from dragoman.core.states.intent import Intent, intent_of_task
from dragoman.core.states.task import Task, can_transition


def decide_cancel(command: CancelIntent, read: Read, now: int) -> Decision | Refusal:
    """Cancel the intent's task; its open request ends without counting for or against the agent."""
    del now
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    intent = intent_of_task(task, read.intent)
    if intent is None:
        return missing.intent_of(task.id)
    refusal = check_text("reason", command.reason, MAX_REASON) or _check_may_cancel(
        intent, read.actor
    )
    if refusal:
        return refusal
    receipt = Receipt(
        task.id, "cancelled", task.attempts, task.fence, stream=intent_stream(intent.id)
    )
    if task.status == "cancelled":
        return Decision(receipt)
    if not can_transition(task.status, "cancelled"):
        return _not_cancellable_refusal(intent, task)
    return Decision(
        receipt,
        transition_events(task, "cancelled", command.reason, read),
        LeaseChange(task.id, None) if task.status == "in-progress" else None,
    )


def _check_may_cancel(intent: Intent, actor: Actor) -> Refusal | None:
    if actor.role in MAY_DELEGATE or actor.label == f"agent:{intent.by}":
        return None
    return Refusal(
        "not_authorized",
        f"{actor.label} may not cancel {intent.id}: that is up to {intent.by}, who delegated it, a "
        "person, an orchestrator or a coordinator",
    )


def _not_cancellable_refusal(intent: Intent, task: Task) -> Refusal:
    return Refusal(
        "invalid_transition",
        f"{intent.id} is {intent.state} and its task is {task.status}: there is nothing left to "
        "cancel",
    )
