"""What everyone who speaks to the hub can say, under whichever token."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.client import requests
from dragoman.client.requests import Message, Request
from dragoman.client.shapes import Sent
from dragoman.client.signing import Signer
from dragoman.client.wire import Transport
from dragoman.core.errors import Refusal, Refused
from dragoman.text.nearest import suggest


class ApiClient:
    """A connection together with a token; empty: the connection's own."""

    def __init__(
        self,
        transport: Transport,
        token: str = "",
        operations: dict[str, str] | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.transport = transport
        self.signer = signer
        self._token = token
        self._operations = {} if operations is None else operations
        """Operation -> its path, as far as it was looked up."""

    def with_token(self, token: str) -> "ApiClient":
        """Return the same connection with another token; an attempt's proves more than a key."""
        return ApiClient(self.transport, token, self._operations, None if token else self.signer)

    def ensure_key(self, given: str) -> str:
        """Return the caller's idempotency key, else a new one."""
        return given or self.transport.new_id()

    async def request(self, request: Request, *, fail_fast: bool = False) -> Any:
        """Send a request and return its answer."""
        return await self.transport.send(request, token=self._token, fail_fast=fail_fast)

    async def send(self, message: Message, *, dialect: str = "", key: str = "") -> Sent:
        """Send one message, signed if there is a key to sign it with."""
        signer = self.signer
        if signer is None:
            return await self.request(requests.send_message(message, dialect, self.ensure_key(key)))
        if dialect:
            raise ValueError(
                f"a signed message cannot name its dialect ({dialect}): the hub finds out which it "
                "is. Leave dialect out, or connect without a signer and DRAGOMAN_KEY"
            )

        def sign_again(request: Request) -> Request:
            return replace(request, body=signer.sign(message, request.key))

        unsigned = requests.send_signed(self.ensure_key(key))
        return await self.transport.send(unsigned, token=self._token, rebuild=sign_again)

    async def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Call an operation by its name."""
        if operation not in self._operations:
            # Looked up on demand: the dialects depend on the hub.
            described = await self.request(requests.describe_api())
            self._operations.update(requests.operation_paths(described))
        path = self._operations.get(operation)
        if path is None:
            raise Refused(_unknown_operation(operation, self._operations))
        return await self.request(requests.call_operation(path, arguments, self.ensure_key(key)))


def _unknown_operation(operation: str, known: Mapping[str, str]) -> Refusal:
    hint = suggest(operation, known) or ";"
    return Refusal(
        "unknown_type",
        f"the hub has no operation {operation!a}{hint} known: {', '.join(sorted(known))}",
    )
