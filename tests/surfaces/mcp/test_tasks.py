"""Tasks extension of MCP: calls that wait, over streamable HTTP and with the client of the SDK."""

import asyncio
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from mcp import types
from mcp.client import Client
from mcp.shared.exceptions import MCPError

from dragoman.core.question_state import AnswerQuestion
from dragoman.core.task_state import CreateTask
from dragoman.surfaces.mcp.tasks import EXTENSION, KEPT_MS, MAX_TASKS_PER_CALLER, CallTask
from dragoman.surfaces.mcp.tool import Pending, ToolCall, ToolError
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.mcp.clients import (
    PROTOCOL_VERSIONS,
    PolledTasks,
    call_once,
    call_tool,
    open_client,
    run_with_client,
)
from tests.surfaces.mcp.mcp_hub import mount_mcp

pytestmark = proves("MCP-TASKS")

WAIT_S = 300
DECLARED: dict[str, Any] = {"extensions": {EXTENSION: {}}}


@pytest.fixture
def server() -> Generator[HubServer]:
    """Give a hub without tasks."""
    with serving(mount_mcp(HubServer())) as served:
        for name in ("ada", "bob"):
            served.add_agent(name)
        yield served


def send(
    server: HubServer,
    method: str,
    params: dict[str, Any],
    *,
    by: str = "ada",
    name: str = "",
    capabilities: dict[str, Any] = DECLARED,
) -> dict[str, Any]:
    """Send a request of the newer version; return its response."""
    meta: dict[str, Any] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    }
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Mcp-Name": name or params.get("taskId") or params["name"],
    }
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    return server.request("POST", "/mcp", body, by=by, headers=headers).json


def call(server: HubServer, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool as a client that declares the extension."""
    return send(server, "tools/call", {"name": tool, "arguments": arguments})["result"]


def poll(server: HubServer, task_id: str) -> dict[str, Any]:
    """Ask for a task."""
    return send(server, "tasks/get", {"taskId": task_id})["result"]


def wait_for_work(server: HubServer) -> str:
    """Begin a waiting claim; return its task."""
    created = call(server, "claim", wait=WAIT_S)
    assert (created["resultType"], created["status"]) == ("task", "working")
    return created["taskId"]


def error_code(server: HubServer, method: str, task_id: str, **more: Any) -> int:
    """Send a request about a task that is refused; return the code."""
    params: dict[str, Any] = {"taskId": task_id}
    if method == "tasks/update":
        params["inputResponses"] = {}
    return send(server, method, params, **more)["error"]["code"]


def test_waiting_claim_is_a_task_until_there_is_work(server: HubServer) -> None:
    created = call(server, "claim", wait=WAIT_S)

    task_id = created["taskId"]
    expected = {
        "taskId": task_id,
        "status": "working",
        "createdAt": "2026-02-09T20:55:00.000Z",
        "lastUpdatedAt": "2026-02-09T20:55:00.000Z",
        "ttlMs": WAIT_S * 1_000 + KEPT_MS,
        "pollIntervalMs": 1_000,
    }
    assert created.items() >= (expected | {"resultType": "task"}).items()
    assert poll(server, task_id).items() >= (expected | {"resultType": "complete"}).items()

    work = server.submit(CreateTask("Mend it", ready=True))
    server.submit(CreateTask("Paint it", ready=True))
    server.clock.advance(1_000)
    ended = poll(server, task_id)

    assert (ended["status"], ended["lastUpdatedAt"]) == ("completed", "2026-02-09T20:55:01.000Z")
    assert ended["result"]["isError"] is False
    claimed = ended["result"]["structuredContent"]
    assert (claimed["task"], claimed["agent"]) == (work, "ada")
    assert poll(server, task_id)["result"] == ended["result"]
    assert len(call_once(server, "ada", "inbox")["holding"]) == 1


@proves("QUESTION-WAIT")
def test_waiting_question_is_a_task_until_it_is_answered(server: HubServer) -> None:
    work = server.submit(CreateTask("Paint it", ready=True))
    call_once(server, "ada", "claim", task=work)
    question = {"task": work, "question": "Red or blue?"}
    task_id = call(server, "ask", wait=WAIT_S, **question)["taskId"]
    assert poll(server, task_id)["status"] == "working"

    server.submit(AnswerQuestion(work, "Blue."))

    ended = poll(server, task_id)
    assert ended["status"] == "completed"
    assert ended["result"]["structuredContent"].items() >= {"answer": "Blue."}.items()


def test_call_that_need_not_wait_is_answered_at_once(server: HubServer) -> None:
    none_ready = call(server, "claim")
    assert (none_ready["resultType"], none_ready["isError"]) == ("complete", True)
    assert call(server, "ask", task="nowhere", question="?", wait=WAIT_S)["isError"]
    work = server.submit(CreateTask("Mend it", ready=True))

    claimed = call(server, "claim", wait=WAIT_S)

    assert (claimed["resultType"], claimed["structuredContent"]["task"]) == ("complete", work)


@pytest.mark.parametrize("mode", PROTOCOL_VERSIONS)
def test_client_that_does_not_declare_it_waits(server: HubServer, mode: str) -> None:
    async def wait(client: Client) -> Any:
        claiming = asyncio.create_task(call_tool(client, "claim", wait=WAIT_S))
        await client.list_tools()
        work = await asyncio.to_thread(server.submit, CreateTask("Mend it", ready=True))
        assert (await claiming)["task"] == work
        refused = await client.call_tool("claim", {"wait": 1})
        assert refused.structured_content == {
            "code": "nothing_ready",
            "detail": "no task is ready for ada",
        }

    run_with_client(server, "ada", wait, mode)


def test_client_of_the_sdk_gets_the_outcome_of_its_task(server: HubServer) -> None:
    def create_work() -> None:
        server.submit(CreateTask("Mend it", ready=True))

    async def wait() -> Any:
        polled = PolledTasks(create_work)
        async with open_client(server, "ada", extensions=[polled]) as client:
            claimed = await call_tool(client, "claim", wait=WAIT_S)
            assert client.server_capabilities.extensions == {EXTENSION: {}}
        assert polled.statuses == ["working", "completed"]
        return claimed

    assert asyncio.run(wait())["agent"] == "ada"


def test_older_version_is_told_nothing_of_it(server: HubServer) -> None:
    async def initialize(client: Client) -> Any:
        return client.server_capabilities.extensions

    assert run_with_client(server, "ada", initialize, "legacy") is None


def test_wait_that_ends_has_the_outcome_of_a_call_that_does_not_wait(server: HubServer) -> None:
    task_id = wait_for_work(server)
    server.clock.advance(WAIT_S * 1_000)

    ended = poll(server, task_id)

    assert (ended["status"], ended["result"]["isError"]) == ("completed", True)
    assert ended["result"]["structuredContent"]["code"] == "nothing_ready"

    server.clock.advance(KEPT_MS)
    assert error_code(server, "tasks/get", task_id) == types.INVALID_PARAMS


def test_cancelled_wait_claims_nothing(server: HubServer) -> None:
    task_id = wait_for_work(server)

    for _ in range(2):
        acknowledged = send(server, "tasks/cancel", {"taskId": task_id})["result"]
        assert acknowledged.keys() <= {"resultType", "_meta"}
    work = server.submit(CreateTask("Mend it", ready=True))

    assert poll(server, task_id)["status"] == "cancelled"
    assert call_once(server, "bob", "claim")["task"] == work


def test_input_that_nobody_asked_for_is_ignored(server: HubServer) -> None:
    task_id = wait_for_work(server)
    update = {"taskId": task_id, "inputResponses": {"name": {"action": "accept"}}}

    assert send(server, "tasks/update", update)["result"]["resultType"] == "complete"

    assert poll(server, task_id)["status"] == "working"


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_request_about_a_task_is_refused(server: HubServer, method: str) -> None:
    task_id = wait_for_work(server)

    assert error_code(server, method, "nobody-knows") == types.INVALID_PARAMS
    assert error_code(server, method, task_id, by="bob") == types.INVALID_PARAMS
    assert error_code(server, method, task_id, by="owner") == types.INVALID_PARAMS
    assert error_code(server, method, task_id, name="another") == types.HEADER_MISMATCH
    undeclared = error_code(server, method, task_id, capabilities={})
    assert undeclared == types.MISSING_REQUIRED_CLIENT_CAPABILITY

    assert poll(server, task_id)["status"] == "working"


def test_polls_at_the_same_time_claim_one_task(server: HubServer) -> None:
    task_id = wait_for_work(server)
    for number in range(8):
        server.submit(CreateTask(f"Race {number}", ready=True))

    with ThreadPoolExecutor(8) as threads:
        polls = [*threads.map(poll, [server] * 8, [task_id] * 8)]

    assert {one["status"] for one in polls} == {"completed"}
    assert len({one["result"]["structuredContent"]["task"] for one in polls}) == 1
    assert len(call_once(server, "ada", "inbox")["holding"]) == 1


def test_caller_with_too_many_tasks_waits(server: HubServer) -> None:
    for _ in range(MAX_TASKS_PER_CALLER):
        wait_for_work(server)

    refused = call(server, "claim", wait=1)

    assert (refused["resultType"], refused["isError"]) == ("complete", True)
    by_bob = send(server, "tools/call", {"name": "claim", "arguments": {"wait": 1}}, by="bob")
    assert by_bob["result"]["resultType"] == "task"
    server.clock.advance(WAIT_S * 1_000 + KEPT_MS)
    wait_for_work(server)


def _waiting_task() -> CallTask:
    async def run(*_: Any, **__: Any) -> None: ...

    async def retry(_: ToolCall) -> None: ...

    pending = Pending(ToolError("nothing_ready", "no task is ready"), WAIT_S, retry)
    return CallTask(None, ToolCall({}, run, None), pending, 0)


def test_protocol_error_fails_the_task() -> None:
    task = _waiting_task()

    async def fail() -> Any:
        raise MCPError(types.INTERNAL_ERROR, "the store is gone")

    asyncio.run(task.look(fail, 7))

    error = {"code": types.INTERNAL_ERROR, "message": "the store is gone"}
    failed = {"status": "failed", "statusMessage": "the store is gone", "error": error}
    assert task.show().items() >= failed.items()


def test_client_that_hangs_up_gets_the_outcome_with_its_next_poll() -> None:
    task = _waiting_task()

    async def hang_up() -> None:
        is_looking, may_end = asyncio.Event(), asyncio.Event()

        async def look() -> types.CallToolResult:
            is_looking.set()
            await may_end.wait()
            return types.CallToolResult(content=[])

        polling = asyncio.create_task(task.look(look, 1))
        await is_looking.wait()
        polling.cancel()
        # What is found while the wait is cancelled was claimed all the same.
        task.cancel(2)
        assert task.show()["status"] == "cancelled"
        may_end.set()
        await task.look(look, 3)

    asyncio.run(hang_up())

    assert task.show()["status"] == "completed"
