"""Readiness: whether the store can be read and written, and the end of the ledger is intact.

Checked on demand, in a thread, at most once a second and one check at a time: asking more often, or
without a token, costs nothing more.
"""

import asyncio

from msgspec import Struct

from dragoman.core.errors import DragomanError, StoreCorrupt
from dragoman.engine.ports import Store
from dragoman.ledger.entry import link_hash
from dragoman.surfaces.http.deps import HttpDeps

OK = "ok"
_TIMEOUT_S = 2.0
"""A store that does not answer within so many seconds is not ready."""
_INSPECTION_S = 0.25
"""Time limit for the database to inspect itself for damage."""


class StoreStatus(Struct, frozen=True):
    """The state of each: "ok", or in short what is wrong."""

    store: str
    ledger: str


class ReadinessCheck:
    """Checks the store on demand, and caches the result for a moment."""

    def __init__(self, deps: HttpDeps) -> None:
        self._deps = deps
        self._running_check: asyncio.Task[StoreStatus] | None = None
        self._checked_at = float("-inf")
        self._inspected_at = float("-inf")
        self._is_damaged = False
        """True if the database ever found damage in itself; that does not heal by itself."""

    async def result(self) -> StoreStatus:
        """Return the current state, or the cached one of a moment ago."""
        now = self._deps.monotonic()
        running = self._running_check
        if running is None or (
            running.done() and now - self._checked_at >= self._deps.timeouts.readiness_cache
        ):
            self._checked_at = now
            running = self._running_check = asyncio.create_task(
                asyncio.to_thread(self._check_store)
            )
        await asyncio.wait([running], timeout=_TIMEOUT_S)
        return running.result() if running.done() else StoreStatus("no answer", "unknown")

    def _check_store(self) -> StoreStatus:
        hub = self._deps.hub
        try:
            self._inspect(hub.store)
            is_intact = _is_end_intact(hub.store)
            hub.engine.probe_write()
        except DragomanError as error:
            return StoreStatus(error.code, "unknown")
        return StoreStatus(
            StoreCorrupt.code if self._is_damaged else OK, OK if is_intact else "ledger_broken"
        )

    def _inspect(self, store: Store) -> None:
        """Let the database inspect itself, at the first check and every now and then."""
        now, interval = self._deps.monotonic(), self._deps.timeouts.store_inspection
        if not self._is_damaged and now - self._inspected_at >= interval:
            self._inspected_at = now
            self._is_damaged = bool(store.inspect(_INSPECTION_S).damage)


def _is_end_intact(store: Store) -> bool:
    """Return whether the last entry exists and its hash is correct."""
    head = store.head()
    last = store.entries(head - 1, 1) if head else []
    return not head or any(link_hash(one.previous, one.line) == one.hash for one in last)
