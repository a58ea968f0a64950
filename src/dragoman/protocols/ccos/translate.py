"""Translate CCOS messages and arguments to commands, all or none."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.core.actor import Actor
from dragoman.core.agent import DescribeAgent, RegisterAgent
from dragoman.core.attempt import ReportOutcome
from dragoman.core.errors import Refusal
from dragoman.core.ids import check_agent
from dragoman.core.intent.candidate import Candidate, Requirements, ScoreParts
from dragoman.core.intent.results import result_digest
from dragoman.core.intent.state import CancelIntent, DelegateIntent, ReceiveResult, UpdateIntent
from dragoman.core.limits import MAX_REASON
from dragoman.core.notice import Notice
from dragoman.core.task_state import INTENT_ALIAS_KIND, UpdateTask
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.help_case import help_commands
from dragoman.engine.operation import Facts, Fault, OfferAnswer, fault_from_refusal
from dragoman.engine.queries.agents import find_agent
from dragoman.engine.queries.intents import find_intent
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.request import Commands
from dragoman.engine.work_answers import (
    begin_work,
    is_delegated_to,
    is_requested_of,
    named_task,
)
from dragoman.protocols.ccos.notice import to_notice
from dragoman.protocols.ccos.parse import InvalidResult
from dragoman.protocols.ccos.settings import Choices
from dragoman.protocols.ccos.wire import (
    AgentTerms,
    Cancel,
    Delegate,
    Register,
    TaskRequest,
    TaskResult,
    TaskUpdate,
    extra_fields,
)

# --- registry ---------------------------------------------------------------------------------

NAME = "ccos"


def register_commands(args: Register, facts: Facts) -> Commands:
    """Register an agent that is unknown, and describe its skills."""
    described = _describe_command(args.agent_id, args.skills, args, args.reach)
    return (*_register_if_new(args.agent_id, args.speaks, facts), described)


def _register_if_new(name: str, speaks: tuple[str, ...], facts: Facts) -> Commands:
    known = find_agent(facts.store, name)
    if known is not None and speaks in ((), known.speaks):
        return ()
    return (RegisterAgent(name, known.role if known else "agent", speaks or (NAME,)),)


def _describe_command(
    name: str, skills: tuple[str, ...], terms: AgentTerms, reach: str
) -> DescribeAgent:
    return DescribeAgent(
        name,
        skills,
        terms.constraints,
        terms.locality,
        terms.trust,
        terms.cost,
        terms.latency_ms,
        terms.capacity,
        reach,
    )


# --- delegation -------------------------------------------------------------------------------


def delegate_commands(args: Delegate, facts: Facts, choices: Choices) -> Commands | Fault:
    """Delegate a goal to the best candidates."""
    now = facts.now()
    if args.within_ms and args.deadline:
        return Fault("invalid_field", "say either deadline or within_ms, not both", "within_ms")
    due_by = _parse_due_by(args.deadline or UNSET)
    if isinstance(due_by, Fault):
        return due_by
    time_limit = args.within_ms or _time_limit(due_by, now, choices)
    requirements = Requirements(args.goal, args.constraints, args.skills, time_limit)
    return (
        DelegateIntent(
            args.goal,
            args.intent_id or "",
            args.params,
            args.constraints,
            args.skills,
            time_limit,
            args.plan_id,
            args.follows,
            choices.max_agents,
            candidates=facts.registry.shortlist(
                requirements, choices.policy, now, choices.concurrency
            ),
            policy=choices.policy,
            due_by=due_by,
            max_output_bytes=choices.max_output_bytes,
            review_required=choices.review_required,
        ),
    )


def request_commands(message: TaskRequest, facts: Facts, choices: Choices) -> Commands | Fault:
    """Delegate a goal to one named agent; governance applies all the same."""
    now = facts.now()
    misnamed = check_agent(message.agent_id)
    if misnamed is not None:
        return fault_from_refusal(misnamed, "agent_id")
    due_by = _parse_due_by(message.deadline)
    if isinstance(due_by, Fault):
        return due_by
    time_limit = _time_limit(due_by, now, choices)
    requirements = Requirements(message.goal, patience_ms=time_limit)
    ranked = facts.registry.rank(requirements, now, choices.policy, message.agent_id)
    unknown = Candidate(message.agent_id, 0.0, ScoreParts(), 0.0)
    named = next((one for one in ranked if one.agent == message.agent_id), unknown)
    return (
        DelegateIntent(
            message.goal,
            message.intent_id,
            message.params,
            patience_ms=time_limit,
            max_agents=1,
            candidates=(named,),
            policy=choices.policy,
            agent=message.agent_id,
            request_id=message.request_id or "",
            due_by=due_by,
            max_output_bytes=choices.max_output_bytes,
            review_required=choices.review_required,
            extra_fields=extra_fields(message),
        ),
    )


def _parse_due_by(deadline: str | UnsetType) -> int | Fault:
    """Parse a deadline; 0: none. A past one is allowed here, because it may be a repeat."""
    if deadline is UNSET:
        return 0
    try:
        return parse_rfc3339(deadline)
    except ValueError as error:
        return Fault("invalid_field", str(error), "deadline")


def _time_limit(due_by: int, now: int, choices: Choices) -> int:
    return max(due_by - now, 0) if due_by else choices.patience_ms


def cancel_commands(args: Cancel, _: Actor, facts: Facts) -> Commands | Fault:
    """Cancel the intent's task; its open request ends without feedback for the agent."""
    intent = find_intent(facts.store, args.intent_id)
    if isinstance(intent, Refusal):
        return fault_from_refusal(intent, "intent_id")
    return (CancelIntent(f"{INTENT_ALIAS_KIND}:{intent.id}", args.reason),)


# --- results and updates ----------------------------------------------------------------------


def result_commands(
    message: TaskResult | InvalidResult, facts: Facts, choices: Choices
) -> Commands:
    """Translate a result; a malformed one becomes an anomaly of its intent."""
    if isinstance(message, InvalidResult):
        intent, agent, request_id = message.intent_id, message.agent_id, message.request_id
        return (ReceiveResult(intent, agent, False, request_id=request_id, fault=message.reason),)
    output = None if message.output is UNSET else message.output
    encoded = msgspec.json.encode(output, order="deterministic")
    size = len(encoded)
    is_kept = size <= choices.max_output_bytes or output is None
    # What is not stored does not enter the writer's transaction either.
    digest = (
        "" if is_kept else result_digest(message.success, msgspec.Raw(encoded), message.error_text)
    )
    if _is_plain_task(message, facts):
        omitted: dict[str, object] = {"left_out": size, "digest": digest}
        return (_report_command(message, omitted if digest else _output_details(output)),)
    command = ReceiveResult(
        message.intent_id,
        message.agent_id,
        message.success,
        output,
        message.error_text,
        message.request_id or "",
        attempt=message.attempt or 0,
        extra_fields=_storable_extra(extra_fields(message), choices),
    )
    if is_kept:
        return (command,)
    return (msgspec.structs.replace(command, output=None, left_out=size, digest=digest),)


def _storable_extra(extra: dict[str, Any], choices: Choices) -> dict[str, Any]:
    """Further content of a result within the limit; else it is only in the original text."""
    return extra if len(msgspec.json.encode(extra)) <= choices.max_output_bytes else {}


def _is_plain_task(message: TaskResult | TaskUpdate, facts: Facts) -> bool:
    """Return whether the message is about a task without an intent (S-ADOPT the other way).

    It must come from the task's owner, from the agent of its last report, or from the one that
    it was offered or delegated to.
    """
    if not isinstance(find_intent(facts.store, message.intent_id), Refusal):
        return False
    found = find_task(facts.store, message.intent_id)
    if isinstance(found, Refusal):
        return False
    report, handoff = found.task.reported, found.task.handoff
    return is_delegated_to(found.task, message.agent_id) or message.agent_id in (
        found.task.assignee,
        report.agent if report else "",
        handoff.recipient if handoff else "",
    )


def answer_request(notice: Notice, actor: Actor, facts: Facts) -> OfferAnswer | None:
    """The answer that a notice of another dialect gives to the open request of its task."""
    task = named_task(notice, facts)
    if task is None or not is_requested_of(task, actor.name):
        return None
    if is_delegated_to(task, actor.name):  # which its dialect answers
        return None
    if notice.kind == "rejected":
        reason = (notice.text or notice.reason)[:MAX_REASON]
        return OfferAnswer((ReportOutcome(task.id, "failed", reason, apply=True),))
    return begin_work(notice, task, actor)


def _output_details(output: object) -> dict[str, object]:
    return {} if output is None else {"output": output}


def _report_command(message: TaskResult, details: dict[str, object]) -> ReportOutcome:
    """Report on a task that was created in another dialect."""
    return ReportOutcome(
        message.intent_id,
        "done" if message.success else "failed",
        message.error_text[:MAX_REASON],
        details=details,
        apply=True,
        once=True,
        attempt=message.attempt or 0,
    )


def update_commands(message: TaskUpdate, actor: Actor, facts: Facts, choices: Choices) -> Commands:
    """Translate an update; a chunk is stored if an output of its size would be.

    One whose `meta.kind` asks for help, or answers, concerns the help case of its task.
    """
    notice = to_notice(message)
    asked = help_commands(notice, actor, facts.store) if notice is not None else ()
    if asked:
        return asked
    progress = None if message.progress is UNSET else message.progress
    percent = progress if progress is None or progress > 1 else 100 * progress
    partial = None if message.partial is UNSET else message.partial
    is_kept = len(msgspec.json.encode(partial)) <= choices.max_output_bytes
    if _is_plain_task(message, facts):
        share = "" if percent is None else f"{percent:g} %"
        return (UpdateTask(message.intent_id, progress=share, notes=message.message or ""),)
    return (
        UpdateIntent(
            message.intent_id,
            message.agent_id,
            percent,
            message.message or "",
            message.request_id or "",
            message.sequence or 0,
            partial if is_kept else None,
            message.attempt or 0,
        ),
    )
