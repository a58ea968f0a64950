"""Pages of tasks, newest first: as they are now, or as they were at a position."""

from msgspec import Struct

from dragoman.engine.reads import pages
from dragoman.engine.reads.ask import tasks_as_of
from dragoman.engine.reads.pages import TaskFilter
from dragoman.surfaces.cli.place import StoreSource
from dragoman.surfaces.cli.task.view import TaskDisplay


class TaskPage(Struct, frozen=True):
    """A page of tasks, and the cursor of the next page, if there may be one."""

    tasks: list[TaskDisplay]
    next: int | None


def current_page(source: StoreSource, filters: TaskFilter) -> TaskPage:
    """Page of tasks as they are."""
    now = source.clock.now()
    page = pages.page_of_tasks(source.store, filters, now)
    return TaskPage([TaskDisplay(view.task, view.lease, now) for view in page.tasks], page.next)


def past_page(source: StoreSource, filters: TaskFilter, position: int) -> TaskPage:
    """Page of tasks as they were; its cursor counts tasks by age, the oldest is 1."""
    now = source.clock.now()
    past = list(enumerate(tasks_as_of(source.store, position), start=1))
    end = len(past) if filters.before is None else min(len(past), max(filters.before - 1, 0))
    matches = [
        (number, task) for number, task in reversed(past[:end]) if filters.matches(task, now)
    ]
    page = matches[: filters.limit]
    next_cursor = page[-1][0] if len(matches) > filters.limit else None
    return TaskPage([TaskDisplay(task, None, now) for _, task in page], next_cursor)
