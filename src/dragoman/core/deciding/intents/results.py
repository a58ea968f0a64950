"""Deciders of what comes back from an agent: a result, an update, nothing in time (S-CCOS-3)."""

from hashlib import blake2b
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from dragoman.core import missing
from dragoman.core.actors import Role
from dragoman.core.authority import MAY_DISPATCH, dispatcher
from dragoman.core.commands import (
    DEFAULT_TTL_MS,
    ClaimTask,
    ExpireRequest,
    ReceiveResult,
    UpdateIntent,
)
from dragoman.core.deciding.course import UNDER_WAY, Course, is_late
from dragoman.core.deciding.ending import Ending
from dragoman.core.deciding.intents.delegating import receipt_of
from dragoman.core.deciding.scope import check_alive
from dragoman.core.deciding.tasks.attempts import steps
from dragoman.core.deciding.tasks.claims import check_claimable
from dragoman.core.deciding.tasks.lifecycle import unblocked
from dragoman.core.errors import Refusal
from dragoman.core.events import (
    IntentAnomaly,
    IntentUpdated,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
    TaskTransitioned,
)
from dragoman.core.ids import check_agent, check_id, quoted_name
from dragoman.core.limits import REASON, TEXT, UPDATES, WHOLE, check_json, check_range, check_text
from dragoman.core.moments import to_rfc3339
from dragoman.core.reading import Decision, LeaseChange, Read
from dragoman.core.states.intent import Closed, Intent, OpenRequest, intent_of
from dragoman.core.states.moves import RESULT
from dragoman.core.states.task import Task

MAY_DELIVER: frozenset[Role] = MAY_DISPATCH | frozenset[Role]({"agent"})
"""Roles that may deliver a result: the agent, and whoever transports it."""
_UNSENT = "unsent"
_BY_TIME = ("deadline", _UNSENT)
"""Reasons for which the hub ends a request at its deadline."""
_SHOWN = 400


def receive(command: ReceiveResult, read: Read, now: int) -> Decision | Refusal:
    """End the open request by its result, and with it the attempt on the task; an equal repeat is a
    no-op.
    """
    refusal = (
        check_text("error", command.error, TEXT)
        or check_json("output", command.output)
        or check_json("meta and other fields", command.passed_on)
    )
    course = refusal or _course(command, read, now)
    if isinstance(course, Refusal):
        return course
    intent, request = course.intent, course.intent.request
    fault = command.fault or _one_of(command) or _not_the_speaker(command, course, read)
    if fault:
        return _odd(course, command, fault, read, now)
    digest = command.digest or result_digest(command.success, command.output, command.error)
    if not _is_of_one(command, course, read, now) and _came_before(command, intent, digest):
        return _before(course)
    if request is None or not _fits(command, request):
        if _is_repeat(command, intent, digest):
            return _before(course)
        return _odd(course, command, _why_not(command, intent), read, now)
    over = _over(course, request, read, now)
    if over:
        return over
    waits = _why_it_waits(course, request, read, now)
    if waits:
        return _odd(course, command, waits, read, now)
    _end_attempt(course, command, request, read)
    ending = Ending(
        command.success,
        command.error,
        digest=digest,
        output=command.output,
        left_out=command.left_out,
        passed_on=command.passed_on,
    )
    course.complete(request, ending)
    if command.success:
        course.settle()
    else:
        _requeue(course, f"{RESULT}failure", now)
        course.go_on(command.error)
    return _decided(course, read)


def update(command: UpdateIntent, read: Read, now: int) -> Decision | Refusal:
    """Record an update from the agent of the open request; from anybody else it is an anomaly."""
    refusal = (
        check_text("message", command.message, TEXT)
        or check_range("sequence", command.sequence, 0, WHOLE)
        or check_json("partial", command.partial)
    )
    if command.progress is not None and not 0 <= command.progress <= 100:  # NaN is refused as well
        refusal = Refusal("invalid_field", f"progress is {command.progress}; say 0 to 100 percent")
    course = refusal or _course(command, read, now)
    if isinstance(course, Refusal):
        return course
    request = course.intent.request
    fault = _not_the_speaker(command, course, read)
    if fault is None and (request is None or not _fits(command, request)):
        fault = _why_not(command, course.intent)
    if fault or request is None:
        return _odd(course, command, fault or "", read, now)
    if request.has_heard(command.sequence):
        return _before(course)
    over = _over(course, request, read, now)
    if over:
        return over
    if course.intent.updates >= UPDATES:
        return Refusal(
            "invalid_field",
            f"{course.intent.id} has {UPDATES} updates, and no more are kept: hand in the result",
        )
    course.say(
        IntentUpdated(
            course.intent.id,
            request.id,
            request.agent,
            command.progress,
            command.message,
            command.sequence,
            command.partial,
        )
    )
    return Decision(receipt_of(course), course.events)


def expire(command: ExpireRequest, read: Read, now: int) -> Decision | Refusal:
    """Fail a request whose deadline has passed; time in review does not count."""
    course = _course(command, read, now)
    if isinstance(course, Refusal):
        return course
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not end requests")
    request = course.intent.request
    if request is None or not is_late(course.task, request, now):
        return Decision(receipt_of(course))
    _time_out(course, request, now, is_called=command.is_called)
    return _decided(course, read)


def too_late(course: Course, request: OpenRequest, agent: str, read: Read, now: int) -> Decision:
    """Record what comes after the deadline, in any dialect, as an anomaly.

    The deadline counts even if the timeout was not recorded yet.
    """
    _time_out(course, request, now)
    late = f"it is late: {request.id} ended at {to_rfc3339(request.deadline or now)}"
    return _on_record(course, IntentAnomaly(course.intent.id, late, agent, request.id), read)


def _over(course: Course, request: OpenRequest, read: Read, now: int) -> Decision | Refusal | None:
    """Refuse what comes after the deadline or for an attempt that has ended; None: it counts."""
    if is_late(course.task, request, now):
        return too_late(course, request, request.agent, read, now)
    return check_alive(course.task, read, now)


def _before(course: Course) -> Decision:
    """Accept a repeat of something that is recorded already."""
    return Decision(replace(receipt_of(course), before=True))


def _course(
    command: ReceiveResult | UpdateIntent | ExpireRequest, read: Read, now: int
) -> Course | Refusal:
    malformed = check_id(command.intent, "intent id")
    if malformed:
        return malformed
    if read.actor.role not in MAY_DELIVER:
        return Refusal("not_authorized", f"{read.actor.label} may not speak for an agent")
    intent = read.intent(command.intent) or _asked_for(read)
    if intent is None:
        if isinstance(command, ExpireRequest):
            return missing.intent(command.intent)
        return Refusal("anomaly", f"there is no intent {command.intent}: no request is open")
    task = read.task(intent.task)
    return task if isinstance(task, Refusal) else Course(intent, task, read, now)


def _asked_for(read: Read) -> Intent | None:
    """Intent of the task that an attempt's credential was issued for, and limited to."""
    task = read.task(read.actor.task) if read.actor.task else None
    return intent_of(task, read.intent) if isinstance(task, Task) else None


def _one_of(command: ReceiveResult) -> str | None:
    """Fault if not exactly one of output and error is given (S-CCOS-1)."""
    if command.success:
        return "it is a success and has an error" if command.error else None
    if command.output is not None or command.left_out:
        return "it is a failure and has an output"
    return None if command.error else "it is a failure and has no error"


def _not_the_speaker(
    command: ReceiveResult | UpdateIntent, course: Course, read: Read
) -> str | None:
    actor = read.actor
    if course.intent.id != command.intent:
        return f"there is no intent {command.intent}, and this attempt works on {course.intent.id}"
    if actor.task not in ("", course.task.id):
        return f"this credential of {actor.name} is for an attempt on {actor.task} only"
    if actor.role != "agent" or actor.name == command.agent:
        return None
    return f"{actor.name} may not speak for {_shown(command.agent)}"


def _fits(command: ReceiveResult | UpdateIntent, request: OpenRequest) -> bool:
    is_it = command.request_id in ("", request.id) and command.attempt in (0, request.number)
    return is_it and command.agent == request.agent


def _closed(command: ReceiveResult | UpdateIntent, intent: Intent) -> Closed | None:
    """Closed request that the message answers: the one it names, or the agent's last one."""
    for ended in reversed(intent.closed):
        if ended.agent == command.agent and command.request_id in ("", ended.id):
            return ended
    return None


def _is_of_one(command: ReceiveResult, course: Course, read: Read, now: int) -> bool:
    """Return whether it is certain which request the result answers: by its id, or because only the
    current attempt can have sent it.
    """
    is_attempt = bool(read.actor.task) and check_alive(course.task, read, now) is None
    return is_attempt or bool(command.request_id)


def _came_before(command: ReceiveResult, intent: Intent, digest: str) -> bool:
    """Return whether this agent has sent an equal result; to send it again on purpose, name the new
    request.
    """
    return any(one.agent == command.agent and one.digest == digest for one in intent.closed)


def _why_it_waits(course: Course, request: OpenRequest, read: Read, now: int) -> str | None:
    """Reason why the task takes no result now; a task that nobody has claimed is claimed by its
    result.
    """
    task = course.task
    if task.status not in UNDER_WAY:
        return f"its task is {task.status}: no result is expected now"
    if task.status != "ready":
        return None
    refusal = check_claimable(task, ClaimTask(task.id, request.agent), read.lease(task), now)
    return None if refusal is None else refusal.detail


def _is_repeat(command: ReceiveResult, intent: Intent, digest: str) -> bool:
    ended = _closed(command, intent)
    return ended is not None and ended.digest == digest


def _why_not(command: ReceiveResult | UpdateIntent, intent: Intent) -> str:
    """Reason why a message does not fit the intent."""
    ended, request = _closed(command, intent), intent.request
    if ended is not None and ended.is_superseded:
        return f"{ended.id} was superseded by a change of the task"
    if ended is not None and ended.synthetic:
        late = "it is late: " if ended.synthetic in _BY_TIME else ""
        return f"{late}{ended.id} was ended at {to_rfc3339(ended.at)} ({ended.synthetic})"
    if ended is not None:
        other = "another" if isinstance(command, ReceiveResult) else "a"
        return f"{ended.id} has {other} result already"
    if request is None:
        return f"{intent.id} has no open request: it is {intent.state}"
    if command.agent != request.agent:
        return f"{request.id} is open with {request.agent}, not with {_shown(command.agent)}"
    if command.request_id in ("", request.id):
        return f"{request.id} is attempt {request.number}, not {command.attempt}"
    return f"{request.id} is open, not {quoted_name(command.request_id)}"


def _odd(
    course: Course, command: ReceiveResult | UpdateIntent, why: str, read: Read, now: int
) -> Decision | Refusal:
    """Record an anomaly with the intent, unless it is a repeat, and refuse the message."""
    request_id = quoted_name(command.request_id)[1:-1]
    event = IntentAnomaly(course.intent.id, why[:_SHOWN], _shown(command.agent), request_id)
    if course.intent.is_flooded(now):
        return _told(event)  # recorded with the caller, so that a flood hides no other anomaly
    return _on_record(course, event, read)


def _on_record(course: Course, event: IntentAnomaly, read: Read) -> Decision:
    if not course.intent.is_repeat(event):
        course.say(event)
    return replace(_decided(course, read), refusal=_told(event))


def _told(event: IntentAnomaly) -> Refusal:
    return Refusal("anomaly", f"{event.intent}: {event.reason}")


def _end_attempt(course: Course, command: ReceiveResult, request: OpenRequest, read: Read) -> None:
    """End the attempt with an outcome; the result claims the task if nobody has."""
    task, agent = course.task, request.agent
    if task.status == "ready":
        by = dispatcher(read.actor, agent)
        course.move(
            TaskClaimed("ready", task.attempts + 1, task.fence + 1, agent, DEFAULT_TTL_MS, "", by)
        )
    outcome = "done" if command.success else "failed"
    notes = command.error[:REASON]
    details: dict[str, object] = {"intentId": course.intent.id, "requestId": request.id}
    course.move(TaskReported(course.task.attempts, agent, outcome, notes, details=details))
    if command.success:
        for to in steps(course.task, outcome):
            course.move(TaskTransitioned(course.task.status, to, f"{RESULT}success"))
        if course.task.status == "done":
            course.tell(unblocked(course.task, "done", read))


def _requeue(course: Course, reason: str, now: int) -> None:
    """Make the task ready again at once, for another agent."""
    task = course.task
    if task.status == "in-progress":
        course.move(TaskRequeued(task.attempts, reason, task.failures + 1, now))


def overdue(task: Task, request: OpenRequest, now: int, *, is_called: bool = False) -> Ending:
    """Outcome of a request whose deadline has passed without a result.

    A request that the hub itself should have dispatched, and could not, does not count against the
    agent.
    """
    due = to_rfc3339(request.deadline or now)
    why = task.why_not_begun(request.after)
    if why or (is_called and task.attempts == request.after):
        return Ending(False, f"the hub had not delivered it by {due}{why and f': {why}'}", _UNSENT)
    return Ending(False, f"no result had come by {due}", "deadline")


def _time_out(course: Course, request: OpenRequest, now: int, *, is_called: bool = False) -> None:
    ending = overdue(course.task, request, now, is_called=is_called)
    course.complete(request, ending)
    _requeue(course, "deadline", now)
    course.go_on(ending.error)


def _decided(course: Course, read: Read) -> Decision:
    """Decision with all events of the workflow; it ends the lease if the task is no longer in
    progress.
    """
    before = read.lease(course.task)
    is_over = before is not None and course.task.status != "in-progress"
    ended = LeaseChange(course.task.id, None) if is_over else None
    return Decision(receipt_of(course), course.events, ended)


def result_digest(success: bool, output: object, error: str) -> str:
    """Digest that identifies a result, to detect repeats. The output may be encoded already."""
    said = msgspec.json.encode([success, output, error], order="deterministic")
    if b".0" in said:
        said = msgspec.json.encode(_whole(msgspec.json.decode(said)), order="deterministic")
    return blake2b(said, digest_size=16).hexdigest()


def _whole(value: Any) -> Any:
    """The same value with 1.0 written as 1, as RFC 8785 does: in JSON they are one number."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in cast(dict[str, Any], value).items()}
    if isinstance(value, list):
        return [_whole(one) for one in cast(list[Any], value)]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= WHOLE
    return int(value) if is_whole else value


def _shown(agent: str) -> str:
    return agent if check_agent(agent) is None else ascii(agent[:40])
