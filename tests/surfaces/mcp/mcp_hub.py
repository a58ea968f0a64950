"""Hub with MCP behind its HTTP server, for tests and for the conformance suite.

`python -m tests.surfaces.mcp.mcp_hub` serves the test profile until its standard input ends, and
prints its URL. The suite sends no token, so every caller is taken for the owner.
"""

import sys
from pathlib import Path
from typing import Any, cast

from starlette.types import Receive, Scope, Send

from dragoman.files.task_branches import TaskBranches
from dragoman.surfaces.http.app import HttpApp, build_app
from dragoman.surfaces.mcp.context import HubContextProvider
from dragoman.surfaces.mcp.http import McpApp, find_http_principal
from dragoman.surfaces.mcp.mount import PATH, LazyApp
from dragoman.surfaces.mcp.server import build_server
from dragoman.surfaces.mcp.tools import build_tools
from tests.surfaces.http.hub_server import OWNER_TOKEN, HubServer, serving
from tests.surfaces.mcp import fixtures

VERSION = "0"


def mount_mcp(server: HubServer, *, with_fixtures: bool = False) -> HubServer:
    """Mount MCP in the application of a server."""
    deps = server.deps
    tools = build_tools(deps.router.dialects, fixtures.TOOLS if with_fixtures else ())

    def load() -> McpApp:
        provider = HubContextProvider(
            deps.hub, deps.router, deps.settings, TaskBranches(Path(), deps.settings, deps.hub)
        )
        mcp_server = build_server(provider, tools, find_http_principal, VERSION)
        if with_fixtures:
            fixtures.add_fixtures(mcp_server)
        return McpApp(mcp_server, deps.settings.http.max_body, deps.timeouts, provider.keep_leases)

    server.app = build_app(deps, {PATH: LazyApp(load)})
    return server


class TrustingApp:
    """Application that takes every caller for the owner."""

    def __init__(self, app: HttpApp) -> None:
        self._app = app
        self.context = app.context
        self.close = app.close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request as if it had the owner's token."""
        header = (b"authorization", f"Bearer {OWNER_TOKEN}".encode())
        await self._app({**scope, "headers": [*scope["headers"], header]}, receive, send)


def main() -> None:
    """Serve until standard input ends."""
    server = mount_mcp(HubServer(), with_fixtures=True)
    server.app = cast(Any, TrustingApp(server.app))
    with serving(server):
        sys.stdout.write(f"http://127.0.0.1:{server.port}{PATH}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
