"""Relay: MCP on standard input and output, forwarded to `/mcp` of a remote hub."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
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
from dragoman.surfaces.mcp.leases import Sleep
from dragoman.surfaces.mcp.mount import PATH
from dragoman.surfaces.mcp.server import INSTRUCTIONS, NAME, McpContext
from dragoman.surfaces.mcp.stdio import serve
from dragoman.system.tls import TlsVerification

_TIMEOUT = httpx2.Timeout(30.0, read=300.0)


@asynccontextmanager
async def connect_remote(
    url: str, token: str, tls: TlsVerification = True
) -> AsyncGenerator[tuple[httpx2.AsyncClient, str]]:
    """Connect to the hub's MCP with this token; yield the client and the address, after a check."""
    address = url.rstrip("/") + PATH
    headers = {"Authorization": f"Bearer {token}"}
    # The environment of a process may name a proxy, which must not see the token.
    async with httpx2.AsyncClient(
        headers=headers, timeout=_TIMEOUT, verify=tls, trust_env=False
    ) as client:
        # An error that every request would meet is reported at the start.
        await check_reachable(client, address)
        yield client, address


class _Problem(Struct, frozen=True):
    code: str
    detail: str


async def check_reachable(client: httpx2.AsyncClient, address: str) -> None:
    """Check that the hub answers and accepts the token; else raise, with the hub's own words."""
    try:
        response = await client.post(address, json={})
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise StoreUnavailable(
            f"the hub at {address} does not answer ({error}); is it running, and is "
            "DRAGOMAN_URL its address?"
        ) from error
    if response.headers.get("content-type") == "application/problem+json":
        problem = msgspec.json.decode(response.content, type=_Problem)
        raise Refused(Refusal(problem.code, problem.detail))
    # A hub refuses an empty message as a bad request.
    if response.status_code != HTTPStatus.BAD_REQUEST:
        raise StoreUnavailable(
            f"{address} answers with {response.status_code}, which no hub does: is "
            "DRAGOMAN_URL right?"
        )


_PROTOCOL_VERSION = "2026-07-28"
"""The protocol version spoken with the hub: without sessions that could end, whatever the client
speaks."""

_HEARTBEAT_S = 20.0
"""Time between two heartbeats: a third of the shortest lease that `claim` gives, a minute."""

T = TypeVar("T")
PageParams = types.PaginatedRequestParams | None


async def relay(client: httpx2.AsyncClient, address: str, version: str) -> None:
    """Serve until standard input ends, for the hub at this address."""
    hub = RemoteHub(client, address)
    leases = RelayedLeases(hub)
    await serve(_relay_server(hub, leases, version), leases.keep())


class RemoteHub:
    """The remote hub, connected anew for each request: it may have been restarted in between."""

    def __init__(self, client: httpx2.AsyncClient, address: str) -> None:
        self._client = client
        self._address = address

    async def call(self, request: Callable[[Client], Awaitable[T]]) -> T:
        """Send a request to the hub; its errors are passed on."""
        fault: MCPError | None = None
        try:
            async with Client(
                streamable_http_client(self._address, http_client=self._client),
                mode=_PROTOCOL_VERSION,
            ) as hub:
                try:
                    return await request(hub)
                except MCPError as error:
                    # Raised again outside of the client, which would wrap it.
                    fault = error
        except (ExceptionGroup, httpx2.HTTPError):
            pass
        try:
            await check_reachable(self._client, self._address)
        except DragomanError as error:
            raise MCPError(types.INTERNAL_ERROR, f"{error.code}: {error.detail}") from error
        raise fault or MCPError(
            types.INTERNAL_ERROR, f"the hub at {self._address} did not answer; try again"
        )


class _RelayedClaim(Struct, frozen=True):
    """The part of an answer that says how a task stands."""

    task: str
    status: str
    fence: int = 0


class RelayedLeases:
    """Leases that the client has claimed through this process: it sends their heartbeats."""

    def __init__(self, hub: RemoteHub, sleep: Sleep = asyncio.sleep) -> None:
        self._hub = hub
        self._sleep = sleep
        self._fences: dict[str, int] = {}
        self._lost: list[str] = []

    def note(self, result: types.CallToolResult) -> types.CallToolResult:
        """Note what an answer says of a lease; return it with what was lost meanwhile."""
        with suppress(msgspec.ValidationError):
            told = msgspec.convert(result.structured_content, _RelayedClaim)
            if told.fence:
                self._fences[told.task] = told.fence
            elif told.status != "in-progress":
                self._fences.pop(told.task, None)
        lost, self._lost = self._lost, []
        notes = [types.TextContent(text=f"warning: {one}") for one in lost]
        return result.model_copy(update={"content": [*result.content, *notes]})

    async def keep(self) -> None:
        """Send heartbeats until cancelled."""
        while True:
            await self._sleep(_HEARTBEAT_S)
            for task, fence in self._fences.copy().items():
                with suppress(MCPError):  # the hub may be back in time
                    await self._renew(task, fence)

    async def _renew(self, task: str, fence: int) -> None:
        arguments = {"task": task, "fence": fence}
        result = await self._hub.call(lambda to: to.call_tool("heartbeat", arguments))
        if result.is_error and self._fences.get(task) == fence:
            del self._fences[task]
            texts = (one.text for one in result.content if isinstance(one, types.TextContent))
            self._lost.extend(texts)


def _relay_server(hub: RemoteHub, leases: RelayedLeases, version: str) -> Server[Any]:
    async def list_tools(_: McpContext, params: PageParams) -> types.ListToolsResult:
        return await hub.call(lambda to: to.list_tools(cursor=_cursor(params)))

    async def call_tool(_: McpContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        return leases.note(await hub.call(lambda to: to.call_tool(params.name, params.arguments)))

    async def list_resources(_: McpContext, params: PageParams) -> types.ListResourcesResult:
        return await hub.call(lambda to: to.list_resources(cursor=_cursor(params)))

    async def list_templates(
        _: McpContext, params: PageParams
    ) -> types.ListResourceTemplatesResult:
        return await hub.call(lambda to: to.list_resource_templates(cursor=_cursor(params)))

    async def read_resource(
        _: McpContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        return await hub.call(lambda to: to.read_resource(params.uri))

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


def _cursor(params: PageParams) -> str | None:
    return params.cursor if params else None
