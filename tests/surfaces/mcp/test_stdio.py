"""`dragoman mcp` as a coding agent starts it: a process that is spoken to on its standard input."""

import asyncio
import json
import os
import signal
import socket
import subprocess
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, TypeVar

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

from dragoman.config import HttpSettings
from dragoman.core.commands import CreateTask, RevokeToken
from tests.e2e.program import COMMAND, Program
from tests.requirements import proves
from tests.surfaces.http.house import House, serving
from tests.surfaces.mcp.clients import ERAS, INITIALIZE, MALFORMED, refusal, use
from tests.surfaces.mcp.stand import furnish

pytestmark = proves("MCP-STDIO")

T = TypeVar("T")


@pytest.fixture
def program(tmp_path: Path, bytecode: Path) -> Generator[Program]:
    """Give the program on a data directory that does not exist yet."""
    with closing(Program(tmp_path / "hub", bytecode)) as made:
        yield made


def talk(
    program: Program,
    story: Callable[[Client], Awaitable[T]],
    *words: str,
    mode: str = "auto",
    **more: str,
) -> T:
    """What comes of a conversation with `dragoman mcp` and these words."""
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "mcp", *words], env=program.environment(more)
    )

    async def held() -> T:
        async with Client(server, mode=mode) as client:
            return await story(client)

    return asyncio.run(held())


@proves("MCP-TOOLS")
@pytest.mark.parametrize("mode", ERAS)
def test_an_agent_works_and_the_files_are_level(program: Program, mode: str) -> None:
    task = program.ask_here("task", "create", "Mend it", "--ready")["id"]

    async def work(client: Client) -> None:
        assert client.protocol_version == ERAS[mode]
        claimed = await use(client, "claim")
        assert (claimed["task"], claimed["agent"]) == (task, "ada")
        assert (program.data / "tasks" / "in-progress" / f"{task}.md").exists()
        await use(client, "complete", task=task)
        assert (program.data / "tasks" / "review" / f"{task}.md").exists()

    talk(program, work, "--as", "ada", mode=mode)

    *_, claimed, _reported, _moved = program.run("events", "--json").out.splitlines()
    shown = json.loads(claimed)
    assert shown["actor"] == "agent:ada"
    assert shown["via"].startswith("mcp human:")


@proves("MCP-IDENTITY")
def test_a_token_says_who_speaks_until_it_is_revoked(program: Program) -> None:
    token = program.ask_here("agent", "add", "bob")["token"]
    task = program.ask_here("task", "create", "Mend it", "--ready")["id"]

    async def work(client: Client) -> None:
        assert (await use(client, "claim", task=task))["agent"] == "bob"
        program.prepare("agent", "revoke", "bob")
        with pytest.raises(MCPError, match="token_revoked: DRAGOMAN_TOKEN"):
            await client.call_tool("heartbeat", {"task": task})

    talk(program, work, DRAGOMAN_TOKEN=token)

    refused = program.run("mcp", more={"DRAGOMAN_TOKEN": token})
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.startswith("token_revoked: DRAGOMAN_TOKEN")


@proves("MCP-PROFILES")
def test_a_profile_is_named_on_the_command_line(program: Program) -> None:
    program.prepare("init")
    settings = program.data / "dragoman.toml"
    settings.write_text('[profiles.night]\ntools = ["claim", "aof_task_update"]\n')

    listed = talk(program, lambda client: client.list_tools(), "--profile", "night")

    assert [tool.name for tool in listed.tools] == ["claim", "aof_task_update"]
    unknown = program.run("mcp", "--profile", "day")
    assert unknown.code == 2
    assert "known: night" in unknown.err


@proves("MCP-IDENTITY", "MCP-RESOURCES")
@pytest.mark.parametrize("mode", ERAS)
def test_everything_is_passed_on_to_a_hub_that_is_named(
    program: Program, house: House, mode: str
) -> None:
    task = house.do(CreateTask("Far away", ready=True))

    async def work(client: Client) -> None:
        assert "claim" in {tool.name for tool in (await client.list_tools()).tools}
        assert (await use(client, "claim", task=task))["agent"] == "ada"
        assert await refusal(client, "claim", task=task) == "already_claimed"
        assert (await client.list_resources()).resources
        assert (await client.list_resource_templates()).resource_templates
        (content,) = (await client.read_resource(f"dragoman://tasks/{task}")).contents
        assert content.uri == f"dragoman://tasks/{task}"
        with pytest.raises(MCPError, match="no task has the name"):
            await client.read_resource("dragoman://tasks/nobody-knows")

    url, token = f"http://127.0.0.1:{house.port}", house.tokens["ada"]
    # The directory that the program is told of elsewhere does not count where a hub is named.
    talk(program, work, mode=mode, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token)

    assert not program.data.exists()


@proves("MCP-IDENTITY")
def test_a_proxy_of_the_environment_does_not_see_the_token(program: Program, house: House) -> None:
    async def work(client: Client) -> None:
        assert (await use(client, "inbox"))["agent"] == "ada"

    url, token = f"http://127.0.0.1:{house.port}", house.tokens["ada"]
    with socket.socket() as proxy:
        proxy.bind(("127.0.0.1", 0))
        # Nobody listens there: what goes that way does not arrive.
        named = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        more = {"HTTP_PROXY": named, "http_proxy": named, "ALL_PROXY": named, "NO_PROXY": ""}
        talk(program, work, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token, **more)


@proves("MCP-IDENTITY")
def test_a_named_hub_that_is_not_there_or_lets_nobody_in_is_told_at_once(
    program: Program, house: House
) -> None:
    def why(url: str, token: str, *words: str) -> str:
        ended = program.run("mcp", *words, more={"DRAGOMAN_URL": url, "DRAGOMAN_TOKEN": token})
        assert (ended.code, ended.out) == (1, "")
        return ended.err

    url, token = f"http://127.0.0.1:{house.port}", house.tokens["ada"]
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        silent = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        assert why(silent, token).startswith(f"store_unavailable: the hub at {silent}/mcp")
    assert why(url, "wrong").startswith("unauthenticated: the credential speaks for nobody")
    assert why(url, token, "--profile", "day").startswith("not_found: there is no profile 'day'")
    assert why(f"{url}/v1", token).startswith("not_found: there is nothing at '/v1/mcp'")


@proves("MCP-IDENTITY")
def test_a_named_hub_without_a_token_is_told_and_not_mistaken_for_the_one_here(
    program: Program, tmp_path: Path
) -> None:
    program.prepare("init")
    program.data.rename(tmp_path / ".dragoman")
    environment = program.environment({"DRAGOMAN_URL": "http://127.0.0.1:1"})
    del environment["DRAGOMAN_DATA"]
    ended = subprocess.run(
        (*COMMAND, "mcp"),
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("invalid_settings: DRAGOMAN_URL names a hub, and DRAGOMAN_TOKEN")


@proves("MCP-IDENTITY")
def test_what_becomes_of_the_token_meanwhile_is_told(program: Program, house: House) -> None:
    house.welcome("kim")

    async def work(client: Client) -> None:
        assert (await use(client, "inbox"))["agent"] == "kim"
        house.do(RevokeToken("kim"))
        with pytest.raises(MCPError, match="token_revoked: the token of kim was taken back"):
            await client.call_tool("inbox", {})

    url, token = f"http://127.0.0.1:{house.port}", house.tokens["kim"]
    talk(program, work, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token)


def test_a_named_hub_may_be_restarted_meanwhile(program: Program) -> None:
    house = furnish(House())

    async def work(client: Client) -> None:
        assert (await use(client, "inbox"))["agent"] == "owner"
        first.close()
        with pytest.raises(MCPError, match="does not answer"):
            await client.list_tools()
        with serving(furnish(House(http=HttpSettings(port=house.port, rate_per_second=0)))):
            assert (await use(client, "inbox"))["agent"] == "owner"

    with ExitStack() as first:
        first.enter_context(serving(house))
        url, token = f"http://127.0.0.1:{house.port}", house.tokens["owner"]
        talk(program, work, DRAGOMAN_URL=url, DRAGOMAN_TOKEN=token)


def test_while_a_hub_runs_it_goes_through_it(program: Program) -> None:
    hub = program.start("up", "--port", "0", "--json")
    assert hub.stdout is not None
    try:
        assert json.loads(hub.stdout.readline())["ok"]
        task = program.ask("task", "create", "Mend it", "--ready")["id"]

        async def work(client: Client) -> Any:
            await use(client, "claim", task=task)
            return await use(client, "complete", task=task)

        assert talk(program, work, "--as", "ada")["status"] == "review"
    finally:
        hub.send_signal(signal.SIGTERM)
        hub.communicate()
    assert program.ask_here("task", "show", task)["status"] == "review"
    program.prepare("verify")


def _answers(program: Program, *lines: bytes) -> list[Any]:
    """What `dragoman mcp` answers to lines after which its input ends at once."""
    ended = subprocess.run(
        (*COMMAND, "mcp", "--as", "ada"),
        input=b"".join(line + b"\n" for line in lines),
        capture_output=True,
        env=program.environment(),
        timeout=60,
        check=True,
    )
    return [json.loads(line) for line in ended.stdout.splitlines()]


def _request(number: int, tool: str, **arguments: Any) -> bytes:
    params = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
    return json.dumps(call).encode()


def test_all_that_was_read_is_answered_before_it_leaves(program: Program) -> None:
    task = program.ask_here("task", "create", "Mend it", "--ready")["id"]
    cancelled = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 3},
    }

    answers = _answers(
        program,
        json.dumps(INITIALIZE).encode(),
        _request(2, "claim", task=task),
        _request(3, "inbox"),
        json.dumps(cancelled).encode(),
        *(_request(number, "read", task=task) for number in range(4, 9)),
        # An id that was given twice is answered twice.
        _request(8, "read"),
    )

    by_id = sorted(answer["id"] for answer in answers)
    assert by_id == sorted([INITIALIZE["id"], 2, 4, 5, 6, 7, 8, 8])
    assert all("result" in answer for answer in answers)


@proves("MCP-MALFORMED")
def test_a_line_that_is_no_message_is_answered_and_the_next_one_too(program: Program) -> None:
    answers = _answers(
        program,
        *(line for line, _, _ in MALFORMED),
        json.dumps(INITIALIZE).encode(),
    )

    *turned_down, initialized = answers
    assert initialized["id"] == INITIALIZE["id"]
    for answer, (line, code, words) in zip(turned_down, MALFORMED, strict=True):
        assert (answer["id"], answer["error"]["code"]) == (None, code), line
        assert words in answer["error"]["message"]


@proves("MCP-MALFORMED")
def test_the_words_are_those_of_the_door(program: Program, house: House) -> None:
    lines = [line for line, _, _ in MALFORMED]

    answers = _answers(program, *lines)

    assert answers == [house.ask("POST", "/mcp", line, by="ada").json for line in lines]


@proves("MCP-MALFORMED")
def test_an_empty_line_says_nothing(program: Program) -> None:
    (answer,) = _answers(program, b"", b" \t\r", json.dumps(INITIALIZE).encode(), b"")

    assert answer["id"] == INITIALIZE["id"]


def test_it_leaves_quietly_when_nobody_listens(program: Program) -> None:
    program.prepare("init")
    deaf, ours = os.pipe()
    os.close(deaf)
    with os.fdopen(ours, "wb") as gone:
        ended = subprocess.run(
            (*COMMAND, "mcp", "--as", "ada"),
            input=json.dumps(INITIALIZE).encode() + b"\n" + _request(2, "inbox") + b"\n",
            stdout=gone,
            stderr=subprocess.PIPE,
            env=program.environment(),
            timeout=60,
            check=False,
        )

    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_though_somebody_could_still_speak(
    program: Program, number: signal.Signals
) -> None:
    server = subprocess.Popen(
        (*COMMAND, "mcp", "--as", "ada"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=program.environment(),
    )
    assert server.stdin is not None
    assert server.stdout is not None
    with server:
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["id"] == INITIALIZE["id"]
        server.send_signal(number)
        assert server.wait(30) == -number
