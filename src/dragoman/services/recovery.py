"""Recovery: a task whose holder has gone silent is taken back, by its report or to the queue."""

from dragoman.core.actors import SYSTEM
from dragoman.core.commands import ExpireLease
from dragoman.core.deadlines import Backoff
from dragoman.core.errors import LedgerError
from dragoman.core.handoff_words import COORDINATOR
from dragoman.engine.ask import coordinators
from dragoman.engine.hub import Hub

_PAGE = 100


class Recovery:
    """Ends every lease that has expired."""

    name = "recovery"

    def __init__(self, hub: Hub, backoff: Backoff, coordinator: str = COORDINATOR) -> None:
        self._hub = hub
        self._backoff = backoff
        self._coordinator = coordinator

    def run_once(self, now: int) -> int:
        """Recover every silent task; how many there were."""
        recovered = 0
        while page := self._hub.store.expired(now, _PAGE):
            told = coordinators(self._hub.store, self._coordinator)
            ended = sum(self._recover(stream, told) for stream in page)
            recovered += ended
            if not ended:  # the hub's own clock is behind `now`: their leases live on
                break
        return recovered

    def _recover(self, stream: str, told: tuple[str, ...]) -> bool:
        """Whether the lease was ended; a task that cannot be read does not stop the others."""
        task = stream.partition(":")[2]
        try:
            done = self._hub.do(SYSTEM, ExpireLease(task, self._backoff, told))
        except LedgerError:
            return False
        return done.receipts[0].status != "in-progress"
