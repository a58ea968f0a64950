"""Whether the task of an intent may go to somebody by a handoff: its policy says (S-CCOS-4)."""

from dragoman.core.deciding.course import Course
from dragoman.core.limits import REASON
from dragoman.core.reading import Read
from dragoman.core.states.intent import intent_of
from dragoman.core.states.task import Task


def why_not_to(agent: str, task: Task, read: Read, now: int, package: object = ()) -> str:
    """Reason why the policy of the task's intent forbids this agent, given the package; empty: none
    (S-CCOS-4).
    """
    intent = intent_of(task, read.intent)
    if intent is None:
        return ""
    against = "; ".join(Course(intent, task, read, now).against(agent, package))
    return f"{agent} may not have the intent {intent.id}: {against}"[:REASON] if against else ""
