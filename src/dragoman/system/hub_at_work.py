"""A hub that runs in another process of this machine: requests travel to it.

Whoever works on a data directory reads the store beside its hub, and writes through it.
"""

import asyncio
import http.client
import ssl
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from dragoman.core.actors import Actor
from dragoman.core.commands import AnyCommand
from dragoman.core.errors import REFUSALS, Refusal, StoreUnavailable
from dragoman.core.events import MessageReceived
from dragoman.core.reading import Receipt
from dragoman.engine.handle import Engine, OnLeases
from dragoman.engine.ports import Clock, Store
from dragoman.engine.request import Accepted, Outcome, Request
from dragoman.system.hub_lock import holder
from dragoman.system.token_file import load_token

_SECONDS: Final = 30.0
_MOST_BYTES: Final = 64 * 1024 * 1024


class HubAddress(Struct, frozen=True):
    """Where the hub of a data directory can be called, and what it is shown."""

    url: str
    token: str


def find_hub(data: Path) -> HubAddress | None:
    """The hub that runs for this data directory and can be called; None: there is none."""
    running = holder(data)
    if running is None or not running.url:
        return None
    return HubAddress(running.url, load_token(data).decode())


class _Do(Struct, frozen=True, omit_defaults=True):
    actor: Actor
    commands: tuple[AnyCommand, ...]
    key: str = ""
    said: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    per_attempt: bool = False
    heard: MessageReceived | None = None


class _Done(Struct, frozen=True):
    receipts: tuple[Receipt, ...]
    repeated: bool


class _Problem(Struct, frozen=True):
    code: str = ""
    detail: str = ""


class RemoteEngine(Engine):
    """Takes requests as every engine does, and has them run where the hub is."""

    def __init__(
        self, store: Store, clock: Clock, secret: bytes, hub: HubAddress, on_leases: OnLeases
    ) -> None:
        super().__init__(store, clock, secret)
        self._hub = hub
        self._told = on_leases

    def handle_now(self, request: Request) -> Outcome:
        """Have one request run by the hub."""
        asked = _Do(
            request.actor,
            request.commands,
            request.key,
            request.said,
            request.per_attempt,
            request.heard,
        )
        status, answer = self._post(msgspec.json.encode(asked))
        if status == http.client.OK:
            done = msgspec.json.decode(answer, type=_Done)
            self._told({"task:" + receipt.task for receipt in done.receipts if receipt.task})
            return Accepted(done.receipts, done.repeated)
        return self._refusal(status, answer)

    def handle(self, request: Request) -> asyncio.Future[Outcome]:
        """The same, without holding up the event loop."""
        return asyncio.get_running_loop().run_in_executor(None, self.handle_now, request)

    def _post(self, body: bytes) -> tuple[int, bytes]:
        connection = _connect(self._hub.url)
        headers = {
            "Authorization": f"Bearer {self._hub.token}",
            "Content-Type": "application/json",
        }
        try:
            connection.request("POST", "/v1/do", body, headers)
            response = connection.getresponse()
            return response.status, response.read(_MOST_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise StoreUnavailable(
                f"the hub at {self._hub.url} does not answer ({error}); look at its log, or stop "
                "it and try again"
            ) from error
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


def _connect(url: str) -> Any:
    parts = urlsplit(url)
    if parts.scheme == "https":
        # The address is this machine's own, by its own lock file: there is nobody in between.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return http.client.HTTPSConnection(
            parts.hostname or "", parts.port, timeout=_SECONDS, context=context
        )
    return http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
