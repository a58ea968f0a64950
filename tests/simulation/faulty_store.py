"""Store with injected faults: conflicts, outages, connections lost in a commit, a killed hub.

It stands between one process of the hub and the real store. After the process was killed, nothing
gets through any more.
"""

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from msgspec import Struct

from dragoman.core.errors import StoreConflict, StoreError, StoreLost, StoreUnavailable
from dragoman.engine.ports import Store, Transaction

T = TypeVar("T")


class HubDied(BaseException):
    """Death of the hub process: nothing after this point happens in it."""


class FaultRates(Struct):
    """Faults per thousand transactions; 0 is never."""

    conflict: int = 0
    unavailable: int = 0
    commit_lost: int = 0
    """Lost connections; the hub cannot know whether the commit was done."""
    killed: int = 0
    unavailable_until: int = 0
    """End of an outage of the store, in milliseconds since the start."""

    def reset(self) -> None:
        """Set all rates to 0."""
        self.conflict = self.unavailable = self.commit_lost = self.killed = (
            self.unavailable_until
        ) = 0


class FaultyStore:
    """Store of one process of the hub."""

    def __init__(
        self,
        store: Store,
        rates: FaultRates,
        rng: Random,
        passed: Callable[[], int],
        on_death: Callable[[], None],
    ) -> None:
        self._store = store
        self._rates = rates
        self._rng = rng
        self._passed = passed
        self._on_death = on_death
        self.is_dead = False

    def transact(self, work: Callable[[Transaction], T]) -> T:
        """Run the work, unless a fault is drawn."""
        self._check_reachable()
        fault, in_commit = self._draw_fault(), self._rng.random() < 0.5
        if fault is not None and not in_commit:
            raise self._apply_fault(fault)

        def rolled_back(session: Transaction) -> T:
            work(session)
            assert fault is not None
            raise self._apply_fault(fault)

        is_unknown = isinstance(fault, StoreLost | HubDied)
        is_committed = is_unknown and self._rng.random() < 0.5
        if fault is None or is_committed:
            result = self._store.transact(work)
            if fault is None:
                return result
            raise self._apply_fault(fault)
        return self._store.transact(rolled_back)

    def __getattr__(self, name: str) -> Any:
        """Pass reads on, while the store can be reached."""
        self._check_reachable()
        return getattr(self._store, name)

    def _check_reachable(self) -> None:
        if self.is_dead:
            raise HubDied
        if self._passed() < self._rates.unavailable_until:
            raise StoreUnavailable("the store is away")

    def _draw_fault(self) -> StoreError | HubDied | None:
        rates, drawn = self._rates, self._rng.randrange(1_000)
        for odds, fault in (
            (rates.conflict, StoreConflict("another writer was faster")),
            (rates.unavailable, StoreUnavailable("the store is away")),
            (rates.commit_lost, StoreLost("the connection broke during the commit")),
            (rates.killed, HubDied()),
        ):
            if drawn < odds:
                return fault
            drawn -= odds
        return None

    def _apply_fault(self, fault: StoreError | HubDied) -> BaseException:
        if isinstance(fault, HubDied):
            self.is_dead = True
            self._on_death()
        return fault
