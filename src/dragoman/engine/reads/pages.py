"""Pages of tasks as they are now, newest first, by more than the board's index knows."""

from msgspec import Struct

from dragoman.core.events import Status
from dragoman.core.states.task import Task
from dragoman.engine.ports import Store, TaskQuery
from dragoman.engine.reads.ask import TaskView, list_tasks

_MAX_READS = 20
"""Limit of reads to fill a page, so that a page without a match does not read the whole store."""


class TaskFilter(Struct, frozen=True):
    """Filters for a page of tasks."""

    status: Status | None = None
    assignee: str = ""
    is_claimable: bool = False
    before: int | None = None
    limit: int = 50
    is_unassigned: bool = False
    """True: only tasks that anyone may take."""

    def matches(self, task: Task, now: int) -> bool:
        """True if the task belongs on the page."""
        if self.status not in (None, task.status) or self.assignee not in ("", task.assignee):
            return False
        if self.is_unassigned and (task.assignee or task.reserved_for):
            return False
        return not self.is_claimable or (not task.open_blockers and task.not_before <= now)


class TaskPage(Struct, frozen=True):
    """Tasks, and the cursor of the next page, if there may be one."""

    tasks: list[TaskView]
    next: int | None


def page_of_tasks(store: Store, filters: TaskFilter, now: int) -> TaskPage:
    """A page of tasks as they are."""
    found, before = list[TaskView](), filters.before
    for _ in range(_MAX_READS):
        # One more than is shown, to know whether there is another page.
        needed = filters.limit + 1 - len(found)
        query = TaskQuery(filters.status, filters.assignee or None, before, needed)
        views = list_tasks(store, query)
        found += [view for view in views if filters.matches(view.task, now)]
        if len(views) < needed:
            before = None
            break
        before = views[-1].number
        if len(found) > filters.limit:
            break
    if len(found) > filters.limit:
        del found[filters.limit :]
        before = found[-1].number
    return TaskPage(found, before)
