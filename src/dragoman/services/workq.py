"""The hub's own work queue, as handoffs use it."""

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import ClaimWorkItem
from dragoman.core.errors import DragomanError, Refusal
from dragoman.engine.hub import Hub
from dragoman.engine.workq import ItemState, Moved, find_item


class HubWorkq:
    """Work items in the ledger of this hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def transfer_ownership(self, item: str, sender: str, recipient: str) -> Moved:
        """Transfer an item from one owner to the next; one that a third owns stays where it is."""
        asked = self._hub.request(SYSTEM, ClaimWorkItem(item, recipient, sender))
        try:
            outcome = self._hub.engine.handle_now(asked)
        except DragomanError as error:
            return Moved("unavailable", error.detail)
        if not isinstance(outcome, Refusal):
            return Moved("transferred")
        is_missing = outcome.code == "work_item_not_found"
        return Moved("missing" if is_missing else "refused", outcome.detail)

    def item_exists(self, item: str) -> bool | None:
        """Check whether the item exists."""
        return not isinstance(find_item(self._hub.store, item), Refusal)

    def item_status(self, item: str) -> ItemState | None:
        """Status of an item."""
        found = find_item(self._hub.store, item)
        return (
            None if isinstance(found, Refusal) else ItemState(found.id, found.status, found.owner)
        )
