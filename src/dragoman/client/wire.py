"""The connection to the hub: sends a request until it is answered, or patience is over.

Whatever fails on the way is sent again under the same idempotency key, so that a request whose
answer was lost is carried out once.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import httpx2

from dragoman.client.address import Address
from dragoman.client.answers import Later, Reply, Silence, pauses, read_reply
from dragoman.client.errors import BadAnswer, HubUnreachable
from dragoman.client.requests import Request

CONNECT_S: Final = 5.0
ANSWER_S: Final = 30.0
"""For the next bytes of a response; a stream has a keep-alive every 15 seconds."""
_MOST_EVENT: Final = 64 * 1024 * 1024
_WARNING: Final = "dragoman-warning"
"""The header for warnings beside a response."""
_UNTRUSTED: Final = "CERTIFICATE_VERIFY_FAILED"
_NO_HUB: Final = "Is it running? `dragoman up` starts one"
_log = logging.getLogger("dragoman.client")

Frame = httpx2.ServerSentEvent


class NoStream(Exception):
    """Something between us and the hub does not let a stream through."""


class StreamLost(Exception):
    """A stream ended, or did not begin; another may be opened later."""

    def __init__(self, later: Later) -> None:
        super().__init__(later.why)
        self.later: Final = later


class Wire:
    """A connection with retries. Many tasks of one event loop may use it at once."""

    def __init__(self, address: Address, patience: float, new_id: Callable[[], str]) -> None:
        self.address: Address = address
        self.new_id = new_id
        self._patience = patience
        # The environment of a process may name a proxy, which must not see the token.
        self._client = httpx2.AsyncClient(
            verify=address.tls(),
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

    async def ask(
        self,
        request: Request,
        *,
        token: str = "",
        patience: float | None = None,
        afresh: Callable[[Request], Request] | None = None,
        must_be_there: bool = False,
    ) -> Any:
        """Send a request and return its answer; a refusal is raised, and HubUnreachable if there is
        none.

        `rebuild`: makes the request anew each time it is sent, if it must not be the same.
        `fail_fast`: a hub that is busy is waited for, but not one that does not answer.
        """
        trying = self.trying(request.path, request.wait_ms / 1_000, patience)
        while True:
            later = await self._try(afresh(request) if afresh else request, token)
            if not isinstance(later, Later):
                return later
            if must_be_there and isinstance(later, Silence):
                raise HubUnreachable(
                    f"the hub at {self.address.url} does not answer ({later.why}). {_NO_HUB}"
                )
            await trying.pause(later)

    def trying(self, what: str, wait: float, patience: float | None = None) -> "Trying":
        """Start the retries of a request that may take so many seconds on purpose."""
        bound = self._patience if patience is None else patience
        return Trying(self.address.url, what, wait, bound, self.new_id())

    @asynccontextmanager
    async def frames(
        self, request: Request, after: int, patience: float
    ) -> AsyncGenerator[AsyncIterator[Frame]]:
        """Open a stream and yield its frames; StreamLost if it ends, StreamUnavailable if none is
        possible.

        A stream that has not begun in so many seconds is held back by something on the way.
        """
        opening = self._client.stream(
            request.method,
            self.address.url + request.path,
            params=dict(request.query),
            headers=self._headers(request, "") | {"last-event-id": str(after)},
            timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
        )
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(patience):
                    response = await stack.enter_async_context(opening)
                    await _check_stream(request, response)
                    source = aiter(httpx2.EventSource(response, max_event_size=_MOST_EVENT))
                    first = await anext(source, None)
                yield _rest(first, source)
            except (TimeoutError, httpx2.SSEError) as error:
                raise NoStream from error
            except httpx2.DecodingError as error:
                raise _garbled(request, error) from error
            except httpx2.TransportError as error:
                await self._look_again(error)
                raise StreamLost(Silence(_told(error))) from error

    async def _try(self, request: Request, token: str) -> Any:
        """Send a request once; return its answer, or `RetryAfter`."""
        timeout = httpx2.Timeout(ANSWER_S + request.wait_ms / 1_000, connect=CONNECT_S)
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
            await self._look_again(error)
            return Silence(_told(error))
        except httpx2.DecodingError as error:
            raise _garbled(request, error) from error
        for remark in response.headers.get_list(_WARNING):
            _log.warning("%s: %s", request.path, remark)
        return read_reply(request, _reply(response, response.content))

    async def _look_again(self, error: httpx2.TransportError) -> None:
        """Find the address again: a hub of a data directory may have come back at another port."""
        if self.address.data is not None and not isinstance(error, httpx2.ReadTimeout):
            self.address = await asyncio.to_thread(self.address.again)
        elif _UNTRUSTED in str(error):  # retrying would not help
            raise HubUnreachable(
                f"the certificate of the hub at {self.address.url} is not trusted here ({error}): "
                "name its file in DRAGOMAN_CERT"
            ) from error

    def _headers(self, request: Request, token: str) -> dict[str, str]:
        headers = {"authorization": f"Bearer {token or self.address.token}"}
        if request.body:
            headers["content-type"] = request.media
        if request.key:
            headers["idempotency-key"] = request.key
        return headers


class Trying:
    """A series of failures; it ends if one more pause would exceed the patience.

    Patience begins with the first failure: time that the hub waits on purpose uses none of it. For
    a request that hangs, it begins when the answer was due.
    """

    def __init__(self, url: str, what: str, wait: float, patience: float, seed: str) -> None:
        self._url = url
        self._what = what
        self._wait = wait
        self._patience = patience
        self._seed = seed
        self.went_well()

    def went_well(self) -> None:
        """Begin anew: the next failure is the first one again."""
        self._pauses = pauses(self._seed)
        self._due = asyncio.get_running_loop().time() + self._wait
        self._until: float | None = None

    async def pause(self, later: Later) -> None:
        """Wait before the next attempt, or raise HubUnreachable."""
        now = asyncio.get_running_loop().time()
        if self._until is None:
            self._until = min(now, self._due) + self._patience
        seconds = max(next(self._pauses), later.least_seconds)
        if now + seconds > self._until:
            raise HubUnreachable(self._over(later))
        await asyncio.sleep(seconds)

    def _over(self, later: Later) -> str:
        if isinstance(later, Silence):
            return (
                f"the hub at {self._url} did not answer {self._what} within {self._patience:g} s; "
                f"the last try: {later.why}. {_NO_HUB}"
            )
        return (
            f"the hub at {self._url} puts {self._what} off for longer than {self._patience:g} s; "
            f"the last try: {later.why}"
        )


def _garbled(request: Request, error: httpx2.DecodingError) -> BadAnswer:
    return BadAnswer(
        f"the answer to {request.method} {request.path} is not in the encoding that it names "
        f"({error}): something between here and the hub has changed it"
    )


def _told(error: httpx2.TransportError) -> str:
    """Describe an error of the transport; some have nothing but their name."""
    return str(error) or type(error).__name__


def _reply(response: httpx2.Response, body: bytes) -> Reply:
    return Reply(
        response.status_code,
        body,
        response.headers.get("retry-after", ""),
        response.headers.get("content-type", ""),
    )


async def _check_stream(request: Request, response: httpx2.Response) -> None:
    if response.status_code != 200:
        later = read_reply(request, _reply(response, await response.aread()))
        if not isinstance(later, Later):
            raise BadAnswer(
                f"{request.method} {request.path} was answered with HTTP status "
                f"{response.status_code}, which begins no stream: this is no dragoman hub"
            )
        raise StreamLost(later)


async def _rest(first: Frame | None, source: AsyncIterator[Frame]) -> AsyncGenerator[Frame]:
    if first is not None:
        yield first
        async for frame in source:
            yield frame
    raise StreamLost(Silence("the stream ended"))
