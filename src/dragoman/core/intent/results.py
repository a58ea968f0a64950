"""Results, updates and timeouts of requests (S-CCOS-3)."""

from hashlib import blake2b
from typing import Any, cast

import msgspec
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.attempt import ClaimTask, check_claimable, outcome_path
from dragoman.core.attempt_state import TaskClaimed, TaskReported, TaskRequeued
from dragoman.core.authority import MAY_DISPATCH, check_attempt_valid, recorded_dispatcher
from dragoman.core.base import DEFAULT_LEASE_MS, Role
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent, check_id, quote_name
from dragoman.core.intent.delegate import workflow_receipt
from dragoman.core.intent.request_workflow import (
    OPEN_STATUSES,
    IntentWorkflow,
    RequestOutcome,
    is_request_overdue,
)
from dragoman.core.intent.state import (
    ClosedRequest,
    ExpireRequest,
    Intent,
    IntentAnomaly,
    IntentUpdated,
    OpenRequest,
    ReceiveResult,
    UpdateIntent,
    intent_of_task,
)
from dragoman.core.limits import (
    MAX_REASON,
    MAX_SAFE_INTEGER,
    MAX_TEXT,
    MAX_UPDATES,
    check_json,
    check_range,
    check_text,
)
from dragoman.core.read import Decision, LeaseChange, Read
from dragoman.core.task import unblock_events
from dragoman.core.task_state import RESULT_PREFIX, Task, TaskProgressed, TaskTransitioned
from dragoman.core.timestamps import to_rfc3339

MAY_DELIVER: frozenset[Role] = MAY_DISPATCH | frozenset[Role]({"agent"})
"""Roles that may deliver a result: the agent, and whoever transports it."""
_NEVER_SENT = "unsent"
_DEADLINE_REASONS = ("deadline", _NEVER_SENT)
"""Reasons for which the hub ends a request at its deadline."""
_MAX_REASON_CHARS = 400


def decide_result(command: ReceiveResult, read: Read, now: int) -> Decision | Refusal:
    """End the open request by its result, and with it the attempt on the task; an equal repeat is a
    no-op.
    """
    refusal = (
        check_text("error", command.error, MAX_TEXT)
        or check_json("output", command.output)
        or check_json("meta and other fields", command.extra_fields)
    )
    workflow = refusal or _find_workflow(command, read, now)
    if isinstance(workflow, Refusal):
        return workflow
    intent, request = workflow.intent, workflow.intent.request
    fault = (
        command.fault or _output_or_error_fault(command) or _speaker_fault(command, workflow, read)
    )
    if fault:
        return _anomaly(workflow, command, fault, read)
    digest = command.digest or result_digest(command.success, command.output, command.error)
    if not _is_identified(command, workflow, read, now) and _has_same_result(
        command, intent, digest
    ):
        return _repeat_decision(workflow)
    if request is None or not _answers_request(command, request):
        if _is_repeat(command, intent, digest):
            return _repeat_decision(workflow)
        return _anomaly(workflow, command, _mismatch_reason(command, intent), read)
    late = _check_on_time(workflow, request, read, now)
    if late:
        return late
    # In review, the agent has ended its attempt before: its success is what it asked to review.
    is_reviewed = command.success and workflow.task.status == "review"
    obstacle = None if is_reviewed else _cannot_take_result(workflow, request, read, now)
    if obstacle:
        return _anomaly(workflow, command, obstacle, read)
    if not is_reviewed:
        _end_attempt(workflow, command, request, read)
    outcome = RequestOutcome(
        command.success,
        command.error,
        digest=digest,
        output=command.output,
        left_out=command.left_out,
        extra_fields=command.extra_fields,
    )
    workflow.complete_request(request, outcome)
    if command.success:
        workflow.settle()
    else:
        _requeue(workflow, f"{RESULT_PREFIX}failure", now, by_report=True)
        workflow.try_next(command.error)
    return _workflow_decision(workflow, read)


def decide_update(command: UpdateIntent, read: Read, now: int) -> Decision | Refusal:
    """Record an update from the agent of the open request, and note its words with the task; from
    anybody else it is an anomaly.
    """
    refusal = (
        check_text("message", command.message, MAX_TEXT)
        or check_range("sequence", command.sequence, 0, MAX_SAFE_INTEGER)
        or check_json("partial", command.partial)
    )
    if command.progress is not None and not 0 <= command.progress <= 100:  # NaN is refused as well
        refusal = Refusal("invalid_field", f"progress is {command.progress}; say 0 to 100 percent")
    workflow = refusal or _find_workflow(command, read, now)
    if isinstance(workflow, Refusal):
        return workflow
    request = workflow.intent.request
    fault = _speaker_fault(command, workflow, read)
    if fault is None and (request is None or not _answers_request(command, request)):
        fault = _mismatch_reason(command, workflow.intent)
    if fault or request is None:
        return _anomaly(workflow, command, fault or "", read)
    if command.sequence in request.sequences:
        return _repeat_decision(workflow)
    late = _check_on_time(workflow, request, read, now)
    if late:
        return late
    if workflow.intent.updates >= MAX_UPDATES:
        return Refusal(
            "invalid_field",
            f"{workflow.intent.id} has {MAX_UPDATES} updates, and no more are kept: hand in the "
            "result",
        )
    workflow.record_intent(
        IntentUpdated(
            workflow.intent.id,
            request.id,
            request.agent,
            command.progress,
            command.message,
            command.sequence,
            command.partial,
        )
    )
    share = "" if command.progress is None else f"{command.progress:g} %"
    if share or command.message:
        # In the work log as well; the intent, which has changed, does not follow it.
        workflow.record_task(TaskProgressed(share, command.message))
    return Decision(workflow_receipt(workflow), workflow.events)


def decide_expire(command: ExpireRequest, read: Read, now: int) -> Decision | Refusal:
    """Fail a request whose deadline has passed; time in review does not count."""
    workflow = _find_workflow(command, read, now)
    if isinstance(workflow, Refusal):
        return workflow
    if read.actor.role not in MAY_DISPATCH:
        return Refusal("not_authorized", f"{read.actor.label} may not end requests")
    request = workflow.intent.request
    if request is None or not is_request_overdue(workflow.task, request, now):
        return Decision(workflow_receipt(workflow))
    _time_out_request(workflow, request, now, is_called=command.is_called)
    return _workflow_decision(workflow, read)


def decide_too_late(
    workflow: IntentWorkflow, request: OpenRequest, agent: str, read: Read, now: int
) -> Decision:
    """Record what comes after the deadline, in any dialect, as an anomaly.

    The deadline counts even if the timeout was not recorded yet.
    """
    _time_out_request(workflow, request, now)
    reason = f"it is late: {request.id} ended at {to_rfc3339(request.deadline or now)}"
    return _record_anomaly(
        workflow, IntentAnomaly(workflow.intent.id, reason, agent, request.id), read
    )


def _check_on_time(
    workflow: IntentWorkflow, request: OpenRequest, read: Read, now: int
) -> Decision | Refusal | None:
    """Refuse what comes after the deadline or for an attempt that has ended; None: it counts."""
    if is_request_overdue(workflow.task, request, now):
        return decide_too_late(workflow, request, request.agent, read, now)
    return check_attempt_valid(workflow.task, read, now)


def _repeat_decision(workflow: IntentWorkflow) -> Decision:
    """Accept a repeat of something that is recorded already."""
    return Decision(replace(workflow_receipt(workflow), is_repeat=True))


def _find_workflow(
    command: ReceiveResult | UpdateIntent | ExpireRequest, read: Read, now: int
) -> IntentWorkflow | Refusal:
    malformed = check_id(command.intent, "intent id")
    if malformed:
        return malformed
    if read.actor.role not in MAY_DELIVER:
        return Refusal("not_authorized", f"{read.actor.label} may not speak for an agent")
    intent = read.intent(command.intent) or _intent_of_credential(read)
    if intent is None:
        if isinstance(command, ExpireRequest):
            return not_found.intent(command.intent)
        return Refusal("anomaly", f"there is no intent {command.intent}: no request is open")
    task = read.task(intent.task)
    return task if isinstance(task, Refusal) else IntentWorkflow(intent, task, read, now)


def _intent_of_credential(read: Read) -> Intent | None:
    """Intent of the task that an attempt's credential was issued for, and limited to."""
    task = read.task(read.actor.task) if read.actor.task else None
    return intent_of_task(task, read.intent) if isinstance(task, Task) else None


def _output_or_error_fault(command: ReceiveResult) -> str | None:
    """Fault if not exactly one of output and error is given (S-CCOS-1)."""
    if command.success:
        return "it is a success and has an error" if command.error else None
    if command.output is not None or command.left_out:
        return "it is a failure and has an output"
    return None if command.error else "it is a failure and has no error"


def _speaker_fault(
    command: ReceiveResult | UpdateIntent, workflow: IntentWorkflow, read: Read
) -> str | None:
    actor = read.actor
    if workflow.intent.id != command.intent:
        return (
            f"there is no intent {command.intent}, and this attempt works on {workflow.intent.id}"
        )
    if actor.task not in ("", workflow.task.id):
        return f"this credential of {actor.name} is for an attempt on {actor.task} only"
    if actor.role != "agent" or actor.name == command.agent:
        return None
    return f"{actor.name} may not speak for {_shown_agent(command.agent)}"


def _answers_request(command: ReceiveResult | UpdateIntent, request: OpenRequest) -> bool:
    is_it = command.request_id in ("", request.id) and command.attempt in (0, request.number)
    return is_it and command.agent == request.agent


def _find_closed(command: ReceiveResult | UpdateIntent, intent: Intent) -> ClosedRequest | None:
    """Closed request that the message answers: the one it names, or the agent's last one."""
    for ended in reversed(intent.closed):
        if ended.agent == command.agent and command.request_id in ("", ended.id):
            return ended
    return None


def _is_identified(command: ReceiveResult, workflow: IntentWorkflow, read: Read, now: int) -> bool:
    """Return whether it is certain which request the result answers: by its id, or because only the
    current attempt can have sent it.
    """
    is_attempt = bool(read.actor.task) and check_attempt_valid(workflow.task, read, now) is None
    return is_attempt or bool(command.request_id)


def _has_same_result(command: ReceiveResult, intent: Intent, digest: str) -> bool:
    """Return whether this agent has sent an equal result; to send it again on purpose, name the new
    request.
    """
    return any(one.agent == command.agent and one.digest == digest for one in intent.closed)


def _cannot_take_result(
    workflow: IntentWorkflow, request: OpenRequest, read: Read, now: int
) -> str | None:
    """Reason why the task takes no result now; a task that nobody has claimed is claimed by its
    result.
    """
    task = workflow.task
    if task.status not in OPEN_STATUSES:
        return f"its task is {task.status}: no result is expected now"
    if task.status != "ready":
        return None
    refusal = check_claimable(task, ClaimTask(task.id, request.agent), read.lease(task), now)
    return None if refusal is None else refusal.detail


def _is_repeat(command: ReceiveResult, intent: Intent, digest: str) -> bool:
    ended = _find_closed(command, intent)
    return ended is not None and ended.digest == digest


def _mismatch_reason(command: ReceiveResult | UpdateIntent, intent: Intent) -> str:
    """Reason why a message does not fit the intent."""
    ended, request = _find_closed(command, intent), intent.request
    if ended is not None and ended.is_superseded:
        return f"{ended.id} was superseded by a change of the task"
    if ended is not None and ended.synthetic:
        late = "it is late: " if ended.synthetic in _DEADLINE_REASONS else ""
        return f"{late}{ended.id} was ended at {to_rfc3339(ended.at)} ({ended.synthetic})"
    if ended is not None:
        other = "another" if isinstance(command, ReceiveResult) else "a"
        return f"{ended.id} has {other} result already"
    if request is None:
        return f"{intent.id} has no open request: it is {intent.state}"
    if command.agent != request.agent:
        return f"{request.id} is open with {request.agent}, not with {_shown_agent(command.agent)}"
    if command.request_id in ("", request.id):
        return f"{request.id} is attempt {request.number}, not {command.attempt}"
    return f"{request.id} is open, not {quote_name(command.request_id)}"


def _anomaly(
    workflow: IntentWorkflow,
    command: ReceiveResult | UpdateIntent,
    reason: str,
    read: Read,
) -> Decision:
    """Record an anomaly with the intent, and refuse the message."""
    request_id = quote_name(command.request_id)[1:-1]
    event = IntentAnomaly(
        workflow.intent.id, reason[:_MAX_REASON_CHARS], _shown_agent(command.agent), request_id
    )
    return _record_anomaly(workflow, event, read)


def _record_anomaly(workflow: IntentWorkflow, event: IntentAnomaly, read: Read) -> Decision:
    workflow.record_intent(event)
    refusal = Refusal("anomaly", f"{event.intent}: {event.reason}")
    return replace(_workflow_decision(workflow, read), refusal=refusal)


def _end_attempt(
    workflow: IntentWorkflow, command: ReceiveResult, request: OpenRequest, read: Read
) -> None:
    """End the attempt with an outcome; the result claims the task if nobody has."""
    task, agent = workflow.task, request.agent
    if task.status == "ready":
        by = recorded_dispatcher(read.actor, agent)
        workflow.record_task(
            TaskClaimed("ready", task.attempts + 1, task.fence + 1, agent, DEFAULT_LEASE_MS, "", by)
        )
    outcome = "done" if command.success else "failed"
    notes = command.error[:MAX_REASON]
    details: dict[str, object] = {"intentId": workflow.intent.id, "requestId": request.id}
    workflow.record_task(
        TaskReported(workflow.task.attempts, agent, outcome, notes, details=details)
    )
    if command.success:
        for to in outcome_path(workflow.task, outcome):
            workflow.record_task(
                TaskTransitioned(
                    workflow.task.status, to, f"{RESULT_PREFIX}success", by_report=True
                )
            )
        if workflow.task.status == "done":
            workflow.record_others(unblock_events(workflow.task, "done", read))


def _requeue(workflow: IntentWorkflow, reason: str, now: int, *, by_report: bool = False) -> None:
    """Make the task ready again at once, for another agent."""
    task = workflow.task
    if task.status == "in-progress":
        failures = task.failures + 1
        workflow.record_task(
            TaskRequeued(task.attempts, reason, failures, now, by_report=by_report)
        )


def timeout_outcome(
    task: Task, request: OpenRequest, now: int, *, is_called: bool = False
) -> RequestOutcome:
    """Outcome of a request whose deadline has passed without a result.

    A request that the hub itself should have dispatched, and could not, does not count against the
    agent.
    """
    due = to_rfc3339(request.deadline or now)
    obstacle = task.start_failure_after(request.after)
    if obstacle or (is_called and task.attempts == request.after):
        return RequestOutcome(
            False,
            f"the hub had not delivered it by {due}{obstacle and f': {obstacle}'}",
            _NEVER_SENT,
        )
    return RequestOutcome(False, f"no result had come by {due}", "deadline")


def _time_out_request(
    workflow: IntentWorkflow, request: OpenRequest, now: int, *, is_called: bool = False
) -> None:
    outcome = timeout_outcome(workflow.task, request, now, is_called=is_called)
    workflow.complete_request(request, outcome)
    _requeue(workflow, "deadline", now)
    workflow.try_next(outcome.error)


def _workflow_decision(workflow: IntentWorkflow, read: Read) -> Decision:
    """Decision with all events of the workflow; it ends the lease if the task is no longer in
    progress.
    """
    lease = read.lease(workflow.task)
    is_over = lease is not None and workflow.task.status != "in-progress"
    ended = LeaseChange(workflow.task.id, None) if is_over else None
    return Decision(workflow_receipt(workflow), workflow.events, ended)


def result_digest(success: bool, output: object, error: str) -> str:
    """Digest that identifies a result, to detect repeats. The output may be encoded already."""
    encoded = msgspec.json.encode([success, output, error], order="deterministic")
    if b".0" in encoded:
        encoded = msgspec.json.encode(
            _integral_floats_to_ints(msgspec.json.decode(encoded)), order="deterministic"
        )
    return blake2b(encoded, digest_size=16).hexdigest()


def _integral_floats_to_ints(value: Any) -> Any:
    """The same value with 1.0 written as 1, as RFC 8785 does: in JSON they are one number."""
    if isinstance(value, dict):
        return {
            name: _integral_floats_to_ints(one) for name, one in cast(dict[str, Any], value).items()
        }
    if isinstance(value, list):
        return [_integral_floats_to_ints(one) for one in cast(list[Any], value)]
    is_whole = isinstance(value, float) and value.is_integer() and abs(value) <= MAX_SAFE_INTEGER
    return int(value) if is_whole else value


def _shown_agent(agent: str) -> str:
    return agent if check_agent(agent) is None else ascii(agent[:40])
