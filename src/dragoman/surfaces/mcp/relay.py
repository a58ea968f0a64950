"""MCP on standard input and output for a hub elsewhere: all is passed on to its `/mcp`."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import httpx2
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.shared.exceptions import MCPError

from dragoman.core.errors import DragomanError
from dragoman.surfaces.mcp.far import check
from dragoman.surfaces.mcp.server import INSTRUCTIONS, NAME, Context
from dragoman.surfaces.mcp.stdio import serve

_STATELESS = "2026-07-28"
"""The protocol version spoken with the hub: without sessions that could end, whatever the client
speaks."""

T = TypeVar("T")
Pages = types.PaginatedRequestParams | None


async def relay(http: httpx2.AsyncClient, address: str, version: str) -> None:
    """Serve until standard input ends, for the hub at this address."""
    await serve(_server(_Hub(http, address), version))


class _Hub:
    """The remote hub, connected anew for each request: it may have been restarted in between."""

    def __init__(self, http: httpx2.AsyncClient, address: str) -> None:
        self._http = http
        self._address = address

    async def ask(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request to the hub; its errors are passed on."""
        fault: MCPError | None = None
        try:
            async with Client(
                streamable_http_client(self._address, http_client=self._http), mode=_STATELESS
            ) as hub:
                try:
                    return await request(hub)
                except MCPError as error:
                    # Raised again outside of the client, which would wrap it.
                    fault = error
        except (ExceptionGroup, httpx2.HTTPError):
            pass
        try:
            await check(self._http, self._address)
        except DragomanError as error:
            raise MCPError(types.INTERNAL_ERROR, f"{error.code}: {error.detail}") from error
        raise fault or MCPError(
            types.INTERNAL_ERROR, f"the hub at {self._address} did not answer; try again"
        )


def _server(hub: _Hub, version: str) -> Server[Any]:
    async def list_tools(_: Context, params: Pages) -> types.ListToolsResult:
        return await hub.ask(lambda to: to.list_tools(cursor=_cursor(params)))

    async def call_tool(_: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await hub.ask(lambda to: to.call_tool(params.name, params.arguments))

    async def list_resources(_: Context, params: Pages) -> types.ListResourcesResult:
        return await hub.ask(lambda to: to.list_resources(cursor=_cursor(params)))

    async def list_templates(_: Context, params: Pages) -> types.ListResourceTemplatesResult:
        return await hub.ask(lambda to: to.list_resource_templates(cursor=_cursor(params)))

    async def read_resource(
        _: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await hub.ask(lambda to: to.read_resource(params.uri))

    return Server(
        NAME,
        version=version,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


def _cursor(params: Pages) -> str | None:
    return params.cursor if params else None
