"""MCP on standard input and output for a hub elsewhere: all is passed on to its `/mcp`."""

import ssl
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, TypeVar

import httpx2
import msgspec
from mcp import types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from dragoman.core.errors import DragomanError, Refusal, Refused, StoreUnavailable
from dragoman.surfaces.mcp.mount import PATH
from dragoman.surfaces.mcp.server import INSTRUCTIONS, NAME, Context
from dragoman.surfaces.mcp.stdio import serve

_TIMEOUT = httpx2.Timeout(30.0, read=300.0)
_STATELESS = "2026-07-28"
"""The version spoken with the hub: no session that could end, whatever the client here speaks."""

T = TypeVar("T")
Pages = types.PaginatedRequestParams | None
Trust = ssl.SSLContext | bool
"""How the certificate of the hub is checked."""


async def relay(url: str, token: str, profile: str, version: str, trust: Trust = True) -> None:
    """Serve until standard input ends, as the bearer of this token."""
    address = url.rstrip("/") + PATH + (f"/{profile}" if profile else "")
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=_TIMEOUT, verify=trust) as http:
        hub = _Hub(http, address)
        # What would be wrong with every request is told at the start.
        await hub.check()
        await serve(_server(hub, version))


class _Problem(Struct, frozen=True):
    code: str
    detail: str


class _Hub:
    """The hub, spoken to anew for each request: it may have been restarted in between."""

    def __init__(self, http: httpx2.AsyncClient, address: str) -> None:
        self._http = http
        self._address = address

    async def check(self) -> None:
        """Nothing, if the hub is there and lets us in; else why not, in its own words."""
        try:
            answer = await self._http.post(self._address, json={})
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise StoreUnavailable(
                f"the hub at {self._address} does not answer ({error}); is it running, and is "
                "DRAGOMAN_URL its address?"
            ) from error
        if answer.headers.get("content-type") == "application/problem+json":
            problem = msgspec.json.decode(answer.content, type=_Problem)
            raise Refused(Refusal(problem.code, problem.detail))
        # An empty message is none, which is what a hub finds wrong with it.
        if answer.status_code != HTTPStatus.BAD_REQUEST:
            raise StoreUnavailable(
                f"{self._address} answers with {answer.status_code}, which no hub does: is "
                "DRAGOMAN_URL right?"
            )

    async def ask(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """What the hub answers; its errors are passed on."""
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
            await self.check()
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
