"""MCP at `/mcp` of the HTTP surface: streamable HTTP, behind the same authentication middleware."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Message, Receive, Scope, Send

from dragoman.engine.auth import Principal
from dragoman.surfaces.http.deps import Timeouts
from dragoman.surfaces.http.endpoint import JSON, check_content_type, decode_json
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.limits import read_body
from dragoman.surfaces.mcp.server import McpContext

MAX_SESSIONS_PER_CALLER = 256
"""Sessions of one caller that may be open at a time; the owner is not limited."""
_OWNER = "owner"
_PRINCIPAL = "principal"

KeepLeases = Callable[[Principal], Coroutine[Any, Any, None]]
"""Renews the leases of a caller until it is cancelled."""


def find_http_principal(context: McpContext) -> Principal:
    """Return the caller that the middleware has authenticated."""
    assert context.request is not None, "an HTTP message has a request"
    return context.request.scope[_PRINCIPAL]


class McpApp:
    """An ASGI application for one server; it starts with its first request, until it is closed."""

    def __init__(
        self, server: Server, max_body: int, timeouts: Timeouts, keep_leases: KeepLeases
    ) -> None:
        # Host and Origin were checked by the middleware.
        self._manager = _LimitedSessions(server, max_request_body_size=max_body)
        self._max_body = max_body
        self._timeouts = timeouts
        self._keep_leases = keep_leases
        self._runner: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._closed = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        # A session belongs to the caller that has opened it.
        scope["user"] = _authenticated_user(scope[_PRINCIPAL])
        await self._start()
        if scope["method"] != "POST":
            scope["progress"].is_stream = True
            await self._serve_stream(scope, receive, send)
            return
        check_content_type(scope["by_name"], (JSON,))
        body = await read_body(receive, scope, self._max_body, self._timeouts)
        # The SDK decodes it again, without limits, in the event loop.
        await decode_json(body, self._max_body)
        await self._manager.handle_request(scope, _replay_body(body, receive), send)

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream until the token of the caller ends; its leases are kept meanwhile."""
        keeper = asyncio.create_task(self._keep_leases(scope[_PRINCIPAL]))
        try:
            async with asyncio.timeout(None) as limit:
                with scope["stream_limits"].admit(
                    scope[_PRINCIPAL], scope["token"], lambda: limit.reschedule(0)
                ):
                    await self._manager.handle_request(scope, receive, send)
        except TimeoutError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            keeper.cancel()

    def close(self) -> None:
        """End every session and its streams; may be called more than once, in the server's loop."""
        self._closed.set()

    async def _start(self) -> None:
        if self._closed.is_set():
            raise problem_error("stopping", "the hub is about to stop; try again when it is back")
        if self._runner is None:
            self._runner = asyncio.create_task(self._run())
        await self._started.wait()

    async def _run(self) -> None:
        async with self._manager.run():
            self._started.set()
            await self._closed.wait()


class _LimitedSessions(StreamableHTTPSessionManager):
    """Sessions with a limit for each caller."""

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        if requestor is not None and requestor["subject"] != _OWNER:
            caller = requestor["client_id"]
            held = sum(one["client_id"] == caller for one in self._session_owners.values())
            if held >= MAX_SESSIONS_PER_CALLER:
                return None
        return super()._admit_session(requestor)


def _authenticated_user(principal: Principal) -> AuthenticatedUser:
    actor = principal.actor
    subject = _OWNER if principal.is_owner else f"{actor.task} {actor.fence}"
    return AuthenticatedUser(
        AccessToken(token="", client_id=actor.label, scopes=[], subject=subject)
    )


def _replay_body(body: bytes, receive: Receive) -> Receive:
    """Wrap `receive`: the body once more, then whatever comes."""
    pending = [body]

    async def receive_again() -> Message:
        if pending:
            return {"type": "http.request", "body": pending.pop(), "more_body": False}
        return await receive()

    return receive_again
