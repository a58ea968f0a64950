"""The client of the SDK, over HTTP, in both eras of the protocol."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from tests.surfaces.http.hub_server import HubServer

PROTOCOL_VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""How the client connects -> the version that both then speak."""

MALFORMED = (
    (b"{", -32700, "this is not JSON: it ends before it is complete"),
    (b'{"jsonrpc":"2.0" "id":1}', -32700, "(byte 17)"),
    (b"[]", -32600, "several at once are not taken"),
    (b"null", -32600, "this is no message of JSON-RPC 2.0"),
    (b'{"jsonrpc":"2.0"}', -32600, "this is no message of JSON-RPC 2.0"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600, '"params", if any'),
    (b"[" * 900 + b"]" * 900, -32700, "nested"),
    (b"[" * 9_000 + b"]" * 9_000, -32700, "nested"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\xff":1}}', -32700, "not UTF-8"),
    *(
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%b}}' % word, -32700, "not JSON")
        for word in (b"NaN", b"Infinity", b"-Infinity")
    ),
    *(
        (b'{"jsonrpc":"2.0","id":%b,"method":"ping"}' % id, -32600, 'its "id" has to be')
        for id in (b"null", b"1.5", b"1.0", b"true", b"{}", b"[1]")
    ),
)
"""What is no message -> the code of the answer, and words of it."""

INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"},
    },
}
"""The first message of a client of the older era."""

T = TypeVar("T")


@asynccontextmanager
async def open_client(
    server: HubServer, name: str, mode: str = "auto", path: str = "/mcp"
) -> AsyncGenerator[Client]:
    """A client that shows the token of whoever has this name."""
    headers = {"Authorization": f"Bearer {server.tokens[name]}"}
    address = f"http://127.0.0.1:{server.port}{path}"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


def run_with_client(
    server: HubServer,
    name: str,
    scenario: Callable[[Client], Awaitable[T]],
    mode: str = "auto",
    path: str = "/mcp",
) -> T:
    """What comes of a conversation."""

    async def run() -> T:
        async with open_client(server, name, mode, path) as client:
            return await scenario(client)

    return asyncio.run(run())


def protocol_error(
    server: HubServer,
    name: str,
    scenario: Callable[[Client], Awaitable[object]],
    mode: str = "auto",
) -> MCPError:
    """The error of the protocol that a conversation ends with."""

    async def expect_error(client: Client) -> MCPError:
        with pytest.raises(MCPError) as raised:
            await scenario(client)
        return raised.value

    return run_with_client(server, name, expect_error, mode)


async def call_tool(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured answer of a tool."""
    response = await client.call_tool(tool, arguments)
    assert not response.is_error, response
    return response.structured_content


async def refusal_code(client: Client, tool: str, **arguments: Any) -> Any:
    """The code of a tool's no."""
    response = await client.call_tool(tool, arguments)
    assert response.is_error, response
    assert response.structured_content is not None
    return response.structured_content["code"]


def call_once(server: HubServer, name: str, tool: str, **arguments: Any) -> Any:
    """The structured answer to one call."""
    return run_with_client(server, name, lambda client: call_tool(client, tool, **arguments))


def refusal_of_call(server: HubServer, name: str, tool: str, **arguments: Any) -> Any:
    """The code of the no to one call."""
    return run_with_client(server, name, lambda client: refusal_code(client, tool, **arguments))
