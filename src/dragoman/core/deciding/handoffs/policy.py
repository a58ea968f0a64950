"""Whether the task of an intent may go to somebody by a handoff: its policy says (S-CCOS-4)."""

from dragoman.core.deciding.course import IntentWorkflow
from dragoman.core.limits import MAX_REASON
from dragoman.core.reading import Read
from dragoman.core.states.intent import intent_of_task
from dragoman.core.states.task import Task


def policy_objection(agent: str, task: Task, read: Read, now: int, package: object = ()) -> str:
    """Reason why the policy of the task's intent forbids this agent, given the package; empty: none
    (S-CCOS-4).
    """
    intent = intent_of_task(task, read.intent)
    if intent is None:
        return ""
    against = "; ".join(IntentWorkflow(intent, task, read, now).policy_vetoes(agent, package))
    return f"{agent} may not have the intent {intent.id}: {against}"[:MAX_REASON] if against else ""
