"""TaskRequests: what an agent is handed, filled from the intent and its task."""

from typing import Any, cast

import msgspec
from msgspec import UNSET, Struct

from dragoman.core.errors import Refusal
from dragoman.core.moments import to_rfc3339
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.intent import Intent
from dragoman.core.states.task import Task
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_task
from dragoman.engine.reads.handoffs import taken_handoff
from dragoman.protocols.ccos.wire import FullRequest, TaskRequest

TASK: str = "task"
"""The key of `params` under which the task stands, unless whoever delegates has used it."""


class LeftOff(Struct, frozen=True, omit_defaults=True):
    """Where an earlier attempt stopped, in the words of its agent."""

    commit: str = ""
    description: str = ""
    next_steps: str = ""


class HandedOver(Struct, frozen=True, omit_defaults=True, rename={"from_": "from"}.get):
    """What its agent has accepted and begun (ACP)."""

    handoff_id: str
    from_: str
    package: dict[str, object]
    """The parts that are about the work, and how it was said to stand since."""
    artifacts: dict[str, str] = {}
    """Their SHA-256, under which the hub keeps what was verified."""


class TaskParams(Struct, frozen=True, omit_defaults=True):
    """What is known about the task beside its goal, in types that stay."""

    task_id: str
    """What messages of AOF/1 and files call it."""
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
    left_off: LeftOff | None = None
    handed_over: HandedOver | None = None


def open_request(store: Store, intent: Intent, version: int = 0) -> TaskRequest | None:
    """The request that is open for an intent; None: none is. `version` is that of its task, where
    it is shown as it was.
    """
    found = None if intent.request is None else find_task(store, intent.task, version)
    if found is None or isinstance(found, Refusal):
        return None
    # What was said about a handoff since then would not stand in a picture of then.
    handoff = None if version else taken_handoff(store, found.task, found.task.assignee)
    return request_of(intent, found.task, handoff)


def request_of(intent: Intent, task: Task, handoff: Handoff | None = None) -> TaskRequest | None:
    """The same, for whoever has the task in hand, and the handoff by which its agent has it."""
    request = intent.request
    if request is None:
        return None
    others = dict(intent.passed_on)
    return FullRequest(
        intent_id=intent.id,
        agent_id=request.agent,
        goal=intent.goal,
        params=_params(intent.params, task, intent, handoff),
        request_id=request.id,
        attempt=request.number,
        deadline=UNSET if request.deadline is None else to_rfc3339(request.deadline),
        meta=cast(dict[str, Any], others.pop("meta", UNSET)),
        others=others,
    )


def request_for_task(
    task: Task, agent: str, session: str, handoff: Handoff | None = None
) -> TaskRequest:
    """A task that came to be in another dialect, as an agent of CCOS is asked to do it."""
    goal = task.title if not task.body else f"{task.title}\n\n{task.body}"
    return TaskRequest(
        intent_id=task.id,
        agent_id=agent,
        goal=goal,
        params=_params({}, task, None, handoff),
        request_id=session or UNSET,
        attempt=max(task.attempts, 1),
    )


def _params(
    given: dict[str, object], task: Task, intent: Intent | None, handoff: Handoff | None
) -> dict[str, Any]:
    return {TASK: msgspec.to_builtins(_known(task, intent, handoff)), **given}


def _known(task: Task, intent: Intent | None, handoff: Handoff | None) -> TaskParams:
    asked, left = task.delegation, task.checkpoint
    return TaskParams(
        task_id=task.aof_id,
        title=task.title,
        priority=task.priority,
        description="" if intent is not None and task.body == intent.goal else task.body,
        parent=task.parent,
        constraints=intent.constraints if intent else asked.constraints if asked else (),
        skills=intent.skills if intent else (),
        plan_id=intent.plan if intent else "",
        follows=intent.follows if intent else "",
        acceptance_criteria=asked.acceptance_criteria if asked else (),
        expected_outputs=asked.expected_outputs if asked else (),
        context_refs=asked.context_refs if asked else (),
        left_off=LeftOff(left.commit, left.description, left.next_steps) if left else None,
        handed_over=handoff and _handed_over(handoff),
    )


def _handed_over(handoff: Handoff) -> HandedOver:
    return HandedOver(handoff.id, handoff.sender, handoff.about_work(), dict(handoff.artifacts))
