"""Pages of tasks, newest first: as they are now, or as they were at a position."""

from msgspec import Struct

from dragoman.engine.reads import pages
from dragoman.engine.reads.ask import tasks_as_of
from dragoman.engine.reads.pages import Wanted
from dragoman.surfaces.cli.place import Source
from dragoman.surfaces.cli.task.view import Shown


class Page(Struct, frozen=True):
    """A page of tasks, and the cursor of the next page, if there may be one."""

    tasks: list[Shown]
    next: int | None


def page_now(source: Source, wanted: Wanted) -> Page:
    """Page of tasks as they are."""
    now = source.clock.now()
    page = pages.page_now(source.store, wanted, now)
    return Page([Shown(view.task, view.lease, now) for view in page.tasks], page.next)


def page_as_of(source: Source, wanted: Wanted, position: int) -> Page:
    """Page of tasks as they were; its cursor counts tasks by age, the oldest is 1."""
    now = source.clock.now()
    past = list(enumerate(tasks_as_of(source.store, position), start=1))
    end = len(past) if wanted.before is None else min(len(past), max(wanted.before - 1, 0))
    found = [(number, task) for number, task in reversed(past[:end]) if wanted.has(task, now)]
    page = found[: wanted.limit]
    further = page[-1][0] if len(found) > wanted.limit else None
    return Page([Shown(task, None, now) for _, task in page], further)
