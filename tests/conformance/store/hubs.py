"""Hubs for the suite: engines on one storage, under one clock that is moved by hand."""

from collections.abc import Callable

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.reading import Receipt
from dragoman.engine.handle import Engine, Failpoint
from dragoman.engine.ports import Store
from dragoman.engine.request import Outcome, Request, accepted
from dragoman.system.clock import HandClock
from dragoman.system.ids import new_id

NOW = 1_770_647_400_000
"""2026-02-09T14:30:00.000Z."""

SECRET = b"a secret of the suite"

ANN = Actor("human", "ann")
HUB = Actor("system", "hub")
ALICE = Actor("agent", "alice")
BOB = Actor("agent", "bob")
EVE = Actor("observer", "eve")


def no_failure(_: str) -> None:
    """The failpoint of a hub that is left alone."""


class Hub:
    """An engine, and requests in one line."""

    def __init__(
        self, store: Store, clock: HandClock, new_request_id: Callable[[], str] = new_id
    ) -> None:
        self.store = store
        self.clock = clock
        self.on_failpoint: Failpoint = no_failure
        self.engine = Engine(store, clock, SECRET, failpoint=self._pass)
        self._new_request_id = new_request_id

    def _pass(self, failpoint: str) -> None:
        self.on_failpoint(failpoint)

    def request(self, actor: Actor, *commands: AnyCommand, key: str = "") -> Request:
        """A request with an id of its own."""
        return Request(actor, commands, self._new_request_id(), key)

    def ask(self, actor: Actor, *commands: AnyCommand, key: str = "") -> Outcome:
        """Whatever the hub answers."""
        return self.engine.handle_now(self.request(actor, *commands, key=key))

    def do(self, actor: Actor, *commands: AnyCommand, key: str = "") -> Receipt:
        """The last receipt; a refusal is raised."""
        return accepted(self.ask(actor, *commands, key=key)).receipts[-1]


class Hubs:
    """As many hubs as a test wants; those that share a store in memory also share its engine."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self.clock = HandClock(NOW)
        self._open_store = open_store
        self._hubs: dict[int, Hub] = {}

    def new(self) -> Hub:
        """One more hub on the same data."""
        store = self._open_store()
        return self._hubs.setdefault(id(store), Hub(store, self.clock))

    def reset(self) -> None:
        """Begin anew: hubs that come later remember nothing of what these have seen."""
        self.close()
        self._hubs.clear()

    def close(self) -> None:
        """Stop every writer."""
        for hub in self._hubs.values():
            hub.engine.close()
