"""The application: every endpoint of every room at its address, behind the guard."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Protocol

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.surfaces.http import (
    actions,
    agents,
    do,
    events,
    handoffs,
    health,
    messages,
    say,
    signed,
    stream,
    tasks,
    traces,
    work,
)
from dragoman.surfaces.http.door import Door
from dragoman.surfaces.http.endpoint import Endpoint, Served
from dragoman.surfaces.http.guard import Guard
from dragoman.surfaces.http.hearing import until_it_ends
from dragoman.surfaces.http.line import for_its_http
from dragoman.surfaces.http.office import Office
from dragoman.surfaces.http.openapi import describe
from dragoman.surfaces.http.pages import documents
from dragoman.surfaces.http.problems import stop

_ROOMS = (
    *tasks.ENDPOINTS,
    *traces.ENDPOINTS,
    *actions.ENDPOINTS,
    *handoffs.ENDPOINTS,
    *agents.ENDPOINTS,
    *events.ENDPOINTS,
    *stream.ENDPOINTS,
    *work.ENDPOINTS,
    *signed.ENDPOINTS,
    *do.ENDPOINTS,
    *say.ENDPOINTS,
    *health.ENDPOINTS,
)


class Mounted(Protocol):
    """Another application behind the same middleware."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        ...

    def close(self) -> None:
        """End its streams; it is called in the server's loop."""
        ...


class HttpApp:
    """An ASGI application; `close` ends its streams, because they would never end by themselves."""

    def __init__(
        self,
        office: Office,
        guard: Guard,
        endpoints: Sequence[Endpoint],
        mounted: Iterable[Mounted],
    ) -> None:
        self.office = office
        self.endpoints = endpoints
        self._guard = guard
        self._mounted = tuple(mounted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, until_it_ends(scope, receive), for_its_http(scope, send))

    def close(self) -> None:
        """Close all streams and long polls; requests that are being handled are still answered."""
        self.office.feed.close()
        self.office.bus.close()
        for app in self._mounted:
            app.close()


def build_app(door: Door, mounts: Mapping[str, Mounted] | None = None) -> HttpApp:
    """Build the application; `mounts` are more applications, by the beginning of their path.

    They are behind the same middleware, and find the caller as `scope["principal"]`.
    """
    office = Office(door)
    described = [messages.ENDPOINT]
    described += _ROOMS
    dialects = tuple(door.interpreter.dialects)
    described += messages.operations(dialects)
    names = [dialect.name for dialect in dialects]
    document = msgspec.json.encode(describe(described, names, version("dragoman")))
    endpoints = (*described, *documents(document))
    forms = messages.forms(door.interpreter)
    open_paths = {one.path: one.is_free for one in endpoints if one.is_open}
    guard = Guard(office, _Addresses(office, endpoints, mounts or {}), open_paths, forms)
    return HttpApp(office, guard, endpoints, (mounts or {}).values())


class _Addresses:
    """Routes a request by its path; a path without a parameter is one lookup."""

    def __init__(
        self, office: Office, endpoints: Sequence[Endpoint], mounts: Mapping[str, ASGIApp]
    ) -> None:
        by_path: dict[str, dict[str, ASGIApp]] = {}
        for endpoint in endpoints:
            serve = endpoint.serve or Served
            by_path.setdefault(endpoint.path, {})[endpoint.method] = serve(office, endpoint)
        self._exact = {path: _Methods(of) for path, of in by_path.items() if "{" not in path}
        self._mounts = mounts
        self._router = Router(
            [Route(path, _Methods(of)) for path, of in by_path.items() if "{" in path],
            redirect_slashes=False,
            default=_nothing_here,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._router(scope, receive, send)
            return
        path = scope["path"]
        app = self._exact.get(path) or self._mounted(scope, path) or self._router
        await app(scope, receive, send)

    def _mounted(self, scope: Scope, path: str) -> ASGIApp | None:
        for begin, app in self._mounts.items():
            if path == begin or path.startswith(begin + "/"):
                scope["progress"].route = begin
                return app
        return None


class _Methods:
    """Routes a request for one path by its method."""

    def __init__(self, by_method: Mapping[str, ASGIApp]) -> None:
        self._by_method = dict(by_method)
        if "GET" in by_method:
            self._by_method["HEAD"] = by_method["GET"]
        self._allowed = ", ".join(self._by_method)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._by_method.get(scope["method"])
        if app is None:
            raise stop(
                "method_not_allowed",
                f"{scope['method'][:20]!a} is not taken here; use {self._allowed}",
                allow=self._allowed,
            )
        await app(scope, receive, send)


async def _nothing_here(scope: Scope, _: Receive, __: Send) -> None:
    raise stop("not_found", f"there is nothing at {scope['path'][:100]!a}; see /docs")
