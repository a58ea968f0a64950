"""A work queue as handoffs see it, the hub's own or one outside; and reading items of ours."""

from typing import Literal, Protocol

from msgspec import Struct

from dragoman.core.errors import Refusal
from dragoman.core.states.work_item import WorkItem
from dragoman.engine.ports import Store
from dragoman.engine.reads.ask import find


class ItemState(Struct, frozen=True):
    """An item of a work queue."""

    item_id: str
    status: str
    owner: str = ""


class Moved(Struct, frozen=True):
    """How it went to give an item to somebody else."""

    outcome: Literal["transferred", "missing", "refused", "unavailable"]
    detail: str = ""


class Workq(Protocol):
    """A work queue; whatever is wrong with it is an outcome, and never an exception."""

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> Moved:
        """Give an item from one owner to the next."""
        ...

    def item_exists(self, item: str) -> bool | None:
        """Whether there is such an item; None when nobody can say."""
        ...

    def item_status(self, item: str) -> ItemState | None:
        """How an item stands; None when there is none, or nobody can say."""
        ...


def find_item(store: Store, id: str) -> WorkItem | Refusal:
    """The item of our own queue with this id."""
    return find(store, id, WorkItem)
