"""Reactions: the concepts that follow an event of a task, in the same transaction.

`REACTIONS` is the whole interplay of tasks with waves, intents and handoffs: a decider knows only
its own concept. A reaction is a pure function that sees what was decided so far and adds events.
Each runs at most once for a task, in the order of the table, so nothing goes round in circles.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.actor import HUB_NAME
from dragoman.core.agent import AgentAssigned, AgentRated, AgentRelieved
from dragoman.core.attempt import ExpireLease
from dragoman.core.attempt_state import (
    Report,
    TaskCheckpointed,
    TaskClaimed,
    TaskReported,
    TaskRequeued,
)
from dragoman.core.base import Command, Event
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import COORDINATOR, letter_event
from dragoman.core.handoff.complete import COMPLETION_NOTE_KIND, completion_events
from dragoman.core.handoff.reject import hub_rejection_events
from dragoman.core.handoff.sla import blocked_letter_event, sla_breach
from dragoman.core.handoff.state import (
    STAGE_LABELS,
    Handoff,
    HandoffEscalated,
    HandoffExtended,
    HandoffNoted,
    HandoffRejected,
    HandoffTransitioned,
)
from dragoman.core.ids import handoff_stream, intent_stream, task_stream
from dragoman.core.intent import state as intent_state
from dragoman.core.intent.request_workflow import (
    GIVEN_UP_STATUSES,
    OPEN_STATUSES,
    IntentWorkflow,
    RequestOutcome,
    fold_task_events,
    is_request_overdue,
)
from dragoman.core.intent.results import result_digest, timeout_outcome
from dragoman.core.limits import MAX_REASON, MAX_TEXT, MAX_UPDATES
from dragoman.core.mail import MailAnswered, MailPosted
from dragoman.core.question import ended_task_events
from dragoman.core.read import Decision, Read, StreamEvents, TimedEvent
from dragoman.core.task import handoff_ended_by_rewind
from dragoman.core.task_state import (
    TASK_FOLDS,
    DelegationRequested,
    Task,
    TaskEdited,
    TaskHandedOver,
    TaskLinked,
    TaskProgressed,
    TaskRewound,
    TaskTransitioned,
    TaskUnblocked,
    TaskUnlinked,
    status_change_of,
)
from dragoman.core.timestamps import to_rfc3339
from dragoman.core.wave import STUCK_STATUSES, Wave

FAILURE_TYPE_KEY: Final = "failure_type"
"""Key of a report's details that names the type of failure."""


class Change(Struct, frozen=True):
    """A change that a reaction may follow: the command, and what was decided so far."""

    command: Command
    stream: str
    """Stream with the events that the reaction follows."""
    events: StreamEvents
    """All events so far, of all streams."""
    read: Read
    now: int

    @property
    def task(self) -> Task | None:
        """The task before the change; None: it is created by it."""
        task = self.read.task(self.stream.partition(":")[2])
        return None if isinstance(task, Refusal) or task_stream(task.id) != self.stream else task

    @property
    def own_events(self) -> list[Event]:
        """Events of the stream so far."""
        return [event for stream, event in self.events if stream == self.stream]

    def has_events_of(self, stream: str) -> bool:
        """Return whether the command, or an earlier reaction, has changed this stream already."""
        return any(name == stream for name, _ in self.events)


# --- waves: limit of retries ------------------------------------------------------------------


def limit_retries(change: Change) -> StreamEvents:
    """Block a bead that has failed too often in one way.

    Later would be too late: a fast agent claims it while it is ready.
    """
    before = change.task
    assert before is not None, "an attempt on it has ended"
    task = fold_task_events(before, change.events, change.now)
    if task.status != "ready":
        return ()
    waves = [
        wave
        for wave in change.read.open_waves()
        if wave.retries and any(bead.task == task.id for bead in wave.beads)
    ]
    if not waves:
        return ()
    new_events = ((event, change.now) for event in change.own_events)
    history = (*change.read.history(change.stream), *new_events)
    reason = next(filter(None, (exceeded_retry_limit(wave, history) for wave in waves)), "")
    return ((change.stream, TaskTransitioned("ready", "blocked", reason)),) if reason else ()


def exceeded_retry_limit(wave: Wave, history: Iterable[TimedEvent]) -> str:
    """Reason why a task with this history is not retried in a wave; empty: it may be."""
    for type, count in _count_failures(history, wave.started_at).items():
        allowed = wave.retries.get(type)
        if allowed is not None and count > allowed:
            retries = "1 retry" if allowed == 1 else f"{allowed} retries"
            often = "once" if count == 1 else f"{count} times"
            return f"failed {often} with {type}; wave {wave.id} allows {retries}"
    return ""


def _count_failures(history: Iterable[TimedEvent], since: int) -> Counter[str]:
    """Count failed attempts on a task since a time, by type of failure.

    An attempt that ended in a checkpoint counts by the reason of that. A report counts once it has
    taken effect.
    """
    failures: dict[int, str] = {}
    reported: TaskReported | None = None
    attempt: int | None = None
    for event, at in history:
        if isinstance(event, TaskClaimed):
            attempt, reported = event.attempt, None
        if isinstance(event, TaskReported):
            reported = event
        if isinstance(event, TaskTransitioned | TaskRequeued | TaskRewound):
            # A checkpoint that is set while nobody works on the task belongs to no attempt.
            attempt = None
        if isinstance(event, TaskTransitioned | TaskRewound) and event.from_ in STUCK_STATUSES:
            # Somebody gave it another chance: the count starts again.
            failures.clear()
        if at < since:
            continue
        if isinstance(event, TaskCheckpointed) and attempt is not None:
            failures[attempt] = event.reason
        if isinstance(event, TaskRequeued) and event.by_report and reported is not None:
            # Dialects without types of failure, such as CCOS, tell of an error.
            type = reported.details.get(FAILURE_TYPE_KEY)
            failures[reported.attempt] = type if isinstance(type, str) else "ERROR"
    return Counter(failures.values())


# --- intents: requests in step with their task ------------------------------------------------

_PERCENT: Final = re.compile(r"\s*(100|[0-9]{1,2}(?:\.[0-9]+)?) ?%\s*")

_EMPTY_VALUES: Final[tuple[object, ...]] = ("", None, (), [], {})

_FAILURE_OUTCOMES: Final = ("failed", "blocked")


def settle_intent(change: Change) -> StreamEvents | Refusal:
    """Close, renew or supersede the open request of the task's intent, as the task has changed.

    An action of the worker after the deadline is refused, and so is giving the task to an agent
    that its intent may not go to. An intent that its own command has changed is left to that.
    """
    before, read, now = change.task, change.read, change.now
    intent = None if before is None else intent_state.intent_of_task(before, read.intent)
    if before is None or intent is None or change.has_events_of(intent_stream(intent.id)):
        return ()
    request = intent.request
    late = None if request is None or not is_request_overdue(before, request, now) else request
    if late and _is_by_worker(change, late):
        ended = to_rfc3339(late.deadline or now)
        return Refusal("anomaly", f"{intent.id}: it is late: {late.id} ended at {ended}")
    reason = _move_reason(change, timeout_outcome(before, late, now) if late else None)
    workflow = IntentWorkflow(intent, fold_task_events(before, change.events, now), read, now)
    first = next(event for event in change.own_events if INTENT in REACTIONS.get(type(event), ()))
    if isinstance(first, TaskProgressed):
        _record_progress(workflow, first, read)
    if isinstance(first, TaskRewound):
        _sync_rewind(workflow)
    else:
        _reconcile(workflow, before, reason)
    if workflow.is_owner_vetoed and _is_assignment(change):
        reasons = "; ".join(workflow.intent.reasons)
        detail = f"{workflow.task.assignee} may not have the intent {workflow.intent.id}"
        return Refusal("policy_violation", f"{detail}: {reasons}"[:MAX_REASON])
    return workflow.events


def _is_by_worker(change: Change, request: intent_state.OpenRequest) -> bool:
    """Return whether the requested agent, or one that claims the task, caused the events."""
    actor = change.read.actor
    if actor.role != "agent":
        return False
    return request.agent == actor.name or any(
        isinstance(event, TaskClaimed) for event in change.own_events
    )


def _is_assignment(change: Change) -> bool:
    """Return whether the change gives the task to an agent, other than by a handoff."""
    return not any(stream.startswith(handoff_stream("")) for stream, _ in change.events) and any(
        isinstance(event, TaskClaimed) or (isinstance(event, TaskEdited) and event.reserved_for)
        for event in change.own_events
    )


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


def progress_update(
    intent: intent_state.Intent, request: intent_state.OpenRequest, event: TaskProgressed
) -> intent_state.IntentUpdated:
    """Progress of a task as an update of its request; a percentage only if one is stated."""
    share = _PERCENT.fullmatch(event.progress)
    progress = None if share is None else float(share[1])
    message = "; ".join(filter(None, (event.progress, event.notes, *event.blockers)))
    return intent_state.IntentUpdated(
        intent.id, request.id, request.agent, progress, message[:MAX_TEXT]
    )


def _record_progress(workflow: IntentWorkflow, event: TaskProgressed, read: Read) -> None:
    """Record progress by the agent of the open request as an update of the intent."""
    intent, request = workflow.intent, workflow.intent.request
    if request is None or request.agent != read.actor.name or intent.updates >= MAX_UPDATES:
        return
    workflow.record_intent(progress_update(intent, request, event))


class _MoveReason(Struct, frozen=True):
    """Reason for which the task was moved."""

    reason: str = ""
    """As stated by whoever moved it."""
    cancelled: str = ""
    """Canceller of the task and the reason; empty: it was not cancelled."""
    timeout: RequestOutcome | None = None
    """Timeout that ended the open request before, if its deadline had passed."""


def _move_reason(change: Change, timeout: RequestOutcome | None) -> _MoveReason:
    """Reason of the last transition of the task."""
    result = _MoveReason(timeout=timeout)
    for event in change.own_events:
        if isinstance(event, TaskTransitioned):
            reason = f": {event.reason}" if event.reason not in ("", event.to) else ""
            by = change.read.actor.label
            cancelled = f"cancelled by {by}{reason}" if event.to == "cancelled" else ""
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
    if workflow.intent.state not in intent_state.RENEWABLE_STATES:
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
    workflow: IntentWorkflow, request: intent_state.OpenRequest, before: Task, reason: _MoveReason
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
    workflow: IntentWorkflow, request: intent_state.OpenRequest, before: Task, reason: _MoveReason
) -> None:
    """Keep the request with its agent: it is in review, or the agent is to begin once more."""
    task = workflow.task
    if task.status == "review":
        if reason.timeout:
            workflow.complete_request(request, reason.timeout)
        elif before.status != "review":
            workflow.rest_request(request)
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
    workflow: IntentWorkflow, request: intent_state.OpenRequest, owner: str, reason: _MoveReason
) -> None:
    """End the request, because the task has another owner or none."""
    if reason.timeout is None:
        workflow.supersede_request(request, owner)
        return
    workflow.complete_request(request, reason.timeout)
    if owner:
        workflow.request_if_permitted(owner)


def _is_with_failed_agent(workflow: IntentWorkflow, request: intent_state.OpenRequest) -> bool:
    owner = workflow.task.assignee
    return owner != request.agent and owner in workflow.intent.failed


def _return_to_failed(workflow: IntentWorkflow, request: intent_state.OpenRequest) -> None:
    """End the request of a task that a handoff has returned to an agent that failed it, and try the
    next agent.
    """
    workflow.supersede_request(request, "")
    if workflow.task.handoff is None:
        workflow.try_next(f"it is back with {workflow.task.assignee}, who has failed it")


def _attempt_report(task: Task, request: intent_state.OpenRequest) -> Report | None:
    """Report that ended the attempt of this request; None: it has not ended."""
    report = task.reported
    if report is None or task.status == "in-progress":
        return None
    counts = report.attempt > request.after and report.agent == request.agent
    return report if counts else None


# --- handoffs: in step with their task (S-OWN) ------------------------------------------------


def settle_handoff(change: Change) -> StreamEvents:
    """Complete, reject or escalate the active handoff of the task, as the task has changed.

    A handoff that its own command has changed is left to that.
    """
    task = change.task
    if task is None or task.handoff is None:
        return () if task is None else _tell_of_rework(change, task)
    if change.has_events_of(handoff_stream(task.handoff.id)):
        return ()
    handoff = change.read.handoff(task.handoff.id)
    if handoff is None:
        return ()
    report = fold_task_events(task, change.events, change.now).reported
    handed = _HandedOverTask(change, report, handoff, task)
    for event in change.own_events:
        settle = _HANDOFF_REACTIONS.get(type(event))
        events = settle(event, handed) if settle else ()
        if events:
            return events
    return _tell_of_obstacle(handed) if handoff.status == "activated" else ()


def _tell_of_rework(change: Change, task: Task) -> StreamEvents:
    """Tell both sides of a completed handoff that the work was sent back to its recipient."""
    moved = next((one for one in change.own_events if isinstance(one, TaskTransitioned)), None)
    if moved is None or (moved.from_, moved.to) != ("review", "ready") or not task.chain:
        return ()
    read, history = change.read, change.read.history(change.stream)
    over = [event.handoff for event, _ in history if isinstance(event, TaskHandedOver)]
    handoff = read.handoff(over[-1]) if over else None
    if handoff is None or handoff.recipient != task.assignee:
        return ()
    fields = {"task_id": task.id, "text": moved.other_text or moved.reason}
    letters = (
        ("status.update", handoff.recipient, {**fields, "kind": "offer"}),
        ("knowledge.push", handoff.sender, {**fields, "sent_back_to": handoff.recipient}),
    )
    return tuple(
        letter_event(read, kind, (to,), handoff, said, speaker=HUB_NAME)
        for kind, to, said in letters
        if to != read.actor.name
    )


class _HandedOverTask(Struct, frozen=True):
    """A changed task with an active handoff."""

    change: Change
    report: Report | None
    """Report of the attempt, unless the change drops it."""
    handoff: Handoff
    task: Task

    @property
    def read(self) -> Read:
        return self.change.read


def _on_transition(event: TaskTransitioned, handed: _HandedOverTask) -> StreamEvents:
    """React to a transition: a task that is cancelled, or finished by its sender, needs no handoff.

    If the recipient has brought the task to review or done, the handoff is complete.
    """
    handoff, task = handed.handoff, handed.task
    if handoff.status == "activated" and event.to in ("review", "done"):
        note, report = _completion_note(event, handed), handed.report
        outcome = "partial" if report is not None and report.outcome == "partial" else ""
        return completion_events(handoff, task, handed.read, note, outcome=outcome)
    # Partial work, and work in review, can still be handed on.
    if _is_intent_given_up(event, handed):
        return hub_rejection_events(
            handoff, task, f"{task.id} was given up by {task.assignee}", handed.read
        )
    is_finished = event.to in ("done", "cancelled")
    is_handed_in = handed.report is not None and handed.report.outcome == "done"
    if is_finished or (event.to == "review" and is_handed_in):
        return _end_handoff(handoff, replace(task, status=event.to), handed.read)
    return ()


def _completion_note(event: TaskTransitioned, handed: _HandedOverTask) -> HandoffNoted:
    """Completion note: by whom, and in which words.

    A report is attributed to its agent, whoever ends the session in which it takes effect.
    """
    report = handed.report
    if report is not None and event.by_report and not report.by:
        return HandoffNoted(report.agent, COMPLETION_NOTE_KIND, report.notes)
    return HandoffNoted(handed.read.actor.name, COMPLETION_NOTE_KIND, event.reason)


def _is_intent_given_up(event: TaskTransitioned, handed: _HandedOverTask) -> bool:
    """Return whether the intent of the task was given up before the recipient activated it."""
    if event.to != "deadletter" or handed.handoff.status == "activated":
        return False
    return intent_state.intent_of_task(handed.task, handed.read.intent) is not None


def _end_handoff(handoff: Handoff, task: Task, read: Read) -> StreamEvents:
    detail = f"{task.id} has ended before it was handed over"
    if handoff.status == "activated":
        detail = f"{task.id} was cancelled"
    return hub_rejection_events(handoff, task, detail, read)


def _on_edit(event: TaskEdited, handed: _HandedOverTask) -> StreamEvents:
    """React to a new owner: the task was delegated to another agent, because its owner failed an
    intent.
    """
    handoff, task = handed.handoff, handed.task
    if event.reserved_for in (None, task.assignee):
        return ()
    to = event.reserved_for
    return hub_rejection_events(
        handoff, task, f"{task.id} was reassigned to {to}", handed.read, owner=to
    )


def _on_rewind(event: TaskRewound, handed: _HandedOverTask) -> StreamEvents:
    """React to a rewind: it undoes what was taken over since, and what was proposed is not the
    task's any more.
    """
    handoff, task = handed.handoff, handed.task
    if handoff_ended_by_rewind(task, event.restored) is None:
        return ()
    owner = event.restored.assignee
    return hub_rejection_events(handoff, task, f"{task.id} was rewound", handed.read, owner=owner)


def _on_checkpoint(event: TaskCheckpointed, handed: _HandedOverTask) -> StreamEvents:
    """React to a checkpoint: the recipient leaves the work to a successor, which ends its part."""
    handoff, task = handed.handoff, handed.task
    if handoff.status != "activated" or task.status != "in-progress":
        return ()
    text = f"checkpoint: {event.reason}" + (f": {event.description}" if event.description else "")
    note = HandoffNoted(handed.read.actor.name, COMPLETION_NOTE_KIND, text)
    return completion_events(handoff, task, handed.read, note, is_checkpoint=True)


def _tell_of_obstacle(handed: _HandedOverTask) -> StreamEvents:
    """Tell the sender and the coordinators that the recipient does not go on, and why."""
    stuck: list[Any] = [event for event in handed.change.own_events if _is_obstacle(event)]
    handoff, read, report = handed.handoff, handed.read, handed.report
    parties = dict.fromkeys((handoff.sender, *read.coordinators()))
    recipients = tuple(name for name in parties if name != read.actor.name)
    if not stuck or not recipients:
        return ()
    after = fold_task_events(handed.task, handed.change.events, handed.change.now)
    words = "" if report is None else "; ".join(report.blockers) or report.notes
    issue = f"{handoff.task} is {after.status}: {words or after.obstacle or stuck[-1].reason}"
    return (blocked_letter_event(read, recipients, handoff, issue, "reassign"),)


def _is_obstacle(event: Any) -> bool:
    is_moved = isinstance(event, TaskTransitioned) and event.to in ("blocked", "deadletter")
    return is_moved or (isinstance(event, TaskRequeued) and event.by_report)


def _on_requeue(_: TaskRequeued, handed: _HandedOverTask) -> StreamEvents:
    """React to an expired lease: the handoff stays, and the coordinators are notified at once."""
    handoff, command = handed.handoff, handed.change.command
    if handoff.status != "activated" or not isinstance(command, ExpireLease):
        return ()
    lease = handed.read.lease(handed.task)
    assert lease is not None, "a task that is requeued had a lease"
    escalation = HandoffEscalated(
        "lease_lost",
        STAGE_LABELS[handoff.status],
        COORDINATOR,
        sla_ms=lease.ttl_ms,
        elapsed_ms=max(0, handed.change.now - lease.last_heartbeat),
        recommended="reassign",
        task=handoff.task,
    )
    after = fold_task_events(handed.task, handed.change.events, handed.change.now)
    told = (*command.notify, handoff.sender) if after.status == "deadletter" else command.notify
    letter = blocked_letter_event(handed.read, told, handoff, "lease_lost", "reassign")
    return ((handoff_stream(handoff.id), escalation), letter)


_HandoffReaction = Callable[[Any, _HandedOverTask], StreamEvents]

_HANDOFF_REACTIONS: Final[dict[type[Event], _HandoffReaction]] = {
    TaskTransitioned: _on_transition,
    TaskEdited: _on_edit,
    TaskRewound: _on_rewind,
    TaskCheckpointed: _on_checkpoint,
    TaskRequeued: _on_requeue,
}


def record_sla_breach(change: Change) -> StreamEvents:
    """Record a stage of a handoff that was overdue when it ended or was extended.

    That happens if no hub was running when the SLA was breached. Nobody is notified, because
    nothing is left to be done about it.
    """
    handoff = change.read.handoff(change.stream.partition(":")[2])
    if handoff is None or not handoff.is_overdue(change.now):
        return ()
    return ((change.stream, sla_breach(handoff, change.now, to="")),)


# --- questions: the letters that ask them end with their task (S-MAIL-9) -----------------------


def close_help_requests(change: Change) -> StreamEvents:
    """Close the letters that ask for help with a task that has ended."""
    task = change.task
    if task is None or not task.questions:
        return ()
    after = fold_task_events(task, change.events, change.now)
    return ended_task_events(task, after.status, change.read) if after.is_final else ()


# --- table ------------------------------------------------------------------------------------


class Reaction(Struct, frozen=True, eq=False):
    """Reaction of one concept to the events that the table names."""

    concept: str
    run: Callable[[Change], StreamEvents | Refusal]
    """Events to add; or the refusal of the command."""
    emits: frozenset[type[Event]]
    """Events that it may add."""


WAVE: Final = Reaction("wave", limit_retries, frozenset({TaskTransitioned}))
INTENT: Final = Reaction(
    "intent",
    settle_intent,
    frozenset(
        {
            TaskTransitioned,
            TaskEdited,
            intent_state.IntentProposed,
            intent_state.IntentApproved,
            intent_state.IntentRejected,
            intent_state.IntentDispatched,
            intent_state.IntentUpdated,
            intent_state.IntentCompleted,
            intent_state.IntentFeedbackApplied,
            intent_state.IntentSatisfied,
            intent_state.IntentNeedsFollowUp,
            intent_state.IntentSuperseded,
            AgentAssigned,
            AgentRated,
            AgentRelieved,
        }
    ),
)
HANDOFF: Final = Reaction(
    "handoff",
    settle_handoff,
    frozenset(
        {
            HandoffTransitioned,
            HandoffRejected,
            HandoffNoted,
            HandoffEscalated,
            TaskHandedOver,
            MailPosted,
        }
    ),
)
HANDOFF_SLA: Final = Reaction("handoff SLA", record_sla_breach, frozenset({HandoffEscalated}))
QUESTION: Final = Reaction("question", close_help_requests, frozenset({MailPosted, MailAnswered}))

REACTION_ORDER: Final = (WAVE, INTENT, HANDOFF, HANDOFF_SLA, QUESTION)
"""Each sees what those before it have added; none follows what a later one adds."""

REACTIONS: Final[dict[type[Event], tuple[Reaction, ...]]] = {
    TaskClaimed: (INTENT,),
    TaskReported: (INTENT,),
    TaskProgressed: (INTENT,),
    TaskTransitioned: (INTENT, HANDOFF, QUESTION),
    TaskRequeued: (WAVE, INTENT, HANDOFF),
    TaskCheckpointed: (WAVE, INTENT, HANDOFF),
    TaskEdited: (INTENT, HANDOFF),
    TaskRewound: (INTENT, HANDOFF),
    TaskLinked: (INTENT,),
    TaskUnlinked: (INTENT,),
    TaskUnblocked: (INTENT,),
    DelegationRequested: (INTENT,),
    HandoffTransitioned: (HANDOFF_SLA,),
    HandoffExtended: (HANDOFF_SLA,),
}
"""Event -> the concepts that follow it, in this order."""

UNFOLLOWED: Final = frozenset(TASK_FOLDS) - frozenset(REACTIONS)
"""Events of a task that no other concept follows."""


def react(command: Command, decision: Decision, read: Read, now: int) -> Decision | Refusal:
    """Extend a decision by the reactions to its events."""
    if {type(event) for _, event in decision.events}.isdisjoint(REACTIONS):
        return decision
    for reaction in REACTION_ORDER:
        streams = dict.fromkeys(
            stream
            for stream, event in decision.events
            if reaction in REACTIONS.get(type(event), ())
        )
        for stream in streams:
            added = reaction.run(Change(command, stream, decision.events, read, now))
            if isinstance(added, Refusal):
                return added
            if added:
                assert {type(event) for _, event in added} <= reaction.emits, reaction.concept
                decision = _extend(decision, added)
    return decision


def _extend(decision: Decision, added: StreamEvents) -> Decision:
    """The decision with these events; its receipt shows the status that they lead to."""
    receipt = decision.receipt
    for stream, event in added:
        change = status_change_of(event)
        if change is not None and stream == task_stream(receipt.task):
            receipt = replace(receipt, status=change.to)
    return replace(decision, events=(*decision.events, *added), receipt=receipt)
