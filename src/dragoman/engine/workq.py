"""Work queues: the contract of one, and its items as they move with a handoff.

Items go to the recipient when the work begins, and back when it is rejected, after the commit of
that. What a crash cuts off in between is done when the action is repeated.
"""

from collections.abc import Mapping
from typing import Final, Literal, Protocol, cast

from msgspec import Struct

from dragoman.core.base import Command
from dragoman.core.errors import Refusal
from dragoman.core.handoff.state import WORKQ_NOTE_KIND, Handoff, NoteHandoff, work_items_of
from dragoman.core.ids import check_id
from dragoman.core.work_queue import ReleaseWorkItem, WorkItem
from dragoman.engine.ports import Store
from dragoman.engine.queries.entries import find_by_id

# --- contract ---------------------------------------------------------------------------------


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


# --- items of a handoff -----------------------------------------------------------------------

TransferOutcome = Literal["transferred", "degraded", "not_applicable", "returned", "not_returned"]

_Items = Mapping[str, Mapping[str, str]]
"""Item -> `outcome` and `detail` of its transfer."""

_FAILED: Final = frozenset({"refused", "unavailable"})


class ItemTransfer(Struct, frozen=True):
    """Result of transferring all items of a handoff."""

    outcome: TransferOutcome
    details: tuple[str, ...] = ()
    """Sentences about single items."""
    commands: tuple[Command, ...] = ()
    """Commands that record the transfer."""


def transfer_items(handoff: Handoff, workq: WorkQueue, owner: str) -> ItemTransfer:
    """Transfer the items to one side of the handoff, from the other; failures are noted."""
    items, is_back = work_items_of(handoff.package), owner == handoff.sender
    if not items:
        return ItemTransfer("not_applicable")
    former = handoff.recipient if is_back else handoff.sender
    to_transfer = (
        tuple(item for item in items if item not in _items_never_transferred(handoff))
        if is_back
        else items
    )
    results = _transfer_all(to_transfer, workq, former, owner)
    outcome = _overall_outcome(results, is_back=is_back)
    noted_items: _Items = {
        item: {"outcome": one.outcome, "detail": one.detail} for item, one in results.items()
    }
    orphaned: list[Command] = [
        ReleaseWorkItem(item, is_orphaned=True, sender=former)
        for item, one in results.items()
        if one.outcome == "unavailable"
    ]
    note = NoteHandoff(handoff.id, WORKQ_NOTE_KIND, outcome, {"items": dict(noted_items)})
    return ItemTransfer(outcome, _describe_failures(noted_items), (*orphaned, note))


def protocol_status(outcome: str) -> str:
    """The outcome in the protocol's words, which do not tell a transfer back from one there."""
    return {"returned": "transferred", "not_returned": "degraded"}.get(outcome, outcome)


def describe_failed_items(handoff: Handoff) -> tuple[str, ...]:
    """Sentences about items whose transfer failed, from the last note."""
    return _describe_failures(_noted_transfers(handoff))


def _noted_transfers(handoff: Handoff) -> _Items:
    """The result of the last transfer of each item."""
    notes = [note for note in handoff.notes if note.kind == WORKQ_NOTE_KIND]
    items = notes[-1].data.get("items") if notes else None
    return cast(_Items, items) if isinstance(items, dict) else {}


def _items_never_transferred(handoff: Handoff) -> frozenset[str]:
    """The items that were never transferred: there is nothing to give back."""
    noted = _noted_transfers(handoff).items()
    return frozenset(item for item, one in noted if one["outcome"] in ("refused", "missing"))


def _describe_failures(items: _Items) -> tuple[str, ...]:
    """Each item that was not transferred, and the reason."""
    return tuple(
        f"{item}: {one['outcome']}" + (f", {one['detail']}" if one["detail"] else "")
        for item, one in items.items()
        if one["outcome"] != "transferred"
    )


def _transfer_all(
    items: tuple[str, ...], workq: WorkQueue, former: str, owner: str
) -> Mapping[str, TransferResult]:
    """Transfer the items; a queue that once gives no answer is not tried again: every try may take
    seconds."""
    results, unavailable = dict[str, TransferResult](), None
    for item in items:
        malformed = check_id(item, "item id")
        if malformed is not None:
            results[item] = TransferResult("missing", malformed.detail)
        elif unavailable is not None:
            results[item] = unavailable
        else:
            results[item] = workq.transfer_ownership(item, former, owner)
            unavailable = results[item] if results[item].outcome == "unavailable" else None
    return results


def _overall_outcome(results: Mapping[str, TransferResult], *, is_back: bool) -> TransferOutcome:
    outcomes = {one.outcome for one in results.values()}
    if outcomes & _FAILED:
        return "not_returned" if is_back else "degraded"
    if "transferred" not in outcomes:
        return "not_applicable"
    return "returned" if is_back else "transferred"
