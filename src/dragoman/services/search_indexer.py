"""The search indexer: indexes letters soon after they are sent, so that no search has to."""

from dragoman.engine.hub import Hub
from dragoman.engine.queries.search import update_index

_BATCH = 5_000
"""Entries per run: a hub that stops does not wait for a long ledger."""


class SearchIndexer:
    """Extends the search index towards the end of the ledger."""

    name = "search-index"

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def run_once(self, now: int) -> int:
        """Index the next entries; the number of letters."""
        del now
        return update_index(self._hub.store, _BATCH)
