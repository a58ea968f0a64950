"""Transport: sends a request until it is answered, or its patience is over.

Whatever fails on the way is sent again under the same idempotency key, so that a request whose
response was lost is carried out once.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from types import TracebackType
from typing import Any, Final, Self

import httpx2
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.client import requests
from dragoman.client.address import Address
from dragoman.client.errors import BadAnswer, HubUnreachable, LeaseLost, Unauthenticated
from dragoman.client.models import Problem, RejectedMessage
from dragoman.client.requests import ApiDescription, Message, Query, Request
from dragoman.client.signing import Signer
from dragoman.core.backoff import Backoff, backoff_delay
from dragoman.core.errors import Refusal, Refused
from dragoman.engine.schemas.accepted_message import AcceptedMessage
from dragoman.text.error_messages import suggest

# --- responses --------------------------------------------------------------------------------

RETRYABLE_STATUSES: Final = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""

PERMANENT_CODES: Final = frozenset({"store_corrupt", "ledger_broken"})
"""Codes of errors that do not pass by waiting."""

_BACKOFF: Final = Backoff(base_ms=100, cap_ms=5_000)

_MAX_SHOWN: Final = 200

_JSON: Final = "application/json"
"""Media type of a dialect's own refusal; problems of the hub have another."""


class _BatchLine(Struct, frozen=True):
    """The flag of a line in the response to a batch."""

    ok: bool


class RetryAfter(Struct, frozen=True):
    """The request may succeed later."""

    reason: str
    min_seconds: float = 0.0
    """The minimum that the hub asks for."""


class NoResponse(RetryAfter, frozen=True):
    """There was no complete response: there may be no hub."""


def parse_response(request: Request, response: httpx2.Response) -> Any:
    """Return the value of a response, or `RetryAfter`; a refusal is raised."""
    status = response.status_code
    if status in (200, 201):
        return _decode(request, response.content)
    if status == 204:  # nothing, where that is an answer
        return _decode(request, b"null")
    problem = _parse_problem(response.content)
    if status in RETRYABLE_STATUSES and (problem is None or problem.code not in PERMANENT_CODES):
        reason = f"{problem.code}: {problem.detail}" if problem else f"HTTP status {status}"
        return RetryAfter(reason, _parse_retry_after(response.headers.get("retry-after", "")))
    is_json = response.headers.get("content-type") == _JSON
    if problem is None and is_json and request.response_type is Any:
        # A dialect that formats refusals itself.
        return _decode(request, response.content)
    if problem is None:
        raise BadAnswer(
            f"{request.method} {request.path} was answered with HTTP status {status} and "
            f"{response.content[:_MAX_SHOWN]!r}: this is no dragoman hub; check its url"
        )
    raise refusal_error(problem)


def refusal_error(problem: Problem) -> Refused:
    """Build the exception of a problem."""
    if problem.code == LeaseLost.code:
        return LeaseLost(problem.detail)
    return Refused(Refusal(problem.code, problem.detail))


def parse_batch(lines: bytes) -> list[AcceptedMessage | RejectedMessage]:
    """Parse the response to a batch, one result for each of its lines."""
    try:
        return [_parse_batch_line(line) for line in lines.splitlines()]
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise BadAnswer(
            f"the answer to a batch is not what this client knows ({error}): its version and the "
            "hub's are too far apart"
        ) from None


def backoff_delays(seed: str) -> Iterator[float]:
    """Yield the seconds to wait after each failure, without end: doubling, bounded, with jitter.

    The jitter is derived from the request, so that many who lost the same hub do not come back at
    once.
    """
    failures = 0
    while True:
        failures += 1
        jitter = sha256(f"{seed}:{failures}".encode()).digest()[0] / 255
        yield backoff_delay(failures, _BACKOFF) / 1_000 * (0.5 + jitter / 2)


def _decode(request: Request, body: bytes) -> Any:
    if request.response_type is bytes:
        return body
    try:
        return msgspec.json.decode(body, type=request.response_type)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadAnswer(
            f"the answer to {request.method} {request.path} is not what this client knows "
            f"({error}): this is no dragoman hub, so check its url, or its version and this "
            "client's are too far apart"
        ) from None


def _parse_problem(body: bytes) -> Problem | None:
    try:
        return msgspec.json.decode(body, type=Problem)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _parse_retry_after(retry_after: str) -> float:
    return float(retry_after) if retry_after.isascii() and retry_after.isdigit() else 0.0


def _parse_batch_line(line: bytes) -> AcceptedMessage | RejectedMessage:
    is_taken = msgspec.json.decode(line, type=_BatchLine).ok
    return msgspec.json.decode(line, type=AcceptedMessage if is_taken else RejectedMessage)


# --- connection -------------------------------------------------------------------------------

CONNECT_S: Final = 5.0

RESPONSE_S: Final = 30.0
"""For the next bytes of a response."""

_WARNING_HEADER: Final = "dragoman-warning"
"""The header for warnings beside a response."""

_SIGNED_PATH: Final = "/v1/signed"
"""The path of signed messages, which takes them whatever token is shown."""

_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"

_START_HINT: Final = "Is it running? `dragoman up` starts one"

_log = logging.getLogger("dragoman.client")


class Transport:
    """A connection with retries. Many tasks of one event loop may use it at once."""

    def __init__(self, address: Address, patience: float, new_id: Callable[[], str]) -> None:
        self.address: Address = address
        self.new_id = new_id
        self._patience = patience
        # The environment of a process may name a proxy, which must not see the token.
        self._client = httpx2.AsyncClient(
            verify=address.tls_verification(),
            trust_env=False,
            headers={"accept": "application/json"},
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()

    async def send(
        self,
        request: Request,
        *,
        token: str = "",
        patience: float | None = None,
        rebuild: Callable[[Request], Request] | None = None,
        is_first: bool = False,
    ) -> Any:
        """Send a request and return its answer; a refusal is raised, and HubUnreachable if there is
        none.

        `rebuild`: makes the request anew each time it is sent, if it must not be the same.
        `is_first`: it opens the connection: a hub that is busy is waited for, but not one that does
        not answer.
        """
        limit = self._patience if patience is None else patience
        wait = request.wait_ms / 1_000
        retries = Retries(self.address.url, request.path, wait, limit, self.new_id())
        while True:
            sent = rebuild(request) if rebuild else request
            result = await self._send_once(sent, token, is_first=is_first)
            if not isinstance(result, RetryAfter):
                return result
            if is_first and isinstance(result, NoResponse):
                raise HubUnreachable(
                    f"the hub at {self.address.url} does not answer ({result.reason}). "
                    f"{_START_HINT}"
                )
            await retries.pause(result)

    async def _send_once(self, request: Request, token: str, *, is_first: bool) -> Any:
        """Send a request once; return its answer, or `RetryAfter`."""
        timeout = httpx2.Timeout(RESPONSE_S + request.wait_ms / 1_000, connect=CONNECT_S)
        try:
            response = await self._client.request(
                request.method,
                self.address.url + request.path,
                params=dict(request.query),
                content=request.body or None,
                headers=self._headers(request, token),
                timeout=timeout,
            )
        except httpx2.TransportError as error:
            await self._refresh_address(error)
            return NoResponse(_describe_error(error))
        except httpx2.DecodingError as error:
            raise BadAnswer(
                f"the answer to {request.method} {request.path} is not in the encoding that it "
                f"names ({error}): something between here and the hub has changed it"
            ) from error
        for warning in response.headers.get_list(_WARNING_HEADER):
            _log.warning("%s: %s", request.path, warning)
        try:
            return parse_response(request, response)
        except Refused as refused:
            is_login = response.status_code == 401 or (is_first and response.status_code == 403)
            if not is_login or request.path == _SIGNED_PATH:
                raise
            raise self._login_error(refused, token) from None

    def _login_error(self, refused: Refused, token: str) -> Unauthenticated:
        """Build the exception of a refused token, which is named and never shown."""
        shown = "the token of the attempt" if token else self.address.describe_token()
        detail = f"the hub at {self.address.url} does not accept {shown}: {refused.detail}"
        hint = "" if token else ". `dragoman agent token NAME` prints a new one"
        return Unauthenticated(Refusal(refused.code, detail + hint))

    async def _refresh_address(self, error: httpx2.TransportError) -> None:
        """Find the address again: a hub of a data directory may have come back at another port."""
        if self.address.data is not None and not isinstance(error, httpx2.ReadTimeout):
            self.address = await asyncio.to_thread(self.address.refresh)
        elif _UNTRUSTED in str(error):  # retrying would not help
            raise HubUnreachable(
                f"the certificate of the hub at {self.address.url} is not trusted here ({error}): "
                "name its file in DRAGOMAN_CERT"
            ) from error

    def _headers(self, request: Request, token: str) -> dict[str, str]:
        headers = {"authorization": f"Bearer {token or self.address.token}"}
        if request.body:
            headers["content-type"] = request.media_type
        if request.key:
            headers["idempotency-key"] = request.key
        return headers


class Retries:
    """A series of failures; it ends if one more pause would exceed the patience.

    Patience begins with the first failure: time that the hub waits on purpose uses none of it. For
    a request that hangs, it begins when the answer was due.
    """

    def __init__(self, url: str, path: str, wait: float, patience: float, seed: str) -> None:
        self._url = url
        self._path = path
        self._patience = patience
        self._delays = backoff_delays(seed)
        self._due = asyncio.get_running_loop().time() + wait
        self._give_up_at: float | None = None

    async def pause(self, retry_after: RetryAfter) -> None:
        """Wait before the next attempt, or raise HubUnreachable."""
        now = asyncio.get_running_loop().time()
        if self._give_up_at is None:
            self._give_up_at = min(now, self._due) + self._patience
        seconds = max(next(self._delays), retry_after.min_seconds)
        if now + seconds > self._give_up_at:
            raise HubUnreachable(self._describe_failure(retry_after))
        await asyncio.sleep(seconds)

    def _describe_failure(self, retry_after: RetryAfter) -> str:
        if isinstance(retry_after, NoResponse):
            return (
                f"the hub at {self._url} did not answer {self._path} within {self._patience:g} s; "
                f"the last try: {retry_after.reason}. {_START_HINT}"
            )
        return (
            f"the hub at {self._url} puts {self._path} off for longer than {self._patience:g} s; "
            f"the last try: {retry_after.reason}"
        )


def _describe_error(error: httpx2.TransportError) -> str:
    """Describe an error of the transport; some have nothing but their name."""
    return str(error) or type(error).__name__


# --- api --------------------------------------------------------------------------------------


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

    async def request(self, request: Request, *, is_first: bool = False) -> Any:
        """Send a request and return its answer."""
        return await self.transport.send(request, token=self._token, is_first=is_first)

    async def get(self, path: str, response_type: Any, query: Query | None = None) -> Any:
        """Read what is at a path."""
        return await self.request(Request("GET", path, response_type, query or {}))

    async def post(self, path: str, response_type: Any, body: object, key: str) -> Any:
        """Send a write under this key, or a new one."""
        return await self.request(requests.post(path, response_type, body, self.ensure_key(key)))

    async def send(self, message: Message, *, dialect: str = "", key: str = "") -> AcceptedMessage:
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

        unsigned = Request("POST", _SIGNED_PATH, AcceptedMessage, key=self.ensure_key(key))
        return await self.transport.send(unsigned, token=self._token, rebuild=sign_again)

    async def call(self, operation: str, arguments: Mapping[str, Any], *, key: str = "") -> Any:
        """Call an operation by its name."""
        if operation not in self._operations:
            # Looked up on demand: the dialects depend on the hub.
            described: ApiDescription = await self.get("/openapi.json", ApiDescription)
            self._operations.update(described.operation_paths())
        path = self._operations.get(operation)
        if path is None:
            raise Refused(_unknown_operation(operation, self._operations))
        return await self.post(path, Any, dict(arguments), key)


def _unknown_operation(operation: str, known: Mapping[str, str]) -> Refusal:
    hint = suggest(operation, known) or ";"
    return Refusal(
        "unknown_type",
        f"the hub has no operation {operation!a}{hint} known: {', '.join(sorted(known))}",
    )
