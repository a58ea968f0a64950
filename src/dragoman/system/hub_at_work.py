"""A hub that runs in another process of this machine: requests travel to it.

Whoever works on a data directory reads the store beside its hub, and writes through it.
"""

import asyncio
import http.client
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from dragoman.core.errors import REFUSALS, Refusal, StoreUnavailable
from dragoman.engine.errand import Do, Done
from dragoman.engine.handle import Engine, OnLeases
from dragoman.engine.ports import Clock, Store
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.system.hub_address import HubAddress
from dragoman.system.ids import new_id
from dragoman.system.trust import unchecked

_SECONDS: Final = 30.0
_MOST_BYTES: Final = 64 * 1024 * 1024
_TRIES: Final = 3


class _Problem(Struct, frozen=True):
    code: str = ""
    detail: str = ""


class RemoteEngine(Engine):
    """Takes requests as every engine does, and has them run where the hub is."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        secret: bytes,
        hub: HubAddress,
        on_leases: OnLeases,
        *,
        seconds: float = _SECONDS,
    ) -> None:
        super().__init__(store, clock, secret)
        self._hub = hub
        self._told = on_leases
        self._seconds = seconds

    def handle_now(self, request: Request) -> Outcome:
        """Have one request run by the hub."""
        asked = Do(
            request.actor,
            request.commands,
            # With a key it can be asked for again when the answer was lost on its way.
            request.key or new_id(),
            request.said,
            request.per_attempt,
            request.heard,
            request.effect,
        )
        status, answer = self._ask(msgspec.json.encode(asked))
        if status == http.client.OK:
            done = msgspec.json.decode(answer, type=Done)
            self._told({"task:" + receipt.task for receipt in done.receipts if receipt.task})
            return Accepted(done.receipts, done.repeated, done.declined)
        return self._refusal(status, answer)

    def handle(self, request: Request) -> asyncio.Future[Outcome]:
        """The same, without holding up the event loop."""
        return asyncio.get_running_loop().run_in_executor(None, self.handle_now, request)

    def _ask(self, body: bytes) -> tuple[int, bytes]:
        url = self._hub.url
        for left in reversed(range(_TRIES)):
            try:
                return self._post(body)
            except ConnectionRefusedError as error:
                raise StoreUnavailable(
                    f"the hub at {url} does not answer ({error}); nothing was done. Look at its "
                    "log, or stop it and try again"
                ) from error
            except TimeoutError as error:
                raise StoreUnavailable(
                    f"the hub at {url} did not answer within {self._seconds:g} s; it may still do "
                    "what was asked: look at what became of it before you ask again"
                ) from error
            except (OSError, http.client.HTTPException) as error:
                if not left:
                    raise StoreUnavailable(
                        f"the hub at {url} broke off before it answered ({error}); what was asked "
                        "may have been done: look at what became of it before you ask again"
                    ) from error
        raise AssertionError("the last try returns or raises")

    def _post(self, body: bytes) -> tuple[int, bytes]:
        connection = _connect(self._hub.url, self._seconds)
        headers = {
            "Authorization": f"Bearer {self._hub.token}",
            "Content-Type": "application/json",
        }
        try:
            connection.request("POST", "/v1/do", body, headers)
            response = connection.getresponse()
            return response.status, response.read(_MOST_BYTES)
        finally:
            connection.close()

    def _refusal(self, status: int, answer: bytes) -> Refusal:
        try:
            problem = msgspec.json.decode(answer, type=_Problem)
        except msgspec.MsgspecError:
            problem = _Problem()
        if problem.code in REFUSALS:
            return Refusal(problem.code, problem.detail)
        raise StoreUnavailable(
            f"the hub at {self._hub.url} answered {status} "
            f"({problem.code or 'no code'}: {problem.detail or 'no reason'})"
        )


def _connect(url: str, seconds: float) -> Any:
    parts = urlsplit(url)
    if parts.scheme == "https":
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=seconds, context=unchecked()
        )
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=seconds)
