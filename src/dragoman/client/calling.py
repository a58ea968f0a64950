"""What everyone who speaks to the hub can say, under whichever token."""

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from dragoman.client import requests
from dragoman.client.requests import Message, Request
from dragoman.client.shapes import Sent
from dragoman.client.signing import Signer
from dragoman.client.wire import Wire
from dragoman.core.errors import Refusal, Refused
from dragoman.text.nearest import meant


class Calling:
    """A connection together with a token; empty: the connection's own."""

    def __init__(
        self,
        wire: Wire,
        token: str = "",
        operations: dict[str, str] | None = None,
        signer: Signer | None = None,
    ) -> None:
        self.wire = wire
        self.signer = signer
        self._token = token
        self._operations = {} if operations is None else operations
        """Operation -> its path, as far as it was looked up."""

    def with_token(self, token: str) -> "Calling":
        """Return the same connection with another token; an attempt's proves more than a key."""
        return Calling(self.wire, token, self._operations, None if token else self.signer)

    def key(self, given: str) -> str:
        """Return the caller's idempotency key, else a new one."""
        return given or self.wire.new_id()

    async def ask(self, request: Request, *, must_be_there: bool = False) -> Any:
        """Send a request and return its answer."""
        return await self.wire.ask(request, token=self._token, must_be_there=must_be_there)

    async def send(self, message: Message, *, dialect: str = "", key: str = "") -> Sent:
        """Send one message, signed if there is a key to sign it with."""
        signer = self.signer
        if signer is None:
            return await self.ask(requests.send(message, dialect, self.key(key)))
        if dialect:
            raise ValueError(
                f"a signed message cannot name its dialect ({dialect}): the hub finds out which it "
                "is. Leave dialect out, or connect without a signer and DRAGOMAN_KEY"
            )

        def sealed(request: Request) -> Request:
            return replace(request, body=signer.sign(message, request.key))

        asked = requests.signed(self.key(key))
        return await self.wire.ask(asked, token=self._token, afresh=sealed)

    async def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Call an operation by its name."""
        if operation not in self._operations:
            # Looked up on demand: the dialects depend on the hub.
            described = await self.ask(requests.operations())
            self._operations.update(requests.operation_paths(described))
        path = self._operations.get(operation)
        if path is None:
            raise Refused(_unknown(operation, self._operations))
        return await self.ask(requests.call(path, arguments, self.key(key)))


def _unknown(operation: str, known: Mapping[str, str]) -> Refusal:
    hint = meant(operation, known) or ";"
    return Refusal(
        "unknown_type",
        f"the hub has no operation {operation!a}{hint} known: {', '.join(sorted(known))}",
    )
