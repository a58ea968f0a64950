"""What other dialects do to the task of an intent is followed by the intent, in the same breath."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.deciding.course import GIVEN_UP, UNDER_WAY, Course, is_late, task_after
from dragoman.core.deciding.ending import Ending
from dragoman.core.deciding.intents.reports import failure_of, success_of, update_of
from dragoman.core.deciding.intents.results import overdue, too_late
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    DelegationRequested,
    TaskCheckpointed,
    TaskClaimed,
    TaskEdited,
    TaskLinked,
    TaskProgressed,
    TaskReported,
    TaskRequeued,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
)
from dragoman.core.ids import task_stream
from dragoman.core.limits import REASON, UPDATES
from dragoman.core.reading import Decision, Read, StreamEvents
from dragoman.core.states.intent import RENEWABLE, Intent, OpenRequest, intent_of
from dragoman.core.states.task import Reported, Task

if TYPE_CHECKING:
    from dragoman.core.events import AnyEvent

TOLD: "Final[frozenset[type[AnyEvent]]]" = frozenset(
    {
        DelegationRequested,
        TaskCheckpointed,
        TaskClaimed,
        TaskEdited,
        TaskLinked,
        TaskProgressed,
        TaskReported,
        TaskRequeued,
        TaskRewound,
        TaskTransitioned,
        TaskUnblocked,
    }
)
"""Events of a task that concern its intent."""
_FAILURES: Final = ("failed", "blocked")


def followed(
    decision: Decision, read: Read, now: int, own: str = "", *, gives: bool = False
) -> Decision | Refusal:
    """Extend a decision by its consequences for the intents of the tasks that it changes.

    The intent of `handled_task` is handled by the command itself. An action of the worker after the
    deadline is refused; so is an `is_assignment` command that gives a task to an agent that its
    intent may not go to.
    """
    seen_to = {task_stream(own)}
    for stream, event in decision.events:
        if type(event) not in TOLD or stream in seen_to:
            continue
        seen_to.add(stream)
        found = _found(stream, read)
        if found is None:
            continue
        before, intent = found
        request = intent.request
        late = None if request is None or not is_late(before, request, now) else request
        if late and _is_workers(stream, decision.events, late, read):
            return too_late(Course(intent, before, read, now), late, read.actor.name, read, now)
        why = _why(stream, decision.events, read, overdue(before, late, now) if late else None)
        course = Course(intent, task_after(before, decision.events, now), read, now)
        if isinstance(event, TaskProgressed):
            _hear(course, event, read)
        if isinstance(event, TaskRewound):
            _go_back(course)
        else:
            _reconcile(course, before, why)
        if gives and course.is_kept_from_owner:
            return _kept_from(course)
        decision = replace(decision, events=(*decision.events, *course.events))
        if decision.receipt.task == course.task.id:
            told = replace(decision.receipt, status=course.task.status)
            decision = replace(decision, receipt=told)
    return decision


def _is_workers(stream: str, events: StreamEvents, request: OpenRequest, read: Read) -> bool:
    """Return whether the requested agent, or one that claims the task, caused the events."""
    if read.actor.role != "agent":
        return False
    begins = any(name == stream and isinstance(event, TaskClaimed) for name, event in events)
    return begins or request.agent == read.actor.name


def _kept_from(course: Course) -> Refusal:
    """Refusal of an owner that governance vetoes."""
    against = "; ".join(course.intent.reasons)
    who = f"{course.task.assignee} may not have the intent {course.intent.id}"
    return Refusal("policy_violation", f"{who}: {against}"[:REASON])


def _hear(course: Course, event: TaskProgressed, read: Read) -> None:
    """Record progress by the agent of the open request as an update of the intent."""
    intent, request = course.intent, course.intent.request
    if request is None or request.agent != read.actor.name or intent.updates >= UPDATES:
        return
    course.say(update_of(intent, request, event))


def _found(stream: str, read: Read) -> tuple[Task, Intent] | None:
    """Find the task as it was before, and its intent."""
    task = read.task(stream.partition(":")[2])
    # A task created in this decision, and one without an intent alias, belongs to no intent.
    if (
        isinstance(task, Refusal)
        or task_stream(task.id) != stream
        or (intent := intent_of(task, read.intent)) is None
    ):
        return None
    return task, intent


class _Why(Struct, frozen=True):
    """Reason for which the task was moved."""

    reason: str = ""
    """As stated by whoever moved it."""
    cancelled: str = ""
    """Canceller of the task and the reason; empty: it was not cancelled."""
    late: Ending | None = None
    """Timeout that ended the open request before, if its deadline had passed."""


def _why(stream: str, events: StreamEvents, read: Read, late: Ending | None) -> _Why:
    """Reason of the last transition of the task."""
    why = _Why(late=late)
    for name, event in events:
        if name == stream and isinstance(event, TaskTransitioned):
            reason = f": {event.reason}" if event.reason not in ("", event.to) else ""
            gone = f"cancelled by {read.actor.label}{reason}" if event.to == "cancelled" else ""
            why = _Why(reason, gone, late)
    return why


def _reconcile(course: Course, before: Task, why: _Why) -> None:
    request, task = course.intent.request, course.task
    if request is not None:
        _answer(course, request, before, why)
    elif task.status in UNDER_WAY and task.assignee and _place(before) != _place(task):
        _take_up(course, before)
    course.settle(why.cancelled)


def _go_back(course: Course) -> None:
    """Sync after a rewind: requests since then are void, and nothing is counted for their agents.

    The agent that owns the task then gets a new request, even if it failed: that was later.
    """
    task, request = course.task, course.intent.request
    if request is not None:
        course.supersede(request, "")
    if task.status in UNDER_WAY and task.assignee and _can_begin(task):
        course.ask(task.assignee, is_forgiven=True)
    elif task.status == "done":
        course.settle()
    else:
        course.wait(f"it was rewound: {course.why_waiting()}")


def _place(task: Task) -> tuple[object, ...]:
    """Values that decide whether an agent is to be requested."""
    return task.status, task.assignee, task.open_blockers


def _take_up(course: Course, before: Task) -> None:
    """Request the owner again, after a reviewer sent the task back or an intent was revived."""
    task = course.task
    if not _can_begin(task):
        return
    if course.intent.state not in RENEWABLE:
        course.renew(task.assignee, course.intent.closed[-1].agent)
        return
    course.ask(task.assignee, is_forgiven=_is_forgiven(task.assignee, before))


def _is_forgiven(agent: str, before: Task) -> bool:
    """Return whether an agent that has failed may be requested again: somebody took the task out of
    the deadletter for it, or its blocker is gone.
    """
    report = before.reported
    if before.status != "blocked" or report is None:
        return before.status == "deadletter"
    return (report.agent, report.outcome) == (agent, "blocked")


def _can_begin(task: Task) -> bool:
    return task.status != "backlog" and not (task.status == "ready" and task.open_blockers)


def _answer(course: Course, request: OpenRequest, before: Task, why: _Why) -> None:
    """Close or keep the open request, by the report, the task's end or a new owner."""
    task = course.task
    report = _report(task, request)
    outcome = "" if report is None else report.outcome
    if task.status == "done" or outcome == "done":
        course.complete(request, why.late or success_of(report, course.intent.kept_bytes))
    elif report is not None and outcome in _FAILURES:
        ending = why.late or failure_of(report)
        course.complete(request, ending)
        if task.status == "ready":
            course.go_on(ending.error)
    elif task.status in GIVEN_UP:
        # An agent that stayed silent until the task was given up has failed; a person's decision
        # says nothing about the agent.
        is_its_own_doing = task.status == "deadletter" and task.failures >= task.max_attempts
        error = why.cancelled or f"the task is {task.status}{why.reason}"
        by_a_person = "given up" if task.status == "deadletter" else task.status
        ending = Ending(False, error, "deadletter" if is_its_own_doing else by_a_person)
        course.complete(request, why.late or ending)
        if is_its_own_doing:
            course.go_on(error)
    elif not _can_begin(task):
        _pass_on(course, request, "", why)
    elif before.handoff is not None and _is_with_another_who_failed(course, request):
        _returned(course, request)
    elif task.assignee != request.agent:
        _pass_on(course, request, task.assignee, why)
    elif task.status != "in-progress":
        _stays(course, request, before, why)


def _stays(course: Course, request: OpenRequest, before: Task, why: _Why) -> None:
    """Keep the request with its agent: it is in review, or the agent is to begin once more."""
    task = course.task
    if task.status == "review":
        if why.late:
            course.complete(request, why.late)
    elif course.forbidden():
        # Work that nobody has begun is not requested any more, once its texts are forbidden.
        _pass_on(course, request, "", why)
        course.forbid()
    elif before.status == "review":
        # Work that a reviewer sends back is a new request: review took none of the agent's time.
        course.supersede(request, task.assignee)
    elif before.checkpoint != task.checkpoint and not why.late:
        # The agent is told where to continue: a new request within the deadline of the first.
        course.supersede(request, task.assignee, request.deadline)


def _pass_on(course: Course, request: OpenRequest, owner: str, why: _Why) -> None:
    """End the request, because the task has another owner or none."""
    if why.late is None:
        course.supersede(request, owner)
        return
    course.complete(request, why.late)
    if owner:
        course.hand_to(owner)


def _is_with_another_who_failed(course: Course, request: OpenRequest) -> bool:
    owner = course.task.assignee
    return owner != request.agent and owner in course.intent.failed


def _returned(course: Course, request: OpenRequest) -> None:
    """End the request of a task that a handoff has returned to an agent that failed it, and try the
    next agent.
    """
    course.supersede(request, "")
    if course.task.handoff is None:
        course.go_on(f"it is back with {course.task.assignee}, who has failed it")


def _report(task: Task, request: OpenRequest) -> Reported | None:
    """Report that ended the attempt of this request; None: it has not ended."""
    report = task.reported
    if report is None or task.status == "in-progress":
        return None
    counts = report.attempt > request.after and report.agent == request.agent
    return report if counts else None
