"""Pages of tasks, newest first: as they are now, or as they were at a position."""

from msgspec import Struct

from dragoman.core.events import Status
from dragoman.core.task import Task
from dragoman.engine.ask import TaskView, list_tasks, tasks_as_of
from dragoman.engine.ports import BoardQuery
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.task_view import Shown

_LOOKS = 20
"""So many reads are made to fill a page, so that a page without a hit does not read the store."""


class Wanted(Struct, frozen=True):
    """Which tasks a page shall hold."""

    status: Status | None = None
    assignee: str = ""
    is_claimable: bool = False
    before: int | None = None
    limit: int = 50

    def has(self, task: Task, now: int) -> bool:
        """Whether the task belongs on the page."""
        if self.status not in (None, task.status) or self.assignee not in ("", task.assignee):
            return False
        return not self.is_claimable or (not task.open_blockers and task.not_before <= now)


class Page(Struct, frozen=True):
    """Tasks, and the cursor at which the next page begins, if there may be one."""

    tasks: list[Shown]
    next: int | None


def page_now(place: Place, wanted: Wanted) -> Page:
    """A page of tasks as they are."""
    now, found, before = place.hub.clock.now(), list[TaskView](), wanted.before
    for _ in range(_LOOKS):
        # One more than is shown, to know whether there is another page.
        missing = wanted.limit + 1 - len(found)
        query = BoardQuery(wanted.status, wanted.assignee or None, before, missing)
        seen = list_tasks(place.hub.store, query)
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
    return Page([Shown(view.task, view.lease, now) for view in found], before)


def page_as_of(place: Place, wanted: Wanted, position: int) -> Page:
    """A page of tasks as they were; its cursor counts tasks by age, the oldest is 1."""
    now = place.hub.clock.now()
    past = list(enumerate(tasks_as_of(place.hub.store, position), start=1))
    end = len(past) if wanted.before is None else min(len(past), max(wanted.before - 1, 0))
    found = [(number, task) for number, task in reversed(past[:end]) if wanted.has(task, now)]
    page = found[: wanted.limit]
    further = page[-1][0] if len(found) > wanted.limit else None
    return Page([Shown(task, None, now) for _, task in page], further)
