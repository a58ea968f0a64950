"""Keep an intent in step with its task, in the same transaction."""

import re
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.attempt_state import (
    Report,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
)
from dragoman.core.errors import Refusal
from dragoman.core.ids import task_stream
from dragoman.core.intent.request_workflow import (
    GIVEN_UP_STATUSES,
    OPEN_STATUSES,
    IntentWorkflow,
    RequestOutcome,
    fold_task_events,
    is_request_overdue,
)
from dragoman.core.intent.results import decide_too_late, result_digest, timeout_outcome
from dragoman.core.intent.state import (
    RENEWABLE_STATES,
    Intent,
    IntentUpdated,
    OpenRequest,
    intent_of_task,
)
from dragoman.core.limits import MAX_REASON, MAX_TEXT, MAX_UPDATES
from dragoman.core.read import Decision, Read, StreamEvents
from dragoman.core.task_state import (
    DelegationRequested,
    Task,
    TaskEdited,
    TaskLinked,
    TaskProgressed,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
)

if TYPE_CHECKING:
    from dragoman.core.event_table import AnyEvent

# --- reports of a task as outcomes and updates of a request -----------------------------------

FAILURE_TYPE_KEY: Final = "failure_type"
"""Key of a report's details that names the type of failure."""

_PERCENT: Final = re.compile(r"\s*(100|[0-9]{1,2}(?:\.[0-9]+)?) ?%\s*")

_EMPTY_VALUES: Final[tuple[object, ...]] = ("", None, (), [], {})


def success_outcome(report: Report | None, max_output_bytes: int) -> RequestOutcome:
    """Outcome of successful work: the output is everything that the report says about it."""
    output = None if report is None else _report_output(report)
    if output is None:
        return RequestOutcome(True)
    encoded = msgspec.json.encode(output, order="deterministic")
    digest = result_digest(True, msgspec.Raw(encoded), "")
    if len(encoded) > max_output_bytes:
        return RequestOutcome(True, digest=digest, left_out=len(encoded))
    return RequestOutcome(True, digest=digest, output=output)


def _report_output(report: Report) -> dict[str, object] | None:
    fields = report.details | {"notes": report.notes}
    return {name: value for name, value in fields.items() if value not in _EMPTY_VALUES} or None


def failure_outcome(report: Report) -> RequestOutcome:
    """Outcome of failed work: the failure type, the blockers and the notes."""
    error = "; ".join(filter(None, (*report.blockers, report.notes)))
    kind = report.details.get(FAILURE_TYPE_KEY)
    if isinstance(kind, str) and kind and not error.startswith(kind):
        error = f"{kind}: {error}" if error else kind
    return RequestOutcome(False, error or "reported without blockers or notes")


def progress_update(intent: Intent, request: OpenRequest, event: TaskProgressed) -> IntentUpdated:
    """Progress of a task as an update of its request; a percentage only if one is stated."""
    share = _PERCENT.fullmatch(event.progress)
    progress = None if share is None else float(share[1])
    message = "; ".join(filter(None, (event.progress, event.notes, *event.blockers)))
    return IntentUpdated(intent.id, request.id, request.agent, progress, message[:MAX_TEXT])


# --- sync -------------------------------------------------------------------------------------

SYNCED_EVENTS: "Final[frozenset[type[AnyEvent]]]" = frozenset(
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

_FAILURE_OUTCOMES: Final = ("failed", "blocked")


def sync_intents(
    decision: Decision, read: Read, now: int, handled_task: str = "", *, is_assignment: bool = False
) -> Decision | Refusal:
    """Extend a decision by its consequences for the intents of the tasks that it changes.

    The intent of `handled_task` is handled by the command itself. An action of the worker after the
    deadline is refused; so is an `is_assignment` command that gives a task to an agent that its
    intent may not go to.
    """
    handled = {task_stream(handled_task)}
    for stream, event in decision.events:
        if type(event) not in SYNCED_EVENTS or stream in handled:
            continue
        handled.add(stream)
        found = _find_task_and_intent(stream, read)
        if found is None:
            continue
        before, intent = found
        request = intent.request
        late = None if request is None or not is_request_overdue(before, request, now) else request
        if late and _is_by_worker(stream, decision.events, late, read):
            return decide_too_late(
                IntentWorkflow(intent, before, read, now), late, read.actor.name, read, now
            )
        reason = _move_reason(
            stream, decision.events, read, timeout_outcome(before, late, now) if late else None
        )
        workflow = IntentWorkflow(intent, fold_task_events(before, decision.events, now), read, now)
        if isinstance(event, TaskProgressed):
            _record_progress(workflow, event, read)
        if isinstance(event, TaskRewound):
            _sync_rewind(workflow)
        else:
            _reconcile(workflow, before, reason)
        if is_assignment and workflow.is_owner_vetoed:
            return _owner_vetoed_refusal(workflow)
        decision = replace(decision, events=(*decision.events, *workflow.events))
        if decision.receipt.task == workflow.task.id:
            receipt = replace(decision.receipt, status=workflow.task.status)
            decision = replace(decision, receipt=receipt)
    return decision


def _is_by_worker(stream: str, events: StreamEvents, request: OpenRequest, read: Read) -> bool:
    """Return whether the requested agent, or one that claims the task, caused the events."""
    if read.actor.role != "agent":
        return False
    begins = any(name == stream and isinstance(event, TaskClaimed) for name, event in events)
    return begins or request.agent == read.actor.name


def _owner_vetoed_refusal(workflow: IntentWorkflow) -> Refusal:
    """Refusal of an owner that governance vetoes."""
    reasons = "; ".join(workflow.intent.reasons)
    detail = f"{workflow.task.assignee} may not have the intent {workflow.intent.id}"
    return Refusal("policy_violation", f"{detail}: {reasons}"[:MAX_REASON])


def _record_progress(workflow: IntentWorkflow, event: TaskProgressed, read: Read) -> None:
    """Record progress by the agent of the open request as an update of the intent."""
    intent, request = workflow.intent, workflow.intent.request
    if request is None or request.agent != read.actor.name or intent.updates >= MAX_UPDATES:
        return
    workflow.record_intent(progress_update(intent, request, event))


def _find_task_and_intent(stream: str, read: Read) -> tuple[Task, Intent] | None:
    """Find the task as it was before, and its intent."""
    task = read.task(stream.partition(":")[2])
    # A task created in this decision, and one without an intent alias, belongs to no intent.
    if (
        isinstance(task, Refusal)
        or task_stream(task.id) != stream
        or (intent := intent_of_task(task, read.intent)) is None
    ):
        return None
    return task, intent


class _MoveReason(Struct, frozen=True):
    """Reason for which the task was moved."""

    reason: str = ""
    """As stated by whoever moved it."""
    cancelled: str = ""
    """Canceller of the task and the reason; empty: it was not cancelled."""
    timeout: RequestOutcome | None = None
    """Timeout that ended the open request before, if its deadline had passed."""


def _move_reason(
    stream: str, events: StreamEvents, read: Read, timeout: RequestOutcome | None
) -> _MoveReason:
    """Reason of the last transition of the task."""
    result = _MoveReason(timeout=timeout)
    for name, event in events:
        if name == stream and isinstance(event, TaskTransitioned):
            reason = f": {event.reason}" if event.reason not in ("", event.to) else ""
            cancelled = (
                f"cancelled by {read.actor.label}{reason}" if event.to == "cancelled" else ""
            )
            result = _MoveReason(reason, cancelled, timeout)
    return result


def _reconcile(workflow: IntentWorkflow, before: Task, reason: _MoveReason) -> None:
    request, task = workflow.intent.request, workflow.task
    if request is not None:
        _close_request(workflow, request, before, reason)
    elif (
        task.status in OPEN_STATUSES
        and task.assignee
        and _assignment_key(before) != _assignment_key(task)
    ):
        _request_again(workflow, before)
    workflow.settle(reason.cancelled)


def _sync_rewind(workflow: IntentWorkflow) -> None:
    """Sync after a rewind: requests since then are void, and nothing is counted for their agents.

    The agent that owns the task then gets a new request, even if it failed: that was later.
    """
    task, request = workflow.task, workflow.intent.request
    if request is not None:
        workflow.supersede_request(request, "")
    if task.status in OPEN_STATUSES and task.assignee and _can_start(task):
        workflow.request_if_eligible(task.assignee, is_forgiven=True)
    elif task.status == "done":
        workflow.settle()
    else:
        workflow.require_follow_up(f"it was rewound: {workflow.waiting_reason()}")


def _assignment_key(task: Task) -> tuple[object, ...]:
    """Values that decide whether an agent is to be requested."""
    return task.status, task.assignee, task.open_blockers


def _request_again(workflow: IntentWorkflow, before: Task) -> None:
    """Request the owner again, after a reviewer sent the task back or an intent was revived."""
    task = workflow.task
    if not _can_start(task):
        return
    if workflow.intent.state not in RENEWABLE_STATES:
        workflow.renew_request(task.assignee, workflow.intent.closed[-1].agent)
        return
    workflow.request_if_eligible(task.assignee, is_forgiven=_is_forgiven(task.assignee, before))


def _is_forgiven(agent: str, before: Task) -> bool:
    """Return whether an agent that has failed may be requested again: somebody took the task out of
    the deadletter for it, or its blocker is gone.
    """
    report = before.reported
    if before.status != "blocked" or report is None:
        return before.status == "deadletter"
    return (report.agent, report.outcome) == (agent, "blocked")


def _can_start(task: Task) -> bool:
    return task.status != "backlog" and not (task.status == "ready" and task.open_blockers)


def _close_request(
    workflow: IntentWorkflow, request: OpenRequest, before: Task, reason: _MoveReason
) -> None:
    """Close or keep the open request, by the report, the task's end or a new owner."""
    task = workflow.task
    report = _attempt_report(task, request)
    outcome = "" if report is None else report.outcome
    if task.status == "done" or outcome == "done":
        workflow.complete_request(
            request, reason.timeout or success_outcome(report, workflow.intent.max_output_bytes)
        )
    elif report is not None and outcome in _FAILURE_OUTCOMES:
        result = reason.timeout or failure_outcome(report)
        workflow.complete_request(request, result)
        if task.status == "ready":
            workflow.try_next(result.error)
    elif task.status in GIVEN_UP_STATUSES:
        # An agent that stayed silent until the task was given up has failed; a person's decision
        # says nothing about the agent.
        is_its_own_doing = task.status == "deadletter" and task.failures >= task.max_attempts
        error = reason.cancelled or f"the task is {task.status}{reason.reason}"
        by_a_person = "given up" if task.status == "deadletter" else task.status
        result = RequestOutcome(False, error, "deadletter" if is_its_own_doing else by_a_person)
        workflow.complete_request(request, reason.timeout or result)
        if is_its_own_doing:
            workflow.try_next(error)
    elif not _can_start(task):
        _pass_request_on(workflow, request, "", reason)
    elif before.handoff is not None and _is_with_failed_agent(workflow, request):
        _return_to_failed(workflow, request)
    elif task.assignee != request.agent:
        _pass_request_on(workflow, request, task.assignee, reason)
    elif task.status != "in-progress":
        _keep_request(workflow, request, before, reason)


def _keep_request(
    workflow: IntentWorkflow, request: OpenRequest, before: Task, reason: _MoveReason
) -> None:
    """Keep the request with its agent: it is in review, or the agent is to begin once more."""
    task = workflow.task
    if task.status == "review":
        if reason.timeout:
            workflow.complete_request(request, reason.timeout)
    elif workflow.forbidden_reasons():
        # Work that nobody has begun is not requested any more, once its texts are forbidden.
        _pass_request_on(workflow, request, "", reason)
        workflow.reject_forbidden()
    elif before.status == "review":
        # Work that a reviewer sends back is a new request: review took none of the agent's time.
        workflow.supersede_request(request, task.assignee)
    elif before.checkpoint != task.checkpoint and not reason.timeout:
        # The agent is told where to continue: a new request within the deadline of the first.
        workflow.supersede_request(request, task.assignee, request.deadline)


def _pass_request_on(
    workflow: IntentWorkflow, request: OpenRequest, owner: str, reason: _MoveReason
) -> None:
    """End the request, because the task has another owner or none."""
    if reason.timeout is None:
        workflow.supersede_request(request, owner)
        return
    workflow.complete_request(request, reason.timeout)
    if owner:
        workflow.request_if_permitted(owner)


def _is_with_failed_agent(workflow: IntentWorkflow, request: OpenRequest) -> bool:
    owner = workflow.task.assignee
    return owner != request.agent and owner in workflow.intent.failed


def _return_to_failed(workflow: IntentWorkflow, request: OpenRequest) -> None:
    """End the request of a task that a handoff has returned to an agent that failed it, and try the
    next agent.
    """
    workflow.supersede_request(request, "")
    if workflow.task.handoff is None:
        workflow.try_next(f"it is back with {workflow.task.assignee}, who has failed it")


def _attempt_report(task: Task, request: OpenRequest) -> Report | None:
    """Report that ended the attempt of this request; None: it has not ended."""
    report = task.reported
    if report is None or task.status == "in-progress":
        return None
    counts = report.attempt > request.after and report.agent == request.agent
    return report if counts else None
