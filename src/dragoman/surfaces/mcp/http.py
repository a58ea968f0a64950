"""MCP at `/mcp` of the hub's HTTP door: streamable HTTP, behind the same guard as everything else.

`/mcp/NAME` shows the tools of the profile NAME.
"""

import asyncio
from collections.abc import Collection

from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, AuthorizationContext
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import StreamableHTTPServerTransport
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from dragoman.engine.identity import Principal
from dragoman.surfaces.http.door import Patience
from dragoman.surfaces.http.endpoint import JSON, check_type
from dragoman.surfaces.http.limits import read_body
from dragoman.surfaces.http.problems import stop
from dragoman.surfaces.mcp.message import NoMessage, read_message
from dragoman.surfaces.mcp.mount import PATH
from dragoman.surfaces.mcp.server import Caller, Context

_SESSIONS = 10_000
SESSIONS_OF_ONE = 256
"""Sessions of one caller that may be open at a time; the owner is not limited."""
_IDLE_SECONDS = 1_800.0
_OWNER = "owner"
_PRINCIPAL, _PROFILE = "principal", "mcp.profile"


def caller(context: Context) -> Caller:
    """Return the caller that the middleware has authenticated."""
    assert context.request is not None, "an HTTP message has a request"
    scope = context.request.scope
    return Caller(scope[_PRINCIPAL], scope[_PROFILE])


class McpApp:
    """An ASGI application for one server; it starts with its first request, until it is closed."""

    def __init__(
        self, server: Server, profiles: Collection[str], most_body: int, patience: Patience
    ) -> None:
        # Host and Origin were checked by the middleware.
        self._manager = _Sessions(
            server,
            session_idle_timeout=_IDLE_SECONDS,
            max_request_body_size=most_body,
            max_sessions=_SESSIONS,
        )
        self._profiles = profiles
        self._most_body = most_body
        self._patience = patience
        self._running: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        self._closed = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        scope["progress"].route = PATH
        # White space around a value is not part of it (RFC 9110, 5.5); the parser leaves it there.
        scope["headers"] = [(name, value.strip()) for name, value in scope["headers"]]
        scope[_PROFILE] = self._profile(scope["path"])
        # A session belongs to the caller that has opened it.
        scope["user"] = _user(scope[_PRINCIPAL])
        if scope["method"] == "POST":
            check_type(scope["by_name"], (JSON,))
            body = await read_body(receive, scope["by_name"], self._most_body, self._patience)
            try:
                read_message(body)
            except NoMessage as fault:
                said = Response(
                    fault.answer.model_dump_json(exclude_unset=True), 400, media_type=JSON
                )
                await said(scope, receive, send)
                return
            receive = _again(body, receive)
        else:
            scope["progress"].is_stream = True
        await self._start()
        if scope["method"] == "POST":
            await self._manager.handle_request(scope, receive, send)
        else:
            await self._serve_stream(scope, receive, send)

    async def _serve_stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream until the token of the caller ends."""
        try:
            async with asyncio.timeout(None) as limit:
                with scope["stays"].stay(
                    scope[_PRINCIPAL], scope["token"], lambda: limit.reschedule(0)
                ):
                    await self._manager.handle_request(scope, receive, send)
        except TimeoutError:
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    def close(self) -> None:
        """End every session and its streams; may be called more than once, in the server's loop."""
        self._closed.set()

    def _profile(self, path: str) -> str:
        profile = path.removeprefix(PATH).strip("/")
        if profile and profile not in self._profiles:
            known = ", ".join(sorted(self._profiles)) or "none"
            raise stop("not_found", f"there is no profile {profile[:64]!a}; known: {known}")
        return profile

    async def _start(self) -> None:
        if self._closed.is_set():
            raise stop("stopping", "the hub is about to stop; try again when it is back")
        if self._running is None:
            self._running = asyncio.create_task(self._run())
        await self._started.wait()

    async def _run(self) -> None:
        async with self._manager.run():
            self._started.set()
            await self._closed.wait()


class _Sessions(StreamableHTTPSessionManager):
    """Sessions with a limit for each caller."""

    def _admit_session(
        self, requestor: AuthorizationContext | None
    ) -> StreamableHTTPServerTransport | None:
        if requestor is not None and requestor["subject"] != _OWNER:
            caller = requestor["client_id"]
            held = sum(one["client_id"] == caller for one in self._session_owners.values())
            if held >= SESSIONS_OF_ONE:
                return None
        return super()._admit_session(requestor)


def _user(principal: Principal) -> AuthenticatedUser:
    actor = principal.actor
    subject = _OWNER if principal.is_owner else f"{actor.task} {actor.fence}"
    return AuthenticatedUser(
        AccessToken(token="", client_id=actor.label, scopes=[], subject=subject)
    )


def _again(body: bytes, receive: Receive) -> Receive:
    """Wrap `receive`: the body once more, then whatever comes."""
    waiting = [body]

    async def read() -> Message:
        if waiting:
            return {"type": "http.request", "body": waiting.pop(), "more_body": False}
        return await receive()

    return read
