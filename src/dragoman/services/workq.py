"""The hub's own work queue, and the service that repeats interrupted transfers of items."""

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.errors import DragomanError, LedgerError, Refusal
from dragoman.core.handoff.state import PENDING_ITEM_TRANSFERS, Handoff
from dragoman.core.work_queue import ClaimWorkItem
from dragoman.engine.hub import Hub
from dragoman.engine.ports import ListQuery
from dragoman.engine.queries.streams import stream_state, walk_list
from dragoman.engine.workq import (
    ItemState,
    TransferResult,
    WorkQueue,
    find_work_item,
    transfer_items,
)

# --- local queue ------------------------------------------------------------------------------


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
        """Status of an item."""
        found = find_work_item(self._hub.store, item)
        return (
            None if isinstance(found, Refusal) else ItemState(found.id, found.status, found.owner)
        )


# --- transfers --------------------------------------------------------------------------------

GRACE_MS = 120_000
"""The command that moves a handoff transfers its items at once; it may take this long."""

_BATCH = 100


class WorkqSync:
    """Transfers the items of handoffs whose transfer was interrupted."""

    name = "workq-sync"

    def __init__(self, hub: Hub, workq: WorkQueue) -> None:
        self._hub = hub
        self._workq = workq

    def run_once(self, now: int) -> int:
        """Transfer overdue items; the number of handoffs."""
        query = ListQuery(PENDING_ITEM_TRANSFERS, limit=_BATCH)
        handoffs = [
            stream_state(self._hub.store, place.row) for place in walk_list(self._hub.store, query)
        ]
        due = [
            one
            for one in handoffs
            if isinstance(one, Handoff)
            and one.entered_at + GRACE_MS <= now
            and one.pending_items_owner
        ]
        return sum(self._transfer(handoff) for handoff in due)

    def _transfer(self, handoff: Handoff) -> bool:
        transferred = transfer_items(handoff, self._workq, handoff.pending_items_owner)
        try:
            self._hub.submit(HUB_ACTOR, *transferred.commands)
        except LedgerError:
            return False
        return True
