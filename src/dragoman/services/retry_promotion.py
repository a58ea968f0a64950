"""Retry promotion: moves tasks whose backoff is over into the ready queue."""

from dragoman.engine.hub import Hub

_BATCH = 1_000


class RetryPromotion:
    """Moves due tasks into their queues, a bounded number in each transaction."""

    name = "retry-promotion"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Promote every due task; their number."""
        promoted = 0
        while True:
            count = self._hub.store.transact(lambda session: session.promote_due(now, _BATCH))
            promoted += count
            if count < _BATCH:
                return promoted
