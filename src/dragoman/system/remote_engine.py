"""Remote engine: forwards requests to the hub that runs in another process of this machine.

A process beside a running hub reads the store directly and writes through the hub. If that hub
is shutting down, the request waits, and is then run here or by the next hub.
"""

import asyncio
import http.client
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlencode

import msgspec
from msgspec import Struct
from msgspec.structs import asdict, replace

from dragoman.core.errors import REFUSALS, Refusal, Refused, StoreUnavailable
from dragoman.core.read import Receipt
from dragoman.engine.forwarding import (
    ForwardedCommands,
    ForwardedOperation,
    ForwardedReply,
    ForwardedResult,
)
from dragoman.engine.group_commit import Engine, OnLeaseChange
from dragoman.engine.ports import Clock, Store
from dragoman.engine.request import Committed, Outcome, Reply, Request
from dragoman.system.clock import new_id
from dragoman.system.hub_client import call_hub, parse_problem, unexpected_answer
from dragoman.system.hub_lock import HubAddress
from dragoman.system.safe_fs import BadKey

_TIMEOUT_SECONDS: Final = 30.0
_MAX_TRIES: Final = 3
_SHUTDOWN_SECONDS: Final = 25.0
"""Limit for a hub that accepts no requests any more and still holds its data directory."""
_PAUSE_SECONDS: Final = 0.05


class HubConnection(Struct, frozen=True):
    """Address of the hub, a way to find it again, and timeouts."""

    address: HubAddress
    find_again: Callable[[], HubAddress | None]
    """Finds the hub's present address, if it still runs."""
    timeout_seconds: float = _TIMEOUT_SECONDS
    shutdown_seconds: float = _SHUTDOWN_SECONDS


class RemoteEngine(Engine):
    """Engine that has its requests run by the hub."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        secret: bytes,
        connection: HubConnection,
        on_leases: OnLeaseChange,
    ) -> None:
        super().__init__(store, clock, secret, on_leases=on_leases)
        self._connection = connection
        self._hub: HubAddress | None = connection.address
        self._on_leases = on_leases

    def handle_now(self, request: Request) -> Outcome:
        """Have one request run by the hub; if it has stopped, run it here."""
        # With an idempotency key the request can be retried when its answer was lost.
        request = replace(request, key=request.key or new_id())
        command = ForwardedCommands(
            request.actor,
            request.commands,
            request.key,
            request.original_text,
            request.per_attempt,
            request.sent_at,
            request.receipt_event,
            request.effect,
        )
        response = self._forward_to_hub("/v1/internal/commands", msgspec.json.encode(command))
        return super().handle_now(request) if response is None else self._parse_outcome(*response)

    def forward(self, message: ForwardedOperation) -> Reply | None:
        """Have the hub handle an operation, original text and all; None when no hub runs any
        more."""
        actor = {name: value for name, value in asdict(message.actor).items() if value}
        query = urlencode({"operation": message.operation, **actor})
        response = self._forward_to_hub(
            f"/v1/internal/operations?{query}", message.words, key=message.key or new_id()
        )
        if response is None:
            return None
        url, status, answer = response
        if status != http.client.OK:
            raise Refused(_parse_refusal(url, status, answer))
        reply = msgspec.json.decode(answer, type=ForwardedReply)
        if reply.accepted is not None:
            self._report_leases(reply.accepted.receipts)
        return reply.accepted or reply.rejected

    def _forward_to_hub(
        self, path: str, body: bytes, key: str = ""
    ) -> tuple[str, int, bytes] | None:
        """Address of the hub, status and body; None when no hub runs any more."""
        deadline = time.monotonic() + self._connection.shutdown_seconds
        while (hub := self._hub) is not None:
            try:
                return hub.url, *self._post_with_retry(hub, path, body, key)
            except ConnectionRefusedError as error:
                if time.monotonic() >= deadline:
                    raise StoreUnavailable(
                        f"the hub at {hub.url} does not answer ({error}); nothing was done. Look "
                        "at its log, or stop it and try again"
                    ) from error
            time.sleep(_PAUSE_SECONDS)
            self._hub = self._connection.find_again()
        return None

    def _parse_outcome(self, url: str, status: int, answer: bytes) -> Outcome:
        if status != http.client.OK:
            return _parse_refusal(url, status, answer)
        done = msgspec.json.decode(answer, type=ForwardedResult)
        self._report_leases(done.receipts)
        return Committed(done.receipts, done.repeated, done.declined, done.masked)

    def _report_leases(self, receipts: tuple[Receipt, ...]) -> None:
        self._on_leases({"task:" + receipt.task for receipt in receipts if receipt.task})

    def handle(self, request: Request) -> asyncio.Future[Outcome]:
        """Like `handle_now`, without blocking the event loop."""
        return asyncio.get_running_loop().run_in_executor(None, self.handle_now, request)

    def _post_with_retry(
        self, hub: HubAddress, path: str, body: bytes, key: str
    ) -> tuple[int, bytes]:
        """Status and body; ConnectionRefusedError when the hub accepts no connections."""
        url, seconds = hub.url, self._connection.timeout_seconds
        for tries_left in reversed(range(_MAX_TRIES)):
            try:
                return self._post(hub, path, body, key)
            except ConnectionRefusedError:
                raise
            except TimeoutError as error:
                raise StoreUnavailable(
                    f"the hub at {url} did not answer within {seconds:g} s; it may still "
                    "carry out the request: check its effect before you repeat it"
                ) from error
            except (OSError, http.client.HTTPException) as error:
                if not tries_left:
                    raise StoreUnavailable(
                        f"the hub at {url} closed the connection before it answered ({error}); the "
                        "request may have been done: check its effect before you repeat it"
                    ) from error
        raise AssertionError("the last try returns or raises")

    def _post(self, hub: HubAddress, path: str, body: bytes, key: str) -> tuple[int, bytes]:
        headers = {
            "Content-Type": "application/json",
            **({"Idempotency-Key": key} if key else {}),
        }
        return call_hub(hub, "POST", path, self._connection.timeout_seconds, body, headers)


def _parse_refusal(url: str, status: int, answer: bytes) -> Refusal:
    problem = parse_problem(answer)
    if problem.code == "unauthenticated":
        raise BadKey(
            f"The hub that runs at {url} does not know the token of this data directory: its file "
            "was changed since the hub was started. Put the old one back, or start the hub again."
        )
    if problem.code in REFUSALS:
        return Refusal(problem.code, problem.detail)
    raise unexpected_answer(url, status, problem)
