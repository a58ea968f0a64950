"""The engine of a place without keys: the place can be looked at, and takes no request."""

from asyncio import Future

from dragoman.engine.handle import Engine
from dragoman.engine.ports import Clock, Store
from dragoman.engine.request import Outcome, Request
from dragoman.system.keys import UnusableKeys


class ReadOnlyEngine(Engine):
    """Read-only engine for a data directory without keys: raises the error of the keys."""

    def __init__(self, store: Store, clock: Clock, keys: UnusableKeys) -> None:
        super().__init__(store, clock, keys.secret)
        self._error = keys.reason

    def handle_now(self, request: Request) -> Outcome:
        """Raise the error of the keys."""
        del request
        raise self._error

    def handle(self, request: Request) -> Future[Outcome]:
        """Raise the error of the keys."""
        del request
        raise self._error
