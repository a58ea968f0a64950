"""Looking at one task of an open place."""

from dragoman.core.errors import Refusal, Refused
from dragoman.engine.ask import find_task, task_as_of
from dragoman.surfaces.cli.place import Place
from dragoman.surfaces.cli.task_view import Shown


def look_at(place: Place, name: str, as_of: int | None = None) -> Shown:
    """The task by any of its names, now or at a position of the past (which knows no leases)."""
    now = place.hub.clock.now()
    if as_of is not None:
        past = task_as_of(place.hub.store, name, as_of)
        if isinstance(past, Refusal):
            raise Refused(past)
        return Shown(past, None, now)
    view = find_task(place.hub.store, name)
    if isinstance(view, Refusal):
        raise Refused(view)
    return Shown(view.task, view.lease, now)
