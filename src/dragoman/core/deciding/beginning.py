"""Whether whoever takes what comes next may begin with a task that belongs to an intent."""

from dragoman.core.deciding.course import Course, is_late
from dragoman.core.reading import Read
from dragoman.core.states.intent import intent_of
from dragoman.core.states.task import Task


def may_begin(task: Task, agent: str, read: Read, now: int) -> bool:
    """Not where governance keeps it from the agent, nor with what has to be ended first.

    Whoever names such a task is told why not; who takes what comes is given the one behind it.
    """
    intent = intent_of(task, read.intent)
    if intent is None:
        return True
    if intent.request is not None:
        return not is_late(task, intent.request, now)
    course = Course(intent, task, read, now)
    return not course.why_not(course.candidate(agent))
