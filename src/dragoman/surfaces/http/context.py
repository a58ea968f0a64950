"""Per-application context: feed, rate limiter, metrics, store; and one checked request.

Reads of the store may wait for a disk or a network, so they run in a thread. A long poll or a
stream opens a waiter here, which ends with its connection and with its token.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Concatenate, ParamSpec, TypeVar

from msgspec import Struct
from starlette.requests import Request
from starlette.types import Receive, Scope

from dragoman.core.actor import Actor
from dragoman.core.base import Command
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.auth import Principal
from dragoman.engine.operation import Dialect
from dragoman.engine.ports import Store
from dragoman.engine.queries.numbers import NumbersIndex
from dragoman.engine.queries.visibility import EntrySource, Reader, find_reader
from dragoman.engine.request import Committed
from dragoman.engine.signed_requests import SignedMessageVerifier
from dragoman.surfaces.http.deps import HttpDeps
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.fanout import Feed, Waiter
from dragoman.surfaces.http.limits import (
    DecodingTurns,
    RateLimiter,
    StreamLimits,
    open_budget,
    token_budget,
)
from dragoman.surfaces.http.metrics import Metrics
from dragoman.surfaces.http.readiness import ReadinessCheck
from dragoman.text.error_messages import suggest_or_list

# --- application and request ------------------------------------------------------------------

P = ParamSpec("P")

T = TypeVar("T")


class AppContext:
    """Context of one application."""

    def __init__(self, deps: HttpDeps) -> None:
        http = deps.settings.http
        self.deps = deps
        self.hub = deps.hub
        self.store: Store = deps.hub.store
        self.numbers = NumbersIndex(self.store)
        self.entries = EntrySource(self.store, deps.settings.teamspaces)
        self.feed = Feed(
            self.entries,
            deps.hints,
            deps.hub.engine.recent_entries,
            deps.timeouts.poll_interval,
        )
        self.rate_limiter = RateLimiter(http.rate_per_second, http.burst, deps.monotonic)
        self.decoding_turns = DecodingTurns()
        self.body_budget = token_budget(http.max_body)
        self.open_body_budget = open_budget()
        self.metrics = Metrics()
        self.stream_limits = StreamLimits(deps.identity, deps.timeouts.token_check)
        self.readiness = ReadinessCheck(deps)
        self.verify_lock = asyncio.Lock()
        self.envelopes = SignedMessageVerifier(
            self.store, deps.hub.clock, deps.hub.redaction.check_document
        )

    async def read(
        self,
        query: Callable[Concatenate[Store, P], T],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Run a query on the store."""
        return await asyncio.to_thread(query, self.store, *arguments, **named)

    async def find_or_raise(
        self,
        query: Callable[Concatenate[Store, P], T | Refusal],
        *arguments: P.args,
        **named: P.kwargs,
    ) -> T:
        """Run a query on the store; a refusal is raised."""
        found = await self.read(query, *arguments, **named)
        if isinstance(found, Refusal):
            raise Refused(found)
        return found

    async def submit(self, actor: Actor, *commands: Command, key: str = "") -> Committed:
        """Run commands for a caller; a refusal is raised."""
        return await self.hub.submit_async(actor, *commands, key=key)

    def find_dialect(self, name: str, field: str) -> Dialect:
        """Return the dialect of this name, given in that field; HttpProblem if there is none."""
        dialects = {one.name: one for one in self.deps.router.dialects}
        if name not in dialects:
            hint = suggest_or_list(name, dialects)
            raise problem_error("invalid_request", f"there is no dialect {name!a}{hint}", field)
        return dialects[name]

    def check_rate(self, caller: str) -> None:
        """Raise HttpProblem if this caller has sent too many requests."""
        self._refuse_for(self.rate_limiter.acquire(caller))

    def charge_lines(self, caller: str, amount: int) -> None:
        """Charge a caller for the lines of a batch after the first one, which counted as its
        request; HttpProblem if it is in debt for another batch."""
        self._refuse_for(self.rate_limiter.acquire(caller, amount, required=0.0))

    def _refuse_for(self, seconds: int) -> None:
        if seconds:
            http = self.deps.settings.http
            raise problem_error(
                "rate_limited",
                f"at most {http.rate_per_second:g} requests a second are taken from one caller "
                f"({http.burst} after a pause): wait {seconds} s",
                retry_after=str(seconds),
            )


class Call(Struct, frozen=True):
    """One checked request: its caller and its values."""

    context: AppContext
    principal: Principal
    request: Request
    path_params: Mapping[str, str]
    query: Any
    """In the endpoint's shape of the query."""
    body: Any
    """In the endpoint's shape of the body."""
    raw: bytes
    key: str
    """The idempotency key, if the caller gave one."""
    warnings: list[str] = []
    """Warnings that are sent beside the response."""

    async def submit(self, *commands: Command) -> Committed:
        """Run commands for the caller under its key; a refusal is raised."""
        accepted = await self.context.submit(self.principal.actor, *commands, key=self.key)
        self.warnings.extend((*accepted.warnings, *accepted.redaction_warnings))
        return accepted

    @property
    def now(self) -> int:
        """The hub's time."""
        return self.context.hub.clock.now()

    @property
    def reader(self) -> Reader:
        """The caller, as a reader of what is not for everybody."""
        return find_reader(self.principal.actor, self.context.deps.settings.teamspaces)


# --- long polls and streams -------------------------------------------------------------------

MAX_WAIT_MS = 60_000
"""Maximum time of a long poll."""


@asynccontextmanager
async def open_waiter(
    context: AppContext, request: Request, *, traces: bool = False
) -> AsyncGenerator[Waiter]:
    """Open a waiter for the caller of a request whose body has been read.

    It is closed if the connection ends meanwhile, or the token of the caller.
    """
    scope = request.scope
    async with context.feed.open_waiter(traces=traces) as waiter:
        watcher = asyncio.create_task(_close_on_disconnect(request.receive, waiter))
        session_end = _schedule_session_end(context, scope, waiter)
        try:
            with context.stream_limits.admit(scope["principal"], scope["token"], waiter.close):
                yield waiter
        finally:
            watcher.cancel()
            session_end.cancel()


def _schedule_session_end(context: AppContext, scope: Scope, waiter: Waiter) -> asyncio.Handle:
    """Close the waiter of a browser when its session ends; a handle that cancels this."""
    loop, ends_at = asyncio.get_running_loop(), scope.get("session_ends_at")
    if ends_at is None:
        return asyncio.Handle(waiter.close, (), loop)
    return loop.call_later(max(0, ends_at - context.hub.clock.now()) / 1_000, waiter.close)


async def _close_on_disconnect(receive: Receive, waiter: Waiter) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
    waiter.disconnect()
