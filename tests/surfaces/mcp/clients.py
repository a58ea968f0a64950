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

from tests.surfaces.http.house import House

ERAS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
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
async def calling(
    house: House, name: str, mode: str = "auto", path: str = "/mcp"
) -> AsyncGenerator[Client]:
    """A client that shows the token of whoever has this name."""
    headers = {"Authorization": f"Bearer {house.tokens[name]}"}
    address = f"http://127.0.0.1:{house.port}{path}"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


def talk(
    house: House,
    name: str,
    story: Callable[[Client], Awaitable[T]],
    mode: str = "auto",
    path: str = "/mcp",
) -> T:
    """What comes of a conversation."""

    async def held() -> T:
        async with calling(house, name, mode, path) as client:
            return await story(client)

    return asyncio.run(held())


def fault(
    house: House, name: str, story: Callable[[Client], Awaitable[object]], mode: str = "auto"
) -> MCPError:
    """The error of the protocol that a conversation ends with."""

    async def fails(client: Client) -> MCPError:
        with pytest.raises(MCPError) as raised:
            await story(client)
        return raised.value

    return talk(house, name, fails, mode)


async def use(client: Client, tool: str, **arguments: Any) -> Any:
    """The structured answer of a tool."""
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer
    return answer.structured_content


async def refusal(client: Client, tool: str, **arguments: Any) -> Any:
    """The code of a tool's no."""
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer
    assert answer.structured_content is not None
    return answer.structured_content["code"]


def once(house: House, name: str, tool: str, **arguments: Any) -> Any:
    """The structured answer to one call."""
    return talk(house, name, lambda client: use(client, tool, **arguments))


def refused(house: House, name: str, tool: str, **arguments: Any) -> Any:
    """The code of the no to one call."""
    return talk(house, name, lambda client: refusal(client, tool, **arguments))
