"""Handing on: items of a work queue whose way was interrupted get where the work is."""

from dragoman.core.actors import SYSTEM
from dragoman.core.errors import LedgerError
from dragoman.core.states.handoff import ITEMS_DUE, Handoff
from dragoman.engine.handing_on import hand_on
from dragoman.engine.hub import Hub
from dragoman.engine.ports import ListQuery
from dragoman.engine.reads.ask import state_of
from dragoman.engine.reads.mailbox import walk
from dragoman.engine.workq import Workq

GRACE_MS = 120_000
"""The command that moves a handoff transfers its items at once; it may take this long."""
_AT_ONCE = 100


class HandingOn:
    """Transfers the items of handoffs whose transfer was interrupted."""

    name = "handing-on"

    def __init__(self, hub: Hub, workq: Workq) -> None:
        self._hub = hub
        self._workq = workq

    def run_once(self, now: int) -> int:
        """Transfer overdue items; the number of handoffs."""
        query = ListQuery(ITEMS_DUE, limit=_AT_ONCE)
        found = [state_of(self._hub.store, place.row) for place in walk(self._hub.store, query)]
        due = [
            one
            for one in found
            if isinstance(one, Handoff) and one.entered_at + GRACE_MS <= now and one.items_due
        ]
        return sum(self._hand_on(handoff) for handoff in due)

    def _hand_on(self, handoff: Handoff) -> bool:
        done = hand_on(handoff, self._workq, handoff.items_due)
        try:
            self._hub.do(SYSTEM, *done.commands)
        except LedgerError:
            return False
        return True
