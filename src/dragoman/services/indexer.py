"""Indexing: letters can be searched for soon after they were sent; no search has to do it all."""

from dragoman.engine.hub import Hub
from dragoman.engine.reads.search import bring_level

_AT_ONCE = 5_000
"""Entries per run: a hub that stops does not wait for a long ledger."""


class Indexer:
    """Extends the search index towards the end of the ledger."""

    name = "search"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Index the next entries; the number of letters."""
        del now
        return bring_level(self._hub.store, _AT_ONCE)
