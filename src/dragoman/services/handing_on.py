"""Handing on: items of a work queue whose way was interrupted get where the work is."""

from dragoman.core.actors import HUB_ACTOR
from dragoman.core.errors import LedgerError
from dragoman.core.states.handoff import PENDING_ITEM_TRANSFERS, Handoff
from dragoman.engine.handing_on import transfer_items
from dragoman.engine.hub import Hub
from dragoman.engine.ports import ListQuery
from dragoman.engine.reads.ask import stream_state
from dragoman.engine.reads.mailbox import walk_list
from dragoman.engine.workq import WorkQueue

GRACE_MS = 120_000
"""The command that moves a handoff transfers its items at once; it may take this long."""
_BATCH = 100


class WorkqSync:
    """Transfers the items of handoffs whose transfer was interrupted."""

    name = "handing-on"

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
