"""`dragoman mcp` as a coding agent starts it: a process that speaks MCP on standard input."""

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp.client import Client
from mcp.client.extension import ClientExtension
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from dragoman.config import HttpSettings
from dragoman.core.agent import RevokeToken
from dragoman.core.task_state import CreateTask
from dragoman.surfaces.mcp.stdio import MAX_LINE_BYTES
from tests.e2e.program import COMMAND, Program
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, serving
from tests.surfaces.mcp.clients import (
    INITIALIZE,
    MALFORMED,
    PROTOCOL_VERSIONS,
    PolledTasks,
    call_tool,
    refusal_code,
)
from tests.surfaces.mcp.mcp_hub import mount_mcp

pytestmark = proves("MCP-STDIO")

T = TypeVar("T")

_PING_ID = 99
_PING = b'{"jsonrpc":"2.0","id":99,"method":"ping"}'


@pytest.fixture
def program(tmp_path: Path, bytecode: Path) -> Generator[Program]:
    """Give the program on a data directory that does not exist yet."""
    with closing(Program(tmp_path / "hub", bytecode)) as created:
        yield created


def run_with_client(
    program: Program,
    scenario: Callable[[Client], Awaitable[T]],
    *arguments: str,
    mode: str = "auto",
    extensions: Sequence[ClientExtension] = (),
    **environment: str,
) -> T:
    """Run a scenario with a client of `dragoman mcp`; return its result."""
    parameters = StdioServerParameters(
        command=COMMAND[0],
        args=[*COMMAND[1:], "mcp", *arguments],
        env=program.environment(environment),
    )

    async def run() -> T:
        async with Client(parameters, mode=mode, extensions=extensions) as client:
            return await scenario(client)

    return asyncio.run(run())


@proves("MCP-TOOLS")
@pytest.mark.parametrize("mode", PROTOCOL_VERSIONS)
def test_agent_works_and_files_are_projected(program: Program, mode: str) -> None:
    task = program.ask_here("task", "create", "Mend it", "--ready")["id"]

    async def work(client: Client) -> None:
        assert client.protocol_version == PROTOCOL_VERSIONS[mode]
        claimed = await call_tool(client, "claim")
        assert (claimed["task"], claimed["agent"]) == (task, "ada")
        assert (program.data / "tasks" / "in-progress" / f"{task}.md").exists()
        await call_tool(client, "complete", task=task)
        assert (program.data / "tasks" / "review" / f"{task}.md").exists()

    run_with_client(program, work, "--as", "ada", mode=mode)

    *_, claimed, _reported, _moved = program.run("events", "--json").out.splitlines()
    event = json.loads(claimed)
    assert event["actor"] == "agent:ada"
    assert event["via"].startswith("mcp human:")


@proves("MCP-TASKS")
def test_waiting_claim_is_a_task_of_the_process(program: Program) -> None:
    program.prepare("init")
    polled = PolledTasks(lambda: program.prepare("task", "create", "Mend it", "--ready"))

    async def work(client: Client) -> None:
        assert (await call_tool(client, "claim", wait=300))["agent"] == "ada"

    run_with_client(program, work, "--as", "ada", extensions=[polled])

    assert polled.statuses == ["working", "completed"]


@proves("MCP-IDENTITY")
def test_token_identifies_the_agent_until_revoked(program: Program) -> None:
    token = program.ask_here("agent", "add", "bob")["token"]
    task = program.ask_here("task", "create", "Mend it", "--ready")["id"]

    async def work(client: Client) -> None:
        assert (await call_tool(client, "claim", task=task))["agent"] == "bob"
        program.prepare("agent", "revoke", "bob")
        with pytest.raises(MCPError, match="token_revoked: DRAGOMAN_TOKEN"):
            await client.call_tool("heartbeat", {"task": task})

    run_with_client(program, work, DRAGOMAN_TOKEN=token)

    refused = program.run("mcp", more={"DRAGOMAN_TOKEN": token})
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("token_revoked: DRAGOMAN_TOKEN")


@proves("MCP-IDENTITY", "MCP-RESOURCES")
@pytest.mark.parametrize("mode", PROTOCOL_VERSIONS)
def test_requests_are_relayed_to_a_remote_hub(
    program: Program, server: HubServer, mode: str
) -> None:
    task = server.submit(CreateTask("Far away", ready=True))

    async def work(client: Client) -> None:
        assert "claim" in {tool.name for tool in (await client.list_tools()).tools}
        assert (await call_tool(client, "claim", task=task))["agent"] == "ada"
        assert await refusal_code(client, "claim", task=task) == "already_claimed"
        assert (await client.list_resources()).resources
        assert (await client.list_resource_templates()).resource_templates
        (content,) = (await client.read_resource(f"dragoman://tasks/{task}")).contents
        assert content.uri == f"dragoman://tasks/{task}"
        with pytest.raises(MCPError, match="no task has the name"):
            await client.read_resource("dragoman://tasks/nobody-knows")

    url, token = f"http://127.0.0.1:{server.port}", server.tokens["ada"]
    # DRAGOMAN_DATA does not count where a hub is named.
    run_with_client(program, work, mode=mode, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token)

    assert not program.data.exists()


@proves("MCP-IDENTITY")
def test_proxy_of_the_environment_is_not_used(program: Program, server: HubServer) -> None:
    async def work(client: Client) -> None:
        assert (await call_tool(client, "inbox"))["agent"] == "ada"

    url, token = f"http://127.0.0.1:{server.port}", server.tokens["ada"]
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        # Nothing listens there: a request to it does not arrive.
        proxy_url = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        proxy_variables: dict[str, Any] = {
            "HTTP_PROXY": proxy_url,
            "http_proxy": proxy_url,
            "ALL_PROXY": proxy_url,
            "NO_PROXY": "",
        }
        run_with_client(program, work, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token, **proxy_variables)


@proves("MCP-IDENTITY")
def test_unreachable_or_refusing_remote_hub_is_reported_at_once(
    program: Program, server: HubServer
) -> None:
    def error_of(url: str, token: str) -> str:
        process = program.run("mcp", more={"DRAGOMAN_URL": url, "DRAGOMAN_TOKEN": token})
        assert (process.code, process.out) == (1, "")
        return process.err

    url, token = f"http://127.0.0.1:{server.port}", server.tokens["ada"]
    with socket.socket() as closed_socket:
        closed_socket.bind(("127.0.0.1", 0))
        silent_url = f"http://127.0.0.1:{closed_socket.getsockname()[1]}"
        assert error_of(silent_url, token).startswith(
            f"store_unavailable: the hub at {silent_url}/mcp"
        )
    assert error_of(url, "wrong").startswith("unauthenticated: unknown credential")
    assert error_of(f"{url}/v1", token).startswith("not_found: there is nothing at '/v1/mcp'")


@proves("MCP-IDENTITY")
def test_remote_hub_without_token_is_reported(program: Program, tmp_path: Path) -> None:
    program.prepare("init")
    program.data.rename(tmp_path / ".dragoman")
    environment = program.environment({"DRAGOMAN_URL": "http://127.0.0.1:1"})
    del environment["DRAGOMAN_DATA"]
    process = subprocess.run(
        (*COMMAND, "mcp"),
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (process.returncode, process.stdout) == (1, "")
    assert process.stderr.startswith(
        "invalid_settings: DRAGOMAN_URL names a hub, and DRAGOMAN_TOKEN"
    )


@proves("MCP-IDENTITY")
def test_token_revoked_during_a_session_is_reported(program: Program, server: HubServer) -> None:
    server.add_agent("kim")

    async def work(client: Client) -> None:
        assert (await call_tool(client, "inbox"))["agent"] == "kim"
        server.submit(RevokeToken("kim"))
        with pytest.raises(MCPError, match="token_revoked: the token of kim was revoked"):
            await client.call_tool("inbox", {})

    url, token = f"http://127.0.0.1:{server.port}", server.tokens["kim"]
    run_with_client(program, work, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token)


def test_remote_hub_may_be_restarted(program: Program) -> None:
    server = mount_mcp(HubServer())

    async def work(client: Client) -> None:
        assert (await call_tool(client, "inbox"))["agent"] == "owner"
        first_server.close()
        with pytest.raises(MCPError, match="does not answer"):
            await client.list_tools()
        with serving(mount_mcp(HubServer(http=HttpSettings(port=server.port, rate_per_second=0)))):
            assert (await call_tool(client, "inbox"))["agent"] == "owner"

    with ExitStack() as first_server:
        first_server.enter_context(serving(server))
        url, token = f"http://127.0.0.1:{server.port}", server.tokens["owner"]
        run_with_client(program, work, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token)


def test_running_hub_is_used(program: Program) -> None:
    hub = program.start("up", "--port", "0", "--json")
    assert hub.stdout is not None
    try:
        assert json.loads(hub.stdout.readline())["ok"]
        task = program.ask("task", "create", "Mend it", "--ready")["id"]

        async def work(client: Client) -> Any:
            await call_tool(client, "claim", task=task)
            return await call_tool(client, "complete", task=task)

        assert run_with_client(program, work, "--as", "ada")["status"] == "review"
    finally:
        hub.send_signal(signal.SIGTERM)
        hub.communicate()
    assert program.ask_here("task", "show", task)["status"] == "review"
    program.prepare("verify")


def _request(number: int, tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


def answer_lines(program: Program, *lines: bytes) -> list[dict[str, Any]]:
    """Send lines to the program and then a ping; return all answers up to that of the ping."""
    program.prepare("init")
    process = subprocess.Popen(
        (*COMMAND, "mcp", "--as", "ada"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=program.environment(),
    )
    answers: list[dict[str, Any]] = []
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(line + b"\n" for line in (*lines, _PING)))
        process.stdin.flush()
        while not answers or answers[-1]["id"] != _PING_ID:
            answers.append(json.loads(process.stdout.readline()))
    assert process.returncode == 0
    return answers


@proves("MCP-MALFORMED")
def test_lines_are_decoded_as_bodies_of_the_http_surface(program: Program) -> None:
    answers = answer_lines(program, json.dumps(INITIALIZE).encode(), b"", b" \t", *dict(MALFORMED))
    refused = [answer["error"] for answer in answers if answer["id"] is None]

    assert [answer["id"] for answer in answers if answer["id"] is not None] == [1, _PING_ID]
    assert {error["code"] for error in refused} == {-32700}
    for error, (_, message) in zip(refused, MALFORMED, strict=True):
        assert message in error["message"]


@proves("MCP-MALFORMED")
def test_line_of_too_many_bytes_or_values_is_refused(program: Program) -> None:
    long = b'{"x":"' + b"x" * 2 * MAX_LINE_BYTES + b'"}'
    many = b'{"x":[' + b"[]," * 6_000_000 + b"[]]}"
    answers = answer_lines(program, json.dumps(INITIALIZE).encode(), many, long)
    assert [answer["error"]["message"] for answer in answers if answer["id"] is None] == [
        "it has more than 10000 values",
        f"it has more than {MAX_LINE_BYTES} bytes, and no more are taken",
    ]


def test_requests_before_the_end_of_the_input_are_answered(program: Program) -> None:
    program.prepare("init")
    requests = (json.dumps(INITIALIZE).encode(), _request(2, "inbox"), _PING)
    process = subprocess.run(
        (*COMMAND, "mcp", "--as", "ada"),
        input=b"\n".join(requests),
        capture_output=True,
        env=program.environment(),
        timeout=60,
        check=True,
    )
    answers = [json.loads(line) for line in process.stdout.splitlines()]
    assert sorted(answer["id"] for answer in answers) == [1, 2, _PING_ID]


def test_closed_stdout_ends_it_quietly(program: Program) -> None:
    program.prepare("init")
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "wb") as broken_stdout:
        process = subprocess.run(
            (*COMMAND, "mcp", "--as", "ada"),
            input=json.dumps(INITIALIZE).encode() + b"\n" + _request(2, "inbox") + b"\n",
            stdout=broken_stdout,
            stderr=subprocess.PIPE,
            env=program.environment(),
            timeout=60,
            check=False,
        )

    assert (process.returncode, process.stderr) == (0, b"")


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_signal_ends_it_while_input_is_open(
    program: Program, signal_number: signal.Signals
) -> None:
    program.prepare("init")
    process = subprocess.Popen(
        (*COMMAND, "mcp", "--as", "ada"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program.environment(),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        process.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == INITIALIZE["id"]
        process.send_signal(signal_number)
        assert process.wait(30) == -signal_number
