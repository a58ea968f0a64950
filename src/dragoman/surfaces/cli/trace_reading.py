"""All turns and events that a task has, page by page."""

from collections.abc import Iterator
from typing import Any

from dragoman.engine.ports import Store
from dragoman.engine.traces import ShownTurn, events_of, turns_of

_PAGE = 500


def each_turn(store: Store, task: str, attempt: int) -> Iterator[ShownTurn]:
    """The turns of an attempt, in their order."""
    after = -1
    while page := turns_of(store, task, attempt, after, _PAGE).turns:
        yield from page
        after = page[-1].turn_index


def each_event(store: Store, task: str) -> Iterator[dict[str, Any]]:
    """The events of a task as SAOP has them, in their order."""
    after = 0
    while page := (found := events_of(store, task=task, after=after, limit=_PAGE)).events:
        yield from (one.event for one in page)
        after = found.next
