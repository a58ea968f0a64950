"""Delegate and cancel intents."""

from collections.abc import Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from dragoman.core import limits, not_found
from dragoman.core.actor import Actor
from dragoman.core.authority import MAY_DELEGATE, check_write
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_id, intent_stream, task_stream
from dragoman.core.intent.candidate import Policy
from dragoman.core.intent.governance import NO_AGENTS, agent_visible_texts, forbidden_goal_reason
from dragoman.core.intent.request_workflow import (
    MAX_SHOWN_VETOES,
    IntentWorkflow,
    fold_task_events,
)
from dragoman.core.intent.state import (
    INTENT_FOLDS,
    RENEWABLE_STATES,
    CancelIntent,
    ClosedRequest,
    DelegateIntent,
    DelegationTerms,
    Intent,
    IntentCreated,
    IntentRejected,
    OpenRequest,
    intent_of_task,
)
from dragoman.core.read import Decision, LeaseChange, Read, Receipt, StreamEvents
from dragoman.core.task import active_handoff_refusal, create_task, transition_events
from dragoman.core.task_state import (
    INTENT_ALIAS_KIND,
    TASK_FOLDS,
    CreateTask,
    Task,
    TaskAliased,
    TaskCreated,
    TaskTransitioned,
    can_transition,
)
from dragoman.core.timestamps import TIMESTAMP_RANGE, to_rfc3339

# --- delegate ---------------------------------------------------------------------------------

TASK_ORIGIN: Final = "ccos"

_MAX_NAMED_AGENTS: Final = 5
"""At most this many agents are named for one reason."""

_DELEGABLE_STATUSES: Final = ("backlog", "ready")
"""Statuses in which an existing task can be delegated."""


def decide_delegate(command: DelegateIntent, read: Read, now: int) -> Decision | Refusal:
    """Delegate a new intent to the first eligible candidate, or reject it."""
    refusal = check_write(read.actor) or next(filter(None, check_fields(command)), None)
    if refusal:
        return refusal
    command = _normalize_numbers(command)
    id = command.id or read.cause
    refusal = _check_request_id_free(command.request_id, id, read)
    if refusal:
        return refusal
    existing = read.intent(id)
    if existing is not None:
        return _decide_again(command, existing, read, now)
    if command.follows and read.intent(command.follows) is None:
        return not_found.intent(command.follows, "follows")
    task_decision = _check_time_limit(command, now) or _find_or_create_task(command, id, read, now)
    if isinstance(task_decision, Refusal):
        return task_decision
    task = _resulting_task(task_decision, read, now)
    created = IntentCreated(
        id,
        task.id,
        command.goal,
        read.actor.name,
        command.params,
        command.constraints,
        command.skills,
        command.patience_ms,
        command.plan,
        command.follows,
        command.max_agents,
        command.policy,
        command.max_output_bytes,
        command.extra_fields,
    )
    events: StreamEvents = (*task_decision.events, (intent_stream(id), created))
    workflow = IntentWorkflow(INTENT_FOLDS[IntentCreated](None, created, now), task, read, now)
    _offer_or_reject(workflow, command)
    return Decision(
        workflow_receipt(workflow), (*events, *workflow.events), aof_number=task_decision.aof_number
    )


def _check_request_id_free(request_id: str, intent: str, read: Read) -> Refusal | None:
    """Check that no other intent uses this request id: an agent that gets an id twice works on it
    once.
    """
    other = read.requested(request_id) if request_id else ""
    if other in ("", intent):
        return None
    return Refusal(
        "already_exists",
        f"the request id {request_id} is that of a request of intent {other}: use another one",
    )


def workflow_receipt(workflow: IntentWorkflow) -> Receipt:
    """Receipt with the state of the task, about the intent."""
    task = workflow.task
    return Receipt(
        task.id, task.status, task.attempts, task.fence, stream=intent_stream(workflow.intent.id)
    )


def _normalize_numbers(command: DelegateIntent) -> DelegateIntent:
    """The command with numbers that are read back as they were stored."""
    policy = command.policy
    if policy.cost_ceiling is None:
        return command
    exact = replace(policy, cost_ceiling=float(policy.cost_ceiling))
    return replace(command, policy=exact)


def _decide_again(
    command: DelegateIntent, existing: Intent, read: Read, now: int
) -> Decision | Refusal:
    """Decide a repeated delegation: a no-op, or a new start of an intent that was rejected or needs
    follow-up.
    """
    task = read.task(existing.task)
    if isinstance(task, Refusal):
        return task
    workflow = IntentWorkflow(existing, task, read, now)
    refusal = _check_same_goal(command, existing)
    if refusal:
        return refusal
    if command.request_id and read.requested(command.request_id):
        return _check_same_agent(command, existing) or _repeat_decision(workflow, is_recorded=True)
    # Nothing can start with a deadline that has passed: stating it again is a repeat.
    is_late = 0 < command.due_by == existing.due_by <= now
    is_to_begin = existing.state in RENEWABLE_STATES and not task.is_final and not is_late
    if not is_to_begin or task.status == "in-progress":
        return _check_same_agent(command, existing) or _repeat_decision(workflow)
    refusal = _check_may_renew(existing, read.actor) or _check_time_limit(command, now)
    if refusal:
        return refusal
    if task.open_blockers:
        return _blocked_refusal(task)
    if task.handoff is not None:
        return active_handoff_refusal(task, task.handoff)
    _offer_or_reject(workflow, command)
    return Decision(workflow_receipt(workflow), workflow.events)


def _repeat_decision(workflow: IntentWorkflow, *, is_recorded: bool = False) -> Decision:
    """Accept a repeat."""
    return Decision(replace(workflow_receipt(workflow), is_repeat=is_recorded))


def _check_may_renew(existing: Intent, actor: Actor) -> Refusal | None:
    if actor.role in MAY_DELEGATE or actor.name == existing.by:
        return None
    return Refusal(
        "not_authorized",
        f"{actor.label} may not delegate {existing.id} anew: that is up to {existing.by}, a "
        "person, an "
        "orchestrator or a coordinator",
    )


def _check_time_limit(command: DelegateIntent, now: int) -> Refusal | None:
    """Check the deadline of an intent that is to start; a repeat is not checked."""
    if 0 < command.due_by <= now:
        detail = f"the deadline {to_rfc3339(command.due_by)} has passed"
        return Refusal("invalid_field", detail, path="due_by")
    time_limit = command.patience_ms
    if not time_limit:
        return None
    return limits.check_duration(
        "the time until the deadline", time_limit, *limits.WAIT_RANGE_MS, path="due_by"
    )


def _check_same_goal(command: DelegateIntent, existing: Intent) -> Refusal | None:
    """Check that the repeat is about the same goal, plan and followed intent."""
    for field in ("goal", "params", "constraints", "skills"):
        if getattr(command, field) != getattr(existing, field):
            what = "another" if field == "goal" else "other"
            return Refusal(
                "already_exists",
                f"there is an intent {existing.id} with {what} {field}; say the same, or use "
                "another "
                "id",
            )
    for what, stated, has in (
        ("plan", command.plan, existing.plan),
        ("intent that it follows", command.follows, existing.follows),
    ):
        if stated not in ("", has):
            return Refusal(
                "already_exists",
                f"there is an intent {existing.id}, and the {what} is {has or 'none'}, not "
                f"{stated}; use another id",
            )
    return None


def _check_same_agent(command: DelegateIntent, existing: Intent) -> Refusal | None:
    """Check that a named agent is the one that has, or last had, the request."""
    last = _last_request(existing)
    if not command.agent or last is None or last.agent == command.agent:
        return None
    return Refusal(
        "already_exists",
        f"{existing.id} is {existing.state}, and {last.id} went to {last.agent}, not to "
        f"{command.agent}; "
        "use another id, or give its task another owner",
    )


def _last_request(existing: Intent) -> OpenRequest | ClosedRequest | None:
    return existing.request or next(reversed(existing.closed), None)


def _offer_or_reject(workflow: IntentWorkflow, command: DelegateIntent) -> None:
    """Offer the intent to its candidates; if none is eligible, reject it and block its task."""
    texts = agent_visible_texts(workflow.intent, workflow.task, command.extra_fields)
    forbidden = forbidden_goal_reason(command.goal, command.policy, texts)
    if forbidden is None and command.candidates and _offer_to_candidates(workflow, command):
        return
    reasons = (forbidden,) if forbidden else _veto_summaries(workflow) or (NO_AGENTS,)
    new_due_by = 0 if command.due_by == workflow.intent.due_by else command.due_by
    workflow.record_intent(IntentRejected(workflow.intent.id, reasons, due_by=new_due_by))
    status = workflow.task.status
    if status in _DELEGABLE_STATUSES:
        workflow.record_task(
            TaskTransitioned(status, "blocked", "; ".join(reasons)[: limits.MAX_REASON])
        )


def _veto_summaries(workflow: IntentWorkflow) -> tuple[str, ...]:
    """Reasons of the vetoes, each once, with the agents that it concerns."""
    summaries: list[str] = []
    for reason, agents in list(workflow.vetoed.items())[:MAX_SHOWN_VETOES]:
        others = len(agents) - _MAX_NAMED_AGENTS
        more = f" and {others} more" if others > 0 else ""
        summaries.append(f"{', '.join(agents[:_MAX_NAMED_AGENTS])}{more}: {reason}")
    return tuple(summaries)


def _offer_to_candidates(workflow: IntentWorkflow, command: DelegateIntent) -> bool:
    terms = DelegationTerms(
        command.policy,
        command.patience_ms,
        command.max_agents,
        command.max_output_bytes,
        command.extra_fields,
        command.due_by,
    )
    # A new start: agents that failed may try again, after those that have not.
    failed = workflow.intent.failed
    candidates = tuple(sorted(command.candidates, key=lambda one: one.agent in failed))
    return workflow.offer_to_next(candidates, terms, command.request_id)


def _find_or_create_task(
    command: DelegateIntent, id: str, read: Read, now: int
) -> Decision | Refusal:
    """Find the task with the intent's name, or create one that is in no queue yet."""
    alias = f"{INTENT_ALIAS_KIND}:{id}"
    existing = read.task(alias)
    if isinstance(existing, Refusal) and existing.code == "task_not_found":
        existing = read.task(id)
    if isinstance(existing, Task):
        return _use_existing_task(existing, alias, read)
    if existing.code != "task_not_found":
        return existing
    first_line = command.goal.strip().partition("\n")[0]
    return create_task(
        CreateTask(
            first_line[: limits.MAX_TITLE],
            id,
            body=command.goal if command.goal != first_line[: limits.MAX_TITLE] else "",
            review_required=command.review_required,
            aliases=(alias,),
            origin=TASK_ORIGIN,
        ),
        read,
        now,
    )


def _use_existing_task(task: Task, alias: str, read: Read) -> Decision | Refusal:
    if task.status not in _DELEGABLE_STATUSES or read.lease(task) is not None:
        return Refusal(
            "not_ready", f"{task.id} is {task.status}: only a task that is not held is delegated"
        )
    if read.actor.role not in MAY_DELEGATE:
        return Refusal(
            "not_authorized",
            f"{read.actor.label} may not delegate {task.id}, which exists already: that is for a "
            "person, an orchestrator or a coordinator",
        )
    other = intent_of_task(task, read.intent)
    if other is not None:
        return Refusal(
            "already_exists",
            f"{task.id} is the task of intent {other.id} already: delegate that one anew",
        )
    if task.open_blockers:
        return _blocked_refusal(task)
    if task.handoff is not None:
        return active_handoff_refusal(task, task.handoff)
    alias_events: StreamEvents = ()
    if alias not in task.aliases:
        alias_events = ((task_stream(task.id), TaskAliased(alias)),)
    return Decision(Receipt(task.id, task.status), alias_events)


def _resulting_task(task_decision: Decision, read: Read, now: int) -> Task:
    """The task of the intent, after the events of this decision."""
    for _, event in task_decision.events:
        if isinstance(event, TaskCreated):
            return TASK_FOLDS[TaskCreated](None, event, now)
    task = read.task(task_decision.receipt.task)
    assert isinstance(task, Task)
    return fold_task_events(task, task_decision.events, now)


def _blocked_refusal(task: Task) -> Refusal:
    return Refusal("blocked_by_dependency", f"{task.id} waits for {', '.join(task.open_blockers)}")


# --- validation -------------------------------------------------------------------------------


def check_fields(command: DelegateIntent) -> Iterator[Refusal | None]:
    """Check each field of a delegation, in order."""
    yield check_id(command.id, "intent id", "id") if command.id else None
    yield limits.check_text("goal", command.goal, limits.MAX_REASON, minimum=1)
    yield limits.check_json("params", command.params) or _check_size("params", command.params)
    extra = "meta and other fields"
    yield limits.check_json(extra, command.extra_fields) or _check_size(extra, command.extra_fields)
    yield from limits.iter_skill_faults("constraints", command.constraints)
    yield from limits.iter_skill_faults("skills", command.skills)
    yield limits.check_range("due_by", command.due_by, 0, TIMESTAMP_RANGE[1])
    yield limits.check_range(
        "max_output_bytes", command.max_output_bytes, 0, limits.MAX_STORED_OUTPUT_BYTES
    )
    yield check_id(command.plan, "plan", "plan") if command.plan else None
    yield check_id(command.follows, "intent id", "follows") if command.follows else None
    yield check_id(command.request_id, "request id", "request_id") if command.request_id else None
    yield limits.check_range("max_agents", command.max_agents, 1, limits.MAX_TRIES)
    yield limits.check_count("candidates", command.candidates, limits.MAX_CANDIDATES)
    yield from _check_policy_fields(command.policy)


def _check_policy_fields(policy: Policy) -> Iterator[Refusal | None]:
    for field in ("data_locality", "required_skills", "forbidden_goals"):
        yield limits.check_count(f"policy.{field}", getattr(policy, field), limits.MAX_POLICY_RULES)


def _check_size(field: str, value: dict[str, object]) -> Refusal | None:
    size = len(msgspec.json.encode(value))
    if size <= limits.MAX_TEXT:
        return None
    detail = f"{field}: {size} bytes are too many; {limits.MAX_TEXT} are allowed"
    return Refusal("invalid_field", detail, path=field)


# --- cancel -----------------------------------------------------------------------------------


def decide_cancel(command: CancelIntent, read: Read, _: int) -> Decision | Refusal:
    """Cancel the intent's task; its open request ends without counting for or against the agent."""
    task = read.task(command.task)
    if isinstance(task, Refusal):
        return task
    intent = intent_of_task(task, read.intent)
    if intent is None:
        return not_found.intent_of(task.id)
    refusal = limits.check_text("reason", command.reason, limits.MAX_REASON) or _check_may_cancel(
        intent, read.actor
    )
    if refusal:
        return refusal
    receipt = Receipt(
        task.id, "cancelled", task.attempts, task.fence, stream=intent_stream(intent.id)
    )
    if task.status == "cancelled":
        return Decision(receipt)
    if not can_transition(task.status, "cancelled"):
        return _not_cancellable_refusal(intent, task)
    return Decision(
        receipt,
        transition_events(task, "cancelled", command.reason, read),
        LeaseChange(task.id, None) if task.status == "in-progress" else None,
    )


def _check_may_cancel(intent: Intent, actor: Actor) -> Refusal | None:
    if actor.role in MAY_DELEGATE or actor.label == f"agent:{intent.by}":
        return None
    return Refusal(
        "not_authorized",
        f"{actor.label} may not cancel {intent.id}: that is up to {intent.by}, who delegated it, a "
        "person, an orchestrator or a coordinator",
    )


def _not_cancellable_refusal(intent: Intent, task: Task) -> Refusal:
    return Refusal(
        "invalid_transition",
        f"{intent.id} is {intent.state} and its task is {task.status}: there is nothing left to "
        "cancel",
    )
