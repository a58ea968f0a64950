"""Turns: which task is given out next, and who of those that may have it gets it. Pure."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from dragoman.core.ids import task_stream
from dragoman.core.states.task import Task
from dragoman.engine.ports import ReadyKey
from dragoman.services.budgets import Turn
from dragoman.services.desk import Desk


class Next(Struct, frozen=True):
    """The next task to dispatch."""

    task: str
    queue: str
    equals: Sequence[Desk]
    """Free agents that may have it, in fair order."""


def most_urgent(
    free: Sequence[Desk], first: Mapping[str, ReadyKey], turn_of: Callable[[str], Turn]
) -> Next | None:
    """Find the next task to dispatch among the first of each queue.

    Agents with fewer recent failures come first, then those with less to do, then those that have
    waited longer.
    """
    wanted = {queue for desk in free for queue in desk.agent.queues}
    keys = [(key, queue) for queue, key in first.items() if queue in wanted]
    if not keys:
        return None
    key, queue = min(keys)

    def turn(desk: Desk) -> tuple[int, float, int]:
        its = turn_of(desk.agent.name)
        return its.failed, len(desk.attempts) / desk.agent.concurrency, its.number

    equals = [desk for desk in free if queue in desk.agent.queues]
    return Next(task_of(key), queue, sorted(equals, key=turn))


def who_gets(task: Task, equals: Sequence[Desk], able: Sequence[Desk]) -> Desk | None:
    """Choose the agent for a task; None: wait for a capable one that is busy now.

    A failed attempt is not repeated by the same agent while another may have the task, so that one
    broken agent takes no task to the deadletter.
    """
    fresh = [desk for desk in equals if not _has_failed_at(task, desk)]
    if fresh:
        return fresh[0]
    is_awaited = any(
        task.reserved_for in desk.agent.queues and not _has_failed_at(task, desk) for desk in able
    )
    return None if is_awaited else equals[0]


def task_of(key: ReadyKey) -> str:
    """Task of an entry in the ready queue."""
    return key.name.removeprefix(task_stream(""))


def _has_failed_at(task: Task, desk: Desk) -> bool:
    return task.failures > 0 and desk.agent.name in task.agents
