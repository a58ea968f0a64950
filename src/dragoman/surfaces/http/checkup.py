"""Whether the store can be read and written, and whether the ledger's end holds.

Looked at when somebody asks, in a thread, at most once a second and one at a time: whoever asks
more often, or without a token, costs no more.
"""

import asyncio
from collections.abc import Collection

from msgspec import Struct

from dragoman.core.errors import DragomanError, StoreCorrupt
from dragoman.engine.ports import Store
from dragoman.ledger.chain import link_hash
from dragoman.surfaces.http.door import Door

OK = "ok"
_ANSWER_S = 2.0
"""A store that does not answer within so many seconds is not ready."""
_LOOK_S = 0.25
"""Time limit for the database to inspect itself for damage."""


class Found(Struct, frozen=True):
    """The state of each: "ok", or in short what is wrong."""

    store: str
    ledger: str


class Checkup:
    """Checks the store on demand, and caches the result for a moment."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._has_failed = False
        """True if a write failed and none succeeded since."""
        self._written_at = float("-inf")
        self._inspected_at = float("-inf")
        self._is_damaged = False
        """True if the database ever found damage in itself; that does not heal by itself."""
        self._looking: asyncio.Task[Found] | None = None
        self._looked_at = float("-inf")
        door.hints.listen(self._written)

    def failed(self) -> None:
        """Record that a write failed."""
        self._has_failed = True
        self._looked_at = float("-inf")

    async def result(self) -> Found:
        """Return the current state, or the cached one of a moment ago."""
        now = self._door.monotonic()
        looking = self._looking
        if looking is None or (
            looking.done() and now - self._looked_at >= self._door.patience.checkup
        ):
            self._looked_at = now
            looking = self._looking = asyncio.create_task(asyncio.to_thread(self._look))
        await asyncio.wait([looking], timeout=_ANSWER_S)
        return looking.result() if looking.done() else Found("no answer", "unknown")

    def _written(self, _: Collection[str]) -> None:
        """Note that something was committed. (An `OnCommit`.)"""
        self._has_failed = False
        self._written_at = self._door.monotonic()

    def _look(self) -> Found:
        door, hub = self._door, self._door.hub
        try:
            self._inspect()
            holds = _end_holds(hub.store)
            quiet = door.monotonic() - self._written_at
            if self._has_failed or quiet >= door.patience.write:
                hub.engine.probe()
                self._written(())
        except DragomanError as error:
            return Found(error.code, "unknown")
        return Found(
            StoreCorrupt.code if self._is_damaged else OK, OK if holds else "ledger_broken"
        )

    def _inspect(self) -> None:
        """Let the database inspect itself, at the first check and every now and then."""
        now = self._door.monotonic()
        if not self._is_damaged and now - self._inspected_at >= self._door.patience.inspection:
            self._inspected_at = now
            self._is_damaged = bool(self._door.hub.store.inspect(_LOOK_S).damage)


def _end_holds(store: Store) -> bool:
    """Return whether the last entry exists and its hash is correct."""
    head = store.head()
    last = store.entries(head - 1, 1) if head else []
    return not head or any(link_hash(one.previous, one.line) == one.hash for one in last)
