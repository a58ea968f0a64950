"""Turns: which task is given out next, and who of those that may have it gets it. Pure."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from dragoman.core.ids import task_stream
from dragoman.core.states.task import Task
from dragoman.engine.ports import ReadyKey
from dragoman.services.budgets import FairShare
from dragoman.services.desk import AgentSlots


class NextTask(Struct, frozen=True):
    """The next task to dispatch."""

    task: str
    queue: str
    candidates: Sequence[AgentSlots]
    """Free agents that may have it, in fair order."""


def find_next_task(
    free: Sequence[AgentSlots], first: Mapping[str, ReadyKey], share_of: Callable[[str], FairShare]
) -> NextTask | None:
    """Find the next task to dispatch among the first of each queue.

    Agents with fewer recent failures come first, then those with less to do, then those that have
    waited longer.
    """
    wanted = {queue for slots in free for queue in slots.agent.queues}
    keys = [(key, queue) for queue, key in first.items() if queue in wanted]
    if not keys:
        return None
    key, queue = min(keys)

    def sort_key(desk: AgentSlots) -> tuple[int, float, int]:
        its = share_of(desk.agent.name)
        return its.failed, len(desk.runs) / desk.agent.concurrency, its.number

    candidates = [desk for desk in free if queue in desk.agent.queues]
    return NextTask(task_id_of(key), queue, sorted(candidates, key=sort_key))


def choose_agent(
    task: Task, candidates: Sequence[AgentSlots], available: Sequence[AgentSlots]
) -> AgentSlots | None:
    """Choose the agent for a task; None: wait for a capable one that is busy now.

    A failed attempt is not repeated by the same agent while another may have the task, so that one
    broken agent takes no task to the deadletter.
    """
    fresh = [slots for slots in candidates if not _has_failed_task(task, slots)]
    if fresh:
        return fresh[0]
    may_come_later = any(
        task.reserved_for in desk.agent.queues and not _has_failed_task(task, desk)
        for desk in available
    )
    return None if may_come_later else candidates[0]


def task_id_of(key: ReadyKey) -> str:
    """Task of an entry in the ready queue."""
    return key.name.removeprefix(task_stream(""))


def _has_failed_task(task: Task, slots: AgentSlots) -> bool:
    return task.failures > 0 and slots.agent.name in task.agents
