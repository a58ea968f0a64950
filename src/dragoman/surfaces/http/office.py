"""What is behind the door while it is open: the door, its feed, its rates, its figures, its store.

Reads of the store may wait for a disk or a network, so they are made in a thread.
"""

import asyncio
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec import UNSET, Raw, Struct, UnsetType
from starlette.requests import Request

from dragoman.bus.local import LocalBus
from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import Refusal, Refused, StoreError
from dragoman.engine.identity import Principal
from dragoman.engine.operation import Dialect
from dragoman.engine.ports import Store
from dragoman.engine.request import Accepted
from dragoman.engine.signed import Envelopes
from dragoman.surfaces.http.checkup import Checkup
from dragoman.surfaces.http.door import Door
from dragoman.surfaces.http.feed import Feed
from dragoman.surfaces.http.limits import Rates
from dragoman.surfaces.http.metrics import Metrics
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.http.stays import Stays
from dragoman.text.nearest import nearest_or_all

P = ParamSpec("P")
T = TypeVar("T")


class Office:
    """Context of one application."""

    def __init__(self, door: Door) -> None:
        http = door.settings.http
        self.door = door
        self.hub = door.hub
        self.store: Store = door.hub.store
        self.feed = Feed(
            self.store,
            door.hints,
            door.hub.engine.tail,
            door.patience.look,
            of_agents=self._hear_of_agents,
        )
        self.bus = LocalBus(self.store, door.hints, door.patience.look)
        self.rates = Rates(http.rate_per_second, http.burst, door.monotonic)
        self.metrics = Metrics()
        self.stays = Stays(door.identity, door.hints, door.patience.token)
        self.checkup = Checkup(door)
        self.envelopes = Envelopes(self.store, door.hub.clock, door.hub.redaction.refusal)

    def _hear_of_agents(self, streams: Collection[str]) -> None:
        """Check tokens again: another process may have revoked one, and its streams must end."""
        self.door.identity.forget(streams)
        self.stays.hear(streams)

    async def read(
        self,
        reading: Callable[Concatenate[Store, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Run a query on the store."""
        return await asyncio.to_thread(reading, self.store, *arguments, **named)

    async def found(
        self,
        reading: Callable[Concatenate[Store, P], T | Refusal],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Run a query on the store; a refusal is raised."""
        answer = await self.read(reading, *arguments, **named)
        if isinstance(answer, Refusal):
            raise Refused(answer)
        return answer

    async def do(
        self,
        actor: Actor,
        *commands: AnyCommand,
        key: str = "",
        said: Raw | UnsetType = UNSET,
    ) -> Accepted:
        """Run commands for a caller; a refusal is raised."""
        with self.writing():
            return await self.hub.do_soon(actor, *commands, key=key, said=said)

    def dialect(self, name: str, field: str) -> Dialect:
        """Return the dialect of this name, given in that field; HttpProblem if there is none."""
        known = {one.name: one for one in self.door.interpreter.dialects}
        if name not in known:
            hint = nearest_or_all(name, known)
            raise stop("invalid_request", f"there is no dialect {name!a}{hint}", field)
        return known[name]

    def check_rate(self, caller: str) -> None:
        """Raise HttpProblem if this caller has sent too many requests."""
        seconds = self.rates.take(caller)
        if seconds:
            http = self.door.settings.http
            raise stop(
                "rate_limited",
                f"at most {http.rate_per_second:g} requests a second are taken from one caller "
                f"({http.burst} after a pause): wait {seconds} s",
                retry_after=str(seconds),
            )

    @contextmanager
    def writing(self) -> Generator[None]:
        """Remember, for the readiness check, that a write inside the block failed."""
        try:
            yield
        except StoreError:
            self.checkup.failed()
            raise


class Call(Struct, frozen=True):
    """One checked request: its caller and its values."""

    office: Office
    principal: Principal
    request: Request
    path: Mapping[str, str]
    query: Any
    """In the endpoint's shape of the query."""
    body: Any
    """In the endpoint's shape of the body."""
    raw: bytes
    key: str
    """The idempotency key, if the caller gave one."""
    remarks: list[str] = []
    """Warnings that are sent beside the response."""

    async def do(self, *commands: AnyCommand) -> Accepted:
        """Run commands for the caller under its key; a refusal is raised."""
        accepted = await self.office.do(self.principal.actor, *commands, key=self.key)
        self.remarks.extend((*accepted.warnings, *accepted.masked))
        return accepted

    @property
    def now(self) -> int:
        """The hub's time."""
        return self.office.hub.clock.now()
