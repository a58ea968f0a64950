"""Looking at one task of a hub, or of a store that is only read."""

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.reads.ask import find_task, task_as_of
from dragoman.surfaces.cli.place import StoreSource
from dragoman.surfaces.cli.task.view import TaskDisplay


def load_task(source: StoreSource, name: str, as_of: int | None = None) -> TaskDisplay:
    """Load a task by any of its names, now or at a past position (which knows no leases)."""
    now = source.clock.now()
    if as_of is not None:
        past = task_as_of(source.store, name, as_of)
        if isinstance(past, Refusal):
            raise Refused(past)
        return TaskDisplay(past, None, now)
    view = find_task(source.store, name)
    if isinstance(view, Refusal):
        raise Refused(view)
    return TaskDisplay(view.task, view.lease, now)
