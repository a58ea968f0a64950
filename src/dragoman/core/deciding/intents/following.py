"""What other dialects do to the task of an intent is followed by the intent, in the same breath."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.deciding.course import GIVEN_UP, UNDER_WAY, Course, is_late, task_after
from dragoman.core.deciding.ending import Ending
from dragoman.core.deciding.intents.reports import failure_of, success_of, update_of
from dragoman.core.deciding.intents.results import overdue, too_late
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    AnyEvent,
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

TOLD: Final[frozenset[type[AnyEvent]]] = frozenset(
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
"""What concerns the intent of a task."""
_FAILURES: Final = ("failed", "blocked")


def followed(
    decision: Decision, read: Read, now: int, own: str = "", *, gives: bool = False
) -> Decision | Refusal:
    """The decision, and what becomes of the intents whose tasks it moves.

    `own` is the task of the intent that it is about: that one is seen to already. What is done by
    whoever works on a task after its time is refused; so is what `gives` it to one that its intent
    may not go to.
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
    """Whether it is the doing of the agent that was asked, or of one that begins with the task."""
    if read.actor.role != "agent":
        return False
    begins = any(name == stream and isinstance(event, TaskClaimed) for name, event in events)
    return begins or request.agent == read.actor.name


def _kept_from(course: Course) -> Refusal:
    """The no to whoever gives the task to one that governance keeps it from, or takes it so."""
    against = "; ".join(course.intent.reasons)
    who = f"{course.task.assignee} may not have the intent {course.intent.id}"
    return Refusal("policy_violation", f"{who}: {against}"[:REASON])


def _hear(course: Course, event: TaskProgressed, read: Read) -> None:
    """Word from whoever has the open request is an update of it."""
    intent, request = course.intent, course.intent.request
    if request is None or request.agent != read.actor.name or intent.updates >= UPDATES:
        return
    course.say(update_of(intent, request, event))


def _found(stream: str, read: Read) -> tuple[Task, Intent] | None:
    """The task as it was, and its intent."""
    task = read.task(stream.partition(":")[2])
    # A task that was born in this decision, and one without such a name, belong to no intent.
    if (
        isinstance(task, Refusal)
        or task_stream(task.id) != stream
        or (intent := intent_of(task, read.intent)) is None
    ):
        return None
    return task, intent


class _Why(Struct, frozen=True):
    """What is known of why the task was moved."""

    reason: str = ""
    """In the words of whoever moved it."""
    cancelled: str = ""
    """Who does not want it any more, and why; empty: nobody has said so."""
    late: Ending | None = None
    """How the open request has ended before that, where its time was over."""


def _why(stream: str, events: StreamEvents, read: Read, late: Ending | None) -> _Why:
    """Why the task was moved last."""
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
    """After a rewind: what was asked for since does not count any more, and nothing is learned.

    Whoever has the task then is asked for it anew, even if it has failed: that was later.
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
    """What decides whether somebody is to be asked for it."""
    return task.status, task.assignee, task.open_blockers


def _take_up(course: Course, before: Task) -> None:
    """Sent back by a reviewer, or taken up again after it had come to nothing."""
    task = course.task
    if not _can_begin(task):
        return
    if course.intent.state not in RENEWABLE:
        course.renew(task.assignee, course.intent.closed[-1].agent)
        return
    course.ask(task.assignee, is_forgiven=_is_forgiven(task.assignee, before))


def _is_forgiven(agent: str, before: Task) -> bool:
    """Whether it is asked again although it has failed: somebody took the task out of the
    deadletter for it, or what it said was in the way is not any more.
    """
    report = before.reported
    if before.status != "blocked" or report is None:
        return before.status == "deadletter"
    return (report.agent, report.outcome) == (agent, "blocked")


def _can_begin(task: Task) -> bool:
    return task.status != "backlog" and not (task.status == "ready" and task.open_blockers)


def _answer(course: Course, request: OpenRequest, before: Task, why: _Why) -> None:
    """The open request ends by what was reported, by the task's end, or with another owner."""
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
        # Whoever was silent so often that the task was given up has failed; a person's word
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
    """It is its agent's still, who is looked at, or is to begin with it once more."""
    task = course.task
    if task.status == "review":
        if why.late:
            course.complete(request, why.late)
    elif course.forbidden():
        # What nobody has begun is asked of nobody, once its words are forbidden.
        _pass_on(course, request, "", why)
        course.forbid()
    elif before.status == "review":
        # What a reviewer sends back is asked for anew: the review took none of the agent's time.
        course.supersede(request, task.assignee)
    elif before.checkpoint != task.checkpoint and not why.late:
        # Whoever goes on is told where: that is another request, in the time of the first.
        course.supersede(request, task.assignee, request.deadline)


def _pass_on(course: Course, request: OpenRequest, owner: str, why: _Why) -> None:
    """It is another's now, or nobody's."""
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
    """By a handoff it is back with one who has failed it, and who is not tried again."""
    course.supersede(request, "")
    if course.task.handoff is None:
        course.go_on(f"it is back with {course.task.assignee}, who has failed it")


def _report(task: Task, request: OpenRequest) -> Reported | None:
    """How the attempt that the request led to has ended; None: it has not."""
    report = task.reported
    if report is None or task.status == "in-progress":
        return None
    counts = report.attempt > request.after and report.agent == request.agent
    return report if counts else None
