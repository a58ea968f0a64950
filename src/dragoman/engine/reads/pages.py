"""Pages of tasks as they are now, newest first, by more than the board's index knows."""

from msgspec import Struct

from dragoman.core.events import Status
from dragoman.core.states.task import Task
from dragoman.engine.ports import BoardQuery, Store
from dragoman.engine.reads.ask import TaskView, list_tasks

_LOOKS = 20
"""Limit of reads to fill a page, so that a page without a match does not read the whole store."""


class Wanted(Struct, frozen=True):
    """Filters for a page of tasks."""

    status: Status | None = None
    assignee: str = ""
    is_claimable: bool = False
    before: int | None = None
    limit: int = 50
    is_free: bool = False
    """True: only tasks that anyone may take."""

    def has(self, task: Task, now: int) -> bool:
        """True if the task belongs on the page."""
        if self.status not in (None, task.status) or self.assignee not in ("", task.assignee):
            return False
        if self.is_free and (task.assignee or task.reserved_for):
            return False
        return not self.is_claimable or (not task.open_blockers and task.not_before <= now)


class Page(Struct, frozen=True):
    """Tasks, and the cursor of the next page, if there may be one."""

    tasks: list[TaskView]
    next: int | None


def page_now(store: Store, wanted: Wanted, now: int) -> Page:
    """A page of tasks as they are."""
    found, before = list[TaskView](), wanted.before
    for _ in range(_LOOKS):
        # One more than is shown, to know whether there is another page.
        missing = wanted.limit + 1 - len(found)
        query = BoardQuery(wanted.status, wanted.assignee or None, before, missing)
        seen = list_tasks(store, query)
        found += [view for view in seen if wanted.has(view.task, now)]
        if len(seen) < missing:
            before = None
            break
        before = seen[-1].number
        if len(found) > wanted.limit:
            break
    if len(found) > wanted.limit:
        del found[wanted.limit :]
        before = found[-1].number
    return Page(found, before)
