"""A store that fails as stores do: slower than others, away, cut off in a commit, or with its hub.

It stands between one life of a hub and what is kept. When that life is over, nothing goes through
any more, whatever is left of it.
"""

from collections.abc import Callable
from random import Random
from typing import Any, TypeVar

from msgspec import Struct

from dragoman.core.errors import StoreConflict, StoreError, StoreLost, StoreUnavailable
from dragoman.engine.ports import Session, Store

T = TypeVar("T")


class HubDied(BaseException):
    """The process of the hub was killed: nothing after this point happens in it."""


class FaultRates(Struct):
    """How often things go wrong, of a thousand transactions; all 0: never."""

    conflict: int = 0
    unavailable: int = 0
    commit_lost: int = 0
    """The connection breaks; whether the commit was done, nobody can tell."""
    killed: int = 0
    unavailable_until: int = 0
    """Until this moment (passed milliseconds) the store is away altogether."""

    def reset(self) -> None:
        """Nothing goes wrong any more."""
        self.conflict = self.unavailable = self.commit_lost = self.killed = (
            self.unavailable_until
        ) = 0


class FaultyStore:
    """The store of one life of a hub."""

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

    def transact(self, work: Callable[[Session], T]) -> T:
        """Run the work, if nothing comes between."""
        self._check_reachable()
        fault, in_commit = self._draw_fault(), self._rng.random() < 0.5
        if fault is not None and not in_commit:
            raise self._apply_fault(fault)

        def rolled_back(session: Session) -> T:
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
        """Every reader, while the store can be reached."""
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
