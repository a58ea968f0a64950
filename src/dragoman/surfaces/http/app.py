"""ASGI application: every endpoint at its path, behind the authentication middleware."""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Protocol

import msgspec
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman.engine.operation import Dialect
from dragoman.surfaces.http.auth import AuthMiddleware
from dragoman.surfaces.http.context import AppContext
from dragoman.surfaces.http.dashboard import Dashboard, load_dashboard
from dragoman.surfaces.http.deps import HttpDeps
from dragoman.surfaces.http.endpoint import Endpoint, EndpointApp
from dragoman.surfaces.http.errors import problem_error
from dragoman.surfaces.http.openapi import build_document, document_endpoints
from dragoman.surfaces.http.routes import (
    agents,
    events,
    exports,
    handoffs,
    health,
    internal,
    ledger_proofs,
    ledger_verification,
    merges,
    messages,
    numbers,
    questions,
    session,
    status,
    task_actions,
    tasks,
    traces,
    translation,
    work,
)

_ROUTES = (
    *status.ENDPOINTS,
    *numbers.ENDPOINTS,
    *exports.ENDPOINTS,
    *tasks.ENDPOINTS,
    *questions.ENDPOINTS,
    *traces.ENDPOINTS,
    *task_actions.ENDPOINTS,
    *merges.ENDPOINTS,
    *handoffs.ENDPOINTS,
    *agents.ENDPOINTS,
    *events.ENDPOINTS,
    *ledger_verification.ENDPOINTS,
    *ledger_proofs.ENDPOINTS,
    *work.ENDPOINTS,
    *translation.ENDPOINTS,
    *messages.ENDPOINTS,
    *internal.OPERATION_ENDPOINTS,
    *internal.MESSAGE_ENDPOINTS,
    *session.ENDPOINTS,
    *health.ENDPOINTS,
)


class MountedApp(Protocol):
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
        context: AppContext,
        guard: AuthMiddleware,
        endpoints: Sequence[Endpoint],
        mounted: Iterable[MountedApp],
    ) -> None:
        self.context = context
        self.endpoints = endpoints
        self._guard = guard
        self._mounted = tuple(mounted)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    def close(self) -> None:
        """Close all streams and long polls; requests that are being handled are still answered."""
        self.context.feed.close()
        for app in self._mounted:
            app.close()


def build_app(deps: HttpDeps, mounts: Mapping[str, MountedApp] | None = None) -> HttpApp:
    """Build the application; `mounts` are more applications, by the beginning of their path.

    They are behind the same middleware, and find the caller as `scope["principal"]`.
    """
    context = AppContext(deps)
    api_endpoints = _api_endpoints(deps.router.dialects)
    document = msgspec.json.encode(describe_api(deps.router.dialects))
    endpoints = (*api_endpoints, *document_endpoints(document))
    open_paths = {one.path: one.is_unmetered for one in endpoints if one.is_open}
    dashboard = Dashboard(load_dashboard())

    def open_path(path: str) -> bool | None:
        return open_paths.get(path, True if dashboard.serves(path) else None)

    paths = _PathRouter(context, endpoints, mounts or {}, dashboard)
    guard = AuthMiddleware(context, paths, open_path)
    return HttpApp(context, guard, endpoints, (mounts or {}).values())


def describe_api(dialects: Sequence[Dialect]) -> dict[str, Any]:
    """Build the OpenAPI document of a hub that speaks these dialects."""
    names = [dialect.name for dialect in dialects]
    return build_document(_api_endpoints(dialects), names, version("dragoman"))


def _api_endpoints(dialects: Sequence[Dialect]) -> tuple[Endpoint, ...]:
    return (messages.ENDPOINT, *_ROUTES, *messages.operation_endpoints(tuple(dialects)))


class _PathRouter:
    """Routes a request by its path; a path without a parameter is one lookup."""

    def __init__(
        self,
        context: AppContext,
        endpoints: Sequence[Endpoint],
        mounts: Mapping[str, ASGIApp],
        dashboard: Dashboard,
    ) -> None:
        by_path: dict[str, dict[str, ASGIApp]] = {}
        for endpoint in endpoints:
            serve = endpoint.app_factory or EndpointApp
            by_path.setdefault(endpoint.path, {})[endpoint.method] = serve(context, endpoint)
        self._exact = {path: _MethodRouter(of) for path, of in by_path.items() if "{" not in path}
        self._mounts = mounts
        self._dashboard = dashboard
        self._router = Router(
            [Route(path, _MethodRouter(of)) for path, of in by_path.items() if "{" in path],
            redirect_slashes=False,
            default=_not_found,
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
        return self._dashboard if self._dashboard.serves(path) else None


class _MethodRouter:
    """Routes a request for one path by its method."""

    def __init__(self, by_method: Mapping[str, ASGIApp]) -> None:
        self._by_method = dict(by_method)
        if "GET" in by_method:
            self._by_method["HEAD"] = by_method["GET"]
        self._allowed = ", ".join(self._by_method)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._by_method.get(scope["method"])
        if app is None:
            raise problem_error(
                "method_not_allowed",
                f"{scope['method'][:20]!a} is not taken here; use {self._allowed}",
                allow=self._allowed,
            )
        await app(scope, receive, send)


async def _not_found(scope: Scope, _: Receive, __: Send) -> None:
    raise problem_error("not_found", f"there is nothing at {scope['path'][:100]!a}; see /docs")
