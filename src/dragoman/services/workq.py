"""The work queue that the hub has itself, behind the contract of every work queue."""

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.errors import DragomanError, Refusal
from dragoman.core.work_queue import ClaimWorkItem
from dragoman.engine.hub import Hub
from dragoman.engine.workq import ItemState, TransferResult, find_work_item


class HubWorkq:
    """Work items in the ledger of this hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> TransferResult:
        """Transfer an item from one owner to the next; one that a third owns stays where it is."""
        request = self._hub.make_request(HUB_ACTOR, ClaimWorkItem(item, recipient, sender))
        try:
            outcome = self._hub.engine.handle_now(request)
        except DragomanError as error:
            return TransferResult("unavailable", error.detail)
        if not isinstance(outcome, Refusal):
            return TransferResult("transferred")
        is_missing = outcome.code == "work_item_not_found"
        return TransferResult("missing" if is_missing else "refused", outcome.detail)

    def item_exists(self, item: str) -> bool | None:
        """Check whether the item exists."""
        return not isinstance(find_work_item(self._hub.store, item), Refusal)

    def item_status(self, item: str) -> ItemState | None:
        found = find_work_item(self._hub.store, item)
        return (
            None if isinstance(found, Refusal) else ItemState(found.id, found.status, found.owner)
        )
