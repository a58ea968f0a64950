"""Add, claim and release items of the hub's own work queue."""

from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from dragoman.core import not_found
from dragoman.core.authority import check_write
from dragoman.core.base import Command, Event
from dragoman.core.errors import Refusal
from dragoman.core.handoff.common import COORDINATOR_ROLES
from dragoman.core.ids import check_agent, check_id, workq_stream
from dragoman.core.limits import MAX_TITLE, check_text
from dragoman.core.read import Decision, Read, stream_decision

# --- commands ---------------------------------------------------------------------------------


class AddWorkItem(Command, frozen=True, tag="workq.add"):
    """Add an item to the work queue."""

    free_text = ("title",)

    title: str = ""
    id: str = ""


class ClaimWorkItem(Command, frozen=True, tag="workq.claim"):
    """Own an item of the work queue, or give it to somebody."""

    item: str
    owner: str = ""
    """Empty: the caller."""
    sender: str = ""
    """Owner from whom it may be taken, besides the caller."""


class ReleaseWorkItem(Command, frozen=True, tag="workq.release"):
    """Release an item of the work queue."""

    item: str
    is_orphaned: bool = False
    """Its owner, which can only be the sender, is gone."""
    sender: str = ""


# --- events -----------------------------------------------------------------------------------

WorkItemStatus = Literal["open", "claimed", "orphaned"]


class WorkItemAdded(Event, frozen=True):
    """An item was added to the work queue."""

    id: str
    title: str


class WorkItemOwnerChanged(Event, frozen=True):
    """An item got another owner, or (empty) none."""

    id: str
    owner: str
    status: WorkItemStatus


# --- state and fold ---------------------------------------------------------------------------


class WorkItem(Struct, frozen=True, omit_defaults=True):
    """State of one item, folded from the stream `workq:ID`."""

    id: str
    title: str
    status: WorkItemStatus
    created_at: int
    owner: str = ""


def _fold_added(_: None, event: WorkItemAdded, at: int) -> WorkItem:
    return WorkItem(event.id, event.title, "open", at)


def _fold_owner_changed(item: WorkItem, event: WorkItemOwnerChanged, _: int) -> WorkItem:
    return replace(item, owner=event.owner, status=event.status)


WORK_ITEM_FOLDS: Final[dict[type[Event], Callable[[Any, Any, int], WorkItem]]] = {
    WorkItemAdded: _fold_added,
    WorkItemOwnerChanged: _fold_owner_changed,
}
"""Event -> fold: the item after it, from the item before it (None at first) and its time."""


def decide_add_item(command: AddWorkItem, read: Read, _: int) -> Decision | Refusal:
    """Add an item, which nobody owns yet."""
    id = command.id or read.cause
    refusal = (
        check_write(read.actor)
        or check_id(id, "item id")
        or check_text("title", command.title, MAX_TITLE)
    )
    if refusal:
        return refusal
    existing = read.work_item(id)
    if existing is not None and existing.title == command.title:
        return _item_decision(id, existing.status)
    if existing is not None:
        return Refusal("already_exists", f"the work queue has an item {id} already")
    return _item_decision(id, "open", WorkItemAdded(id, command.title))


def decide_claim_item(command: ClaimWorkItem, read: Read, _: int) -> Decision | Refusal:
    """Claim an item for the caller, or pass it on to another owner."""
    owner = command.owner or read.actor.name
    refusal = check_write(read.actor) or check_agent(owner)
    if refusal:
        return refusal
    item = _find_item(command.item, read)
    if isinstance(item, Refusal):
        return item
    may_give = read.actor.role in COORDINATOR_ROLES or item.owner == read.actor.name
    if owner != read.actor.name and not may_give:
        return Refusal("not_authorized", f"{read.actor.label} may not give {item.id} to {owner}")
    if item.owner == owner:
        return _item_decision(item.id, item.status)
    if item.owner and item.owner not in (command.sender, read.actor.name):
        return Refusal("already_claimed", f"{item.id} is {item.owner}'s")
    return _item_decision(item.id, "claimed", WorkItemOwnerChanged(item.id, owner, "claimed"))


def decide_release_item(command: ReleaseWorkItem, read: Read, _: int) -> Decision | Refusal:
    """Release an item; `is_orphaned`: its owner is gone, and it waits for a new one.

    The hub records items that were orphaned in an external queue, so that they are found here. An
    item of a third party is left alone: another queue may use the same id for something else.
    """
    refusal = check_write(read.actor)
    if refusal:
        return refusal
    item = _find_item(command.item, read)
    is_coordinator = read.actor.role in COORDINATOR_ROLES
    status: WorkItemStatus = "orphaned" if command.is_orphaned else "open"
    if isinstance(item, Refusal):
        if item.code != "work_item_not_found" or read.actor.role != "system":
            return item
        events = (WorkItemAdded(command.item, ""), WorkItemOwnerChanged(command.item, "", status))
        return _item_decision(command.item, status, *events)
    if item.owner != read.actor.name and not is_coordinator:
        owner_text = f"is {item.owner}'s" if item.owner else "is nobody's"
        return Refusal(
            "not_authorized", f"{item.id} {owner_text}: {read.actor.name} cannot release it"
        )
    is_of_third_party = command.is_orphaned and item.owner not in ("", command.sender)
    if is_of_third_party or (not item.owner and item.status == status):
        return _item_decision(item.id, item.status)
    return _item_decision(item.id, status, WorkItemOwnerChanged(item.id, "", status))


def _find_item(id: str, read: Read) -> WorkItem | Refusal:
    return check_id(id, "item id") or read.work_item(id) or not_found.work_item(id)


def _item_decision(id: str, status: WorkItemStatus, *events: Event) -> Decision:
    return stream_decision(workq_stream(id), status, *events)
