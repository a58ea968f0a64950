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


class Weather(Struct):
    """How often things go wrong, of a thousand transactions; all 0: never."""

    conflict: int = 0
    away: int = 0
    lost: int = 0
    """The connection breaks; whether the commit was done, nobody can tell."""
    killed: int = 0
    away_until: int = 0
    """Until this moment (passed milliseconds) the store is away altogether."""

    def calm_down(self) -> None:
        """Nothing goes wrong any more."""
        self.conflict = self.away = self.lost = self.killed = self.away_until = 0


class FaultyStore:
    """The store of one life of a hub."""

    def __init__(
        self,
        store: Store,
        weather: Weather,
        chance: Random,
        passed: Callable[[], int],
        on_death: Callable[[], None],
    ) -> None:
        self._store = store
        self._weather = weather
        self._chance = chance
        self._passed = passed
        self._on_death = on_death
        self.is_dead = False

    def transact(self, work: Callable[[Session], T]) -> T:
        """Run the work, if nothing comes between."""
        self._reach()
        fault, comes_late = self._draw(), self._chance.random() < 0.5
        if fault is not None and not comes_late:
            raise self._so_be_it(fault)

        def undone(session: Session) -> T:
            work(session)
            assert fault is not None
            raise self._so_be_it(fault)

        is_unknown = isinstance(fault, StoreLost | HubDied)
        is_committed = is_unknown and self._chance.random() < 0.5
        if fault is None or is_committed:
            result = self._store.transact(work)
            if fault is None:
                return result
            raise self._so_be_it(fault)
        return self._store.transact(undone)

    def __getattr__(self, name: str) -> Any:
        """Every reader, while the store can be reached."""
        self._reach()
        return getattr(self._store, name)

    def _reach(self) -> None:
        if self.is_dead:
            raise HubDied
        if self._passed() < self._weather.away_until:
            raise StoreUnavailable("the store is away")

    def _draw(self) -> StoreError | HubDied | None:
        weather, drawn = self._weather, self._chance.randrange(1_000)
        for odds, fault in (
            (weather.conflict, StoreConflict("another writer was faster")),
            (weather.away, StoreUnavailable("the store is away")),
            (weather.lost, StoreLost("the connection broke during the commit")),
            (weather.killed, HubDied()),
        ):
            if drawn < odds:
                return fault
            drawn -= odds
        return None

    def _so_be_it(self, fault: StoreError | HubDied) -> BaseException:
        if isinstance(fault, HubDied):
            self.is_dead = True
            self._on_death()
        return fault
