"""What other dialects do to the task of an intent is followed by the intent, in the same breath."""

from typing import Final

from msgspec.structs import replace

from dragoman.core.course import GIVEN_UP, Course, Ending, task_after
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    AnyEvent,
    TaskClaimed,
    TaskEdited,
    TaskRequeued,
    TaskTransitioned,
)
from dragoman.core.ids import task_stream
from dragoman.core.intent import OpenRequest, intent_of
from dragoman.core.reading import Decision, Read
from dragoman.core.results import UNDER_WAY
from dragoman.core.task import Task

_MOVING: Final[frozenset[type[AnyEvent]]] = frozenset(
    {TaskClaimed, TaskEdited, TaskRequeued, TaskTransitioned}
)
_FAILURES: Final = ("failed", "blocked")


def followed(decision: Decision, read: Read, now: int) -> Decision:
    """The decision, and what becomes of the intents whose tasks it moves."""
    moved = dict.fromkeys(stream for stream, event in decision.events if type(event) in _MOVING)
    for stream in moved:
        course = _course(stream, decision, read, now)
        if course is None:
            continue
        _reconcile(course)
        decision = replace(decision, events=(*decision.events, *course.events))
        if decision.receipt.task == course.task.id:
            told = replace(decision.receipt, status=course.task.status)
            decision = replace(decision, receipt=told)
    return decision


def _course(stream: str, decision: Decision, read: Read, now: int) -> Course | None:
    task = read.task(stream.partition(":")[2])
    # A task that was born in this decision, and one without such a name, belong to no intent.
    if isinstance(task, Refusal) or task_stream(task.id) != stream or not task.aliases:
        return None
    id = intent_of(task)
    intent = read.intent(id) if id else None
    if intent is None or intent.task != task.id:
        return None
    return Course(intent, task_after(task, decision.events, now), read, now)


def _reconcile(course: Course) -> None:
    request, task = course.intent.request, course.task
    if request is not None:
        _answer(course, request)
    elif task.status in UNDER_WAY and task.assignee:
        # Sent back by a reviewer, or taken up again after it had come to nothing.
        course.dispatch(task.assignee)
    course.settle()


def _answer(course: Course, request: OpenRequest) -> None:
    """The open request ends by what was reported, by the task's end, or with another owner."""
    task = course.task
    outcome = _outcome(task, request)
    if task.status == "done" or outcome == "done":
        course.complete(request, Ending(True))
    elif outcome in _FAILURES:
        error = _said(task)
        course.complete(request, Ending(False, error))
        if task.status == "ready":
            course.go_on(error)
    elif task.status in GIVEN_UP:
        # Whoever was silent so often that the task was given up has failed; a person's word
        # says nothing about the agent.
        is_its_own_doing = task.status == "deadletter" and task.failures >= task.max_attempts
        error = f"the task is {task.status}"
        course.complete(request, Ending(False, error, task.status, feedback=is_its_own_doing))
    elif task.assignee != request.agent:
        course.supersede(request, task.assignee)


def _outcome(task: Task, request: OpenRequest) -> str:
    """How the attempt that the request led to has ended; empty: it has not."""
    report = task.reported
    if report is None or task.status == "in-progress":
        return ""
    counts = report.attempt > request.after and report.agent == request.agent
    return report.outcome if counts else ""


def _said(task: Task) -> str:
    report = task.reported
    said = (report.notes or "; ".join(report.blockers)) if report is not None else ""
    return said or "reported without a word"
