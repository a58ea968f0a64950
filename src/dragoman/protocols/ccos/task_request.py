"""TaskRequests: what an agent is sent, filled in from the intent and its task."""

from typing import Any, cast

import msgspec
from msgspec import UNSET, Struct

from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import Handoff
from dragoman.core.intent.state import Intent
from dragoman.core.task_state import Task
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.ports import Store
from dragoman.engine.queries.handoffs import handoff_held_by
from dragoman.engine.queries.tasks import find_task
from dragoman.protocols.ccos.wire import ExtendedRequest, TaskRequest

TASK_PARAM: str = "task"
"""Key of `params` that holds the task, unless the delegator uses it."""


class CheckpointInfo(Struct, frozen=True, omit_defaults=True):
    """Checkpoint of an earlier attempt, in the words of its agent."""

    commit: str = ""
    description: str = ""
    next_steps: str = ""


class HandoffInfo(Struct, frozen=True, omit_defaults=True, rename={"from_": "from"}.get):
    """Handoff that the agent has activated (ACP)."""

    handoff_id: str
    from_: str
    package: dict[str, object]
    """Parts of the package about the work, with later updates of the work state."""
    artifacts: dict[str, str] = {}
    """Artifact -> SHA-256 of its verified copy."""


class TaskParams(Struct, frozen=True, omit_defaults=True):
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
    left_off: CheckpointInfo | None = None
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
    return request_of(intent, found.task, handoff)


def request_of(intent: Intent, task: Task, handoff: Handoff | None = None) -> TaskRequest | None:
    """TaskRequest of an intent, given its task, and the handoff by which the agent has the task."""
    request = intent.request
    if request is None:
        return None
    others = dict(intent.extra_fields)
    return ExtendedRequest(
        intent_id=intent.id,
        agent_id=request.agent,
        goal=intent.goal,
        params=_request_params(intent.params, task, intent, handoff),
        request_id=request.id,
        attempt=request.number,
        deadline=UNSET if request.deadline is None else to_rfc3339(request.deadline),
        meta=cast(dict[str, Any], others.pop("meta", UNSET)),
        others=others,
    )


def request_for_task(
    task: Task, agent: str, session: str, handoff: Handoff | None = None
) -> TaskRequest:
    """TaskRequest for a task that was created in another dialect."""
    goal = task.title if not task.body else f"{task.title}\n\n{task.body}"
    return TaskRequest(
        intent_id=task.id,
        agent_id=agent,
        goal=goal,
        params=_request_params({}, task, None, handoff),
        request_id=session or UNSET,
        attempt=max(task.attempts, 1),
    )


def _request_params(
    params: dict[str, object], task: Task, intent: Intent | None, handoff: Handoff | None
) -> dict[str, Any]:
    return {TASK_PARAM: msgspec.to_builtins(_task_params(task, intent, handoff)), **params}


def _task_params(task: Task, intent: Intent | None, handoff: Handoff | None) -> TaskParams:
    delegation, checkpoint = task.delegation, task.checkpoint
    return TaskParams(
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
        left_off=CheckpointInfo(checkpoint.commit, checkpoint.description, checkpoint.next_steps)
        if checkpoint
        else None,
        handed_over=handoff and _handoff_info(handoff),
    )


def _handoff_info(handoff: Handoff) -> HandoffInfo:
    return HandoffInfo(handoff.id, handoff.sender, handoff.work_summary(), dict(handoff.artifacts))
