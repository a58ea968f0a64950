"""Turns: which task is given out next, and who of those that may have it gets it. Pure."""

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from dragoman.core.ids import task_stream
from dragoman.core.states.task import Task
from dragoman.engine.ports import ReadyKey
from dragoman.services.budgets import Turn
from dragoman.services.desk import Desk


class Next(Struct, frozen=True):
    """The task that comes first."""

    task: str
    queue: str
    equals: Sequence[Desk]
    """Who of the free may have it, in the order of their turns."""


def most_urgent(
    free: Sequence[Desk], first: Mapping[str, ReadyKey], turn_of: Callable[[str], Turn]
) -> Next | None:
    """What is given out next, of the first tasks of the queues.

    Whoever has failed less often of late comes first, then who has less to do, then who has waited
    longer for something to do.
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
    """Who of these gets a task; None: it waits for one that is able, but has its hands full.

    An attempt that has failed is not repeated by the same agent while another may have it, so that
    one broken agent takes no task to the deadletter.
    """
    fresh = [desk for desk in equals if not _has_failed_at(task, desk)]
    if fresh:
        return fresh[0]
    is_awaited = any(
        task.reserved_for in desk.agent.queues and not _has_failed_at(task, desk) for desk in able
    )
    return None if is_awaited else equals[0]


def task_of(key: ReadyKey) -> str:
    """Which task it is that has a place in a queue."""
    return key.name.removeprefix(task_stream(""))


def _has_failed_at(task: Task, desk: Desk) -> bool:
    return task.failures > 0 and desk.agent.name in task.agents
