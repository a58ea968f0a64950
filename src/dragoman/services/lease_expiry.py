"""Lease expiry: ends the attempt of a holder that sends no heartbeats (S-RUN).

Its report, if there is one, takes effect; otherwise the task goes back to its queue.
"""

from collections.abc import Mapping

from dragoman.core.actor import HUB_ACTOR
from dragoman.core.attempt import ExpireLease
from dragoman.core.backoff import Backoff
from dragoman.core.errors import LedgerError, Refusal
from dragoman.core.handoff.common import COORDINATOR
from dragoman.engine.hub import Hub
from dragoman.engine.queries.handoffs import NO_TEAMS, Team, escalation_recipients
from dragoman.engine.queries.tasks import find_task

_PAGE = 100


class LeaseExpiry:
    """Ends every expired lease."""

    name = "lease-expiry"

    def __init__(
        self,
        hub: Hub,
        backoff: Backoff,
        coordinator: str = COORDINATOR,
        teams: Mapping[str, Team] = NO_TEAMS,
    ) -> None:
        """`coordinator` is notified where nobody else could be; `teams` have members of their
        own."""
        self._hub = hub
        self._backoff = backoff
        self._coordinator = coordinator
        self._teams = teams

    def run_once(self, now: int) -> int:
        """Expire leases; the number of recovered tasks."""
        expired, seen = 0, set[str]()
        # A stream that comes up again could not be expired: the hub's own clock is behind `now`, or
        # a store has kept a lease that it should have ended.
        while page := [
            one for one in self._hub.store.expired_leases(now, _PAGE) if one not in seen
        ]:
            seen.update(page)
            expired += sum(self._expire(stream) for stream in page)
        return expired

    def _expire(self, stream: str) -> bool:
        """Expire one lease; True if it was ended. A task that cannot be read does not stop the
        others.
        """
        task, store = stream.partition(":")[2], self._hub.store
        try:
            found = find_task(store, task)
            handoff = None if isinstance(found, Refusal) else found.task.handoff
            handoff_id = handoff.id if handoff is not None else ""
            recipients = escalation_recipients(self._teams, self._coordinator, store, handoff_id)
            outcome = self._hub.submit(HUB_ACTOR, ExpireLease(task, self._backoff, recipients))
        except LedgerError:
            return False
        return outcome.receipts[0].status != "in-progress"
