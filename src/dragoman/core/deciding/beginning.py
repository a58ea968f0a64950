"""Whether whoever takes what comes next may begin with a task that belongs to an intent."""

from dragoman.core.deciding.course import IntentWorkflow, is_request_overdue
from dragoman.core.reading import Read
from dragoman.core.states.intent import intent_of_task
from dragoman.core.states.task import Task


def may_claim(task: Task, agent: str, read: Read, now: int) -> bool:
    """Return whether an agent that claims the next ready task may get this one.

    It may not if governance vetoes it for the task's intent, or if an overdue request must be ended
    first. A claim that names such a task is refused with the reason; a claim of the next task skips
    it.
    """
    intent = intent_of_task(task, read.intent)
    if intent is None:
        return True
    if intent.request is not None:
        return not is_request_overdue(task, intent.request, now)
    workflow = IntentWorkflow(intent, task, read, now)
    return not workflow.assignment_vetoes(workflow.score_candidate(agent))
