"""A work queue as handoffs see it, the hub's own or one outside; and reading items of ours."""

from typing import Literal, Protocol

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.states.work_item import WorkItem
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find_by_id


class ItemState(Struct, frozen=True):
    """An item of a work queue."""

    item_id: str
    status: str
    owner: str = ""


class TransferResult(Struct, frozen=True):
    """The result of transferring an item."""

    outcome: Literal["transferred", "missing", "refused", "unavailable"]
    detail: str = ""


class WorkQueue(Protocol):
    """A work queue; every problem is an outcome, never an exception."""

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
        """Transfer an item from one owner to the next."""
        ...

    def item_exists(self, item: str) -> bool | None:
        """True if there is such an item; None if the queue does not answer."""
        ...

    def item_status(self, item: str) -> ItemState | None:
        """The state of an item; None if there is none, or the queue does not answer."""
        ...


def find_work_item(store: Store, id: str) -> WorkItem | Refusal:
    """The item of our own queue with this id."""
    return find_by_id(store, id, WorkItem)
