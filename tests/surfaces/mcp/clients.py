"""MCP client of the SDK, over HTTP, in both versions of the protocol."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

import httpx2
import pytest
from mcp import types
from mcp.client import Client
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from dragoman.surfaces.mcp.tasks import EXTENSION, TaskParams
from tests.surfaces.http.hub_server import HubServer

PROTOCOL_VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
"""Mode of the client -> protocol version that is negotiated."""

MALFORMED = (
    (b"{", "this is not JSON: it ends before it is complete"),
    (b'{"jsonrpc":"2.0" "id":1}', "(byte 17)"),
    (b"[" * 900 + b"]" * 900, "nested"),
    (b"[" * 9_000 + b"]" * 9_000, "nested"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"\xff":1}}', "not UTF-8"),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","id":2}', "this key stands twice"),
    *(
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":%b}}' % word, "not JSON")
        for word in (b"NaN", b"Infinity", b"-Infinity")
    ),
)
"""Bodies that are not JSON, each with a part of what is said of it."""

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
"""First message of a client of the older version."""

T = TypeVar("T")


@asynccontextmanager
async def open_client(
    server: HubServer,
    name: str,
    mode: str = "auto",
    path: str = "/mcp",
    extensions: Sequence[ClientExtension] = (),
) -> AsyncGenerator[Client]:
    """Open a client with the token of this agent."""
    headers = {"Authorization": f"Bearer {server.tokens[name]}"}
    address = f"http://127.0.0.1:{server.port}{path}"
    async with (
        httpx2.AsyncClient(headers=headers, timeout=30) as http,
        Client(
            streamable_http_client(address, http_client=http), mode=mode, extensions=extensions
        ) as client,
    ):
        yield client


def run_with_client(
    server: HubServer,
    name: str,
    scenario: Callable[[Client], Awaitable[T]],
    mode: str = "auto",
    path: str = "/mcp",
) -> T:
    """Run a scenario with a client; return its result."""

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
    """Run a scenario that fails; return the protocol error."""

    async def expect_error(client: Client) -> MCPError:
        with pytest.raises(MCPError) as raised:
            await scenario(client)
        return raised.value

    return run_with_client(server, name, expect_error, mode)


async def call_tool(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool; return its structured result."""
    response = await client.call_tool(tool, arguments)
    assert not response.is_error, response
    return response.structured_content


async def refusal_code(client: Client, tool: str, **arguments: Any) -> Any:
    """Call a tool that refuses; return the code."""
    response = await client.call_tool(tool, arguments)
    assert response.is_error, response
    assert response.structured_content is not None
    return response.structured_content["code"]


def call_once(server: HubServer, name: str, tool: str, **arguments: Any) -> Any:
    """Call one tool with a new client; return its structured result."""
    return run_with_client(server, name, lambda client: call_tool(client, tool, **arguments))


def refusal_of_call(server: HubServer, name: str, tool: str, **arguments: Any) -> Any:
    """Call one tool that refuses with a new client; return the code."""
    return run_with_client(server, name, lambda client: refusal_code(client, tool, **arguments))


class _CreatedTask(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str


class _ShownTask(types.Result):
    status: str
    result: dict[str, Any] | None = None


class _GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    method: Literal["tasks/get"] = "tasks/get"
    name_param = "taskId"


class PolledTasks(ClientExtension):
    """Tasks extension of a client that polls until it has the outcome."""

    identifier = EXTENSION

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self.statuses: list[str] = []
        """Statuses that the polls have seen; `act` is run after the first."""

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Return the results that it takes."""
        return [ResultClaim(result_type="task", model=_CreatedTask, resolve=self._resolve)]

    async def _resolve(self, created: _CreatedTask, context: ClaimContext) -> types.CallToolResult:
        request = _GetTask(params=TaskParams(task_id=created.task_id))
        while True:
            task = await context.session.send_request(request, _ShownTask)
            self.statuses.append(task.status)
            if task.status != "working":
                return types.CallToolResult.model_validate(task.result)
            await asyncio.to_thread(self._act)
