"""Hubs for the suite: engines on one storage, with one clock that the test moves."""

from collections.abc import Callable

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.read import Receipt
from dragoman.engine.group_commit import Engine, Failpoint
from dragoman.engine.ports import Store
from dragoman.engine.request import Outcome, Request, committed_or_raise
from dragoman.system.clock import ManualClock, new_id

NOW = 1_770_647_400_000
"""2026-02-09T14:30:00.000Z."""

SECRET = b"a secret of the suite"

ANN = Actor("human", "ann")
HUB = Actor("system", "hub")
ALICE = Actor("agent", "alice")
BOB = Actor("agent", "bob")
EVE = Actor("observer", "eve")


def no_failure(_: str) -> None:
    """Failpoint at which nothing fails."""


class Hub:
    """Engine with one-line helpers for requests."""

    def __init__(
        self, store: Store, clock: ManualClock, new_request_id: Callable[[], str] = new_id
    ) -> None:
        self.store = store
        self.clock = clock
        self.on_failpoint: Failpoint = no_failure
        self.engine = Engine(store, clock, SECRET, failpoint=self._pass)
        self._new_request_id = new_request_id

    def _pass(self, failpoint: str) -> None:
        self.on_failpoint(failpoint)

    def request(self, actor: Actor, *commands: Command, key: str = "") -> Request:
        """Make a request with a new id."""
        return Request(actor, commands, self._new_request_id(), key)

    def ask(self, actor: Actor, *commands: Command, key: str = "") -> Outcome:
        """Submit a request and return its outcome."""
        return self.engine.handle_now(self.request(actor, *commands, key=key))

    def do(self, actor: Actor, *commands: Command, key: str = "") -> Receipt:
        """Submit a request and return its last receipt; a refusal is raised."""
        return committed_or_raise(self.ask(actor, *commands, key=key)).receipts[-1]


class Hubs:
    """Any number of hubs; those that share a memory store also share its engine."""

    def __init__(self, open_store: Callable[[], Store]) -> None:
        self.clock = ManualClock(NOW)
        self._open_store = open_store
        self._hubs: dict[int, Hub] = {}

    def new(self) -> Hub:
        """Open one more hub on the same storage."""
        store = self._open_store()
        return self._hubs.setdefault(id(store), Hub(store, self.clock))

    def reset(self) -> None:
        """Close all hubs, so that later ones start with empty caches."""
        self.close()
        self._hubs.clear()

    def close(self) -> None:
        """Stop every writer."""
        for hub in self._hubs.values():
            hub.engine.close()
