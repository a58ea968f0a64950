"""An item of the hub's own work queue: who owns it, and how it stands.

An item is no task: it has no attempts, leases and reviews. It says who sees to something, and stays
with its owner until that one lets go of it or it is handed on.
"""

from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.events import WorkItemAdded, WorkItemEvent, WorkItemOwnerChanged, WorkItemStatus


class WorkItem(Struct, frozen=True, omit_defaults=True):
    """State of one item, folded from the stream `workq:ID`."""

    id: str
    title: str
    status: WorkItemStatus
    created_at: int
    owner: str = ""


def _fold_added(_: None, event: WorkItemAdded, at: int) -> WorkItem:
    return WorkItem(event.id, event.title, "open", at)


def _fold_owner_changed(item: WorkItem, event: WorkItemOwnerChanged, at: int) -> WorkItem:
    del at
    return replace(item, owner=event.owner, status=event.status)


WORK_ITEM_FOLDS: Final[dict[type[WorkItemEvent], Callable[[Any, Any, int], WorkItem]]] = {
    WorkItemAdded: _fold_added,
    WorkItemOwnerChanged: _fold_owner_changed,
}
"""Event -> fold: the item after it, from the item before it (None at first) and its time."""
