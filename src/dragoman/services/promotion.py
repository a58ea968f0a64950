"""Promotion: tasks whose rest after a failure is over join the ready queue."""

from dragoman.engine.hub import Hub

_AT_ONCE = 1_000


class Promotion:
    """Moves due tasks into their queues, a bounded number in each transaction."""

    name = "promotion"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Promote every due task; their number."""
        promoted = 0
        while True:
            some = self._hub.store.transact(lambda session: session.promote(now, _AT_ONCE))
            promoted += some
            if some < _AT_ONCE:
                return promoted
