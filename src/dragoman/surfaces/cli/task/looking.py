"""Looking at one task of a hub, or of a store that is only read."""

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.reads.ask import find_task, task_as_of
from dragoman.surfaces.cli.place import Source
from dragoman.surfaces.cli.task.view import Shown


def look_at(source: Source, name: str, as_of: int | None = None) -> Shown:
    """Load a task by any of its names, now or at a past position (which knows no leases)."""
    now = source.clock.now()
    if as_of is not None:
        past = task_as_of(source.store, name, as_of)
        if isinstance(past, Refusal):
            raise Refused(past)
        return Shown(past, None, now)
    view = find_task(source.store, name)
    if isinstance(view, Refusal):
        raise Refused(view)
    return Shown(view.task, view.lease, now)
