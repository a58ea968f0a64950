"""SLA: a delegated task that has not ended by its deadline is recorded as late, once."""

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import EscalateDelegation
from dragoman.core.errors import LedgerError
from dragoman.engine.hub import Hub

_PAGE = 100


class Sla:
    """Escalates every delegation whose deadline has passed; no status changes by that."""

    name = "sla"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Escalate every late delegation; how many there were."""
        escalated = 0
        while page := self._hub.store.overdue(now, _PAGE):
            told = sum(map(self._escalate, page))
            escalated += told
            if not told:  # the hub's own clock is behind `now`: they are not late yet
                break
        return escalated

    def _escalate(self, stream: str) -> bool:
        """Whether it was told; a task that cannot be read does not stop the others."""
        try:
            self._hub.do(SYSTEM, EscalateDelegation(stream.partition(":")[2]))
        except LedgerError:
            return False
        row = self._hub.store.stream(stream)
        return row is not None and row.shelf.deadline is None
