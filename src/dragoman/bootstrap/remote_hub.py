"""A remote hub through the SDK: a task with its event stream."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from dragoman.client import connect_sync
from dragoman.engine.ports import Gap
from dragoman.engine.schemas.tasks import TaskDetail


@contextmanager
def watch_remote_hub(
    task: str, after: int | None, on_gap: Callable[[Gap], None]
) -> Generator[tuple[TaskDetail, Iterator[Mapping[str, Any]]]]:
    """A task of the hub that the environment names, and all entries after a position.

    Without a position: from the first one on. `on_gap` is called if the position does not exist.
    """
    with connect_sync() as hub:
        events = hub.events(after or 0, on_gap=on_gap)
        try:
            yield hub.task(task), (msgspec.to_builtins(event) for event in events)
        finally:
            events.close()
