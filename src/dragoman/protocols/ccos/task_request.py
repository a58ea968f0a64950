"""TaskRequests: what an agent is sent, filled in from the intent and its task."""

from typing import Any

import msgspec
from msgspec import UNSET, Struct

from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff
from dragoman.core.intent.state import Intent
from dragoman.core.task_state import Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.briefing import Briefing, find_briefing
from dragoman.engine.queries.handoffs import handoff_held_by
from dragoman.engine.queries.tasks import find_task
from dragoman.engine.schemas.briefing import briefing_resource
from dragoman.protocols.ccos.wire import BRIEFING_META, TASK_META, ExtendedRequest, TaskRequest


class HandoffInfo(Struct, frozen=True, omit_defaults=True, rename={"from_": "from"}.get):
    """Handoff that the agent has activated (ACP)."""

    handoff_id: str
    from_: str
    package: dict[str, object]
    """Parts of the package about the work, with later updates of the work state."""
    artifacts: dict[str, str] = {}
    """Artifact -> SHA-256 of its verified copy."""


class TaskFacts(Struct, frozen=True, omit_defaults=True):
    """Facts about the task besides its goal, in stable types."""

    task_id: str
    """Id in messages of AOF/1 and in files."""
    title: str
    priority: str
    description: str = ""
    parent: str = ""
    constraints: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    plan_id: str = ""
    follows: str = ""
    acceptance_criteria: tuple[str, ...] = ()
    expected_outputs: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    handed_over: HandoffInfo | None = None


def find_open_request(store: Store, intent: Intent, version: int = 0) -> TaskRequest | None:
    """TaskRequest of the open request of an intent; None: there is none.

    `version` is a version of its task, if it is to be shown as it was then.
    """
    found = None if intent.request is None else find_task(store, intent.task, version)
    if found is None or isinstance(found, Refusal):
        return None
    # Later updates of a handoff do not belong in an earlier state.
    handoff = None if version else handoff_held_by(store, found.task, found.task.assignee)
    return request_of(intent, found.task, handoff, find_briefing(store, found.task, version))


def request_of(
    intent: Intent, task: Task, handoff: Handoff | None = None, briefing: Briefing | None = None
) -> TaskRequest | None:
    """TaskRequest of an intent, given its task, the handoff by which the agent has the task, and
    what the agent has to know besides."""
    request = intent.request
    if request is None:
        return None
    others = dict(intent.extra_fields)
    return ExtendedRequest(
        intent_id=intent.id,
        agent_id=request.agent,
        goal=intent.goal,
        params=dict(intent.params),
        request_id=request.id,
        attempt=request.number,
        deadline=UNSET if request.deadline is None else to_rfc3339(request.deadline),
        meta=_meta(others.pop("meta", {}), _task_facts(task, intent, handoff), briefing),
        others=others,
    )


def request_for_task(
    task: Task,
    agent: str,
    session: str,
    handoff: Handoff | None = None,
    briefing: Briefing | None = None,
) -> TaskRequest:
    """TaskRequest for a task that was created in another dialect."""
    goal = task.title if not task.body else f"{task.title}\n\n{task.body}"
    return TaskRequest(
        intent_id=task.id,
        agent_id=agent,
        goal=goal,
        request_id=session or UNSET,
        attempt=max(task.attempts, 1),
        meta=_meta({}, _task_facts(task, None, handoff), briefing),
    )


def _meta(given: Any, task: TaskFacts, briefing: Briefing | None) -> dict[str, Any]:
    """Metadata of a request: that of the delegator, the task, and the briefing."""
    meta = {**given, TASK_META: msgspec.to_builtins(task)}
    if briefing is not None:
        meta[BRIEFING_META] = msgspec.to_builtins(briefing_resource(briefing))
    return meta


def _task_facts(task: Task, intent: Intent | None, handoff: Handoff | None) -> TaskFacts:
    delegation = task.delegation
    return TaskFacts(
        task_id=task.aof_id,
        title=task.title,
        priority=task.priority,
        description="" if intent is not None and task.body == intent.goal else task.body,
        parent=task.parent,
        constraints=intent.constraints if intent else delegation.constraints if delegation else (),
        skills=intent.skills if intent else (),
        plan_id=intent.plan if intent else "",
        follows=intent.follows if intent else "",
        acceptance_criteria=delegation.acceptance_criteria if delegation else (),
        expected_outputs=delegation.expected_outputs if delegation else (),
        context_refs=delegation.context_refs if delegation else (),
        handed_over=handoff and _handoff_info(handoff),
    )


def _handoff_info(handoff: Handoff) -> HandoffInfo:
    return HandoffInfo(handoff.id, handoff.sender, handoff.work_summary(), dict(handoff.artifacts))
