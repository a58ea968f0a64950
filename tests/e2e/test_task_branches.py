"""Branches of tasks over HTTP: the work of an agent that the hub has started is read and merged."""

import asyncio
import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from dragoman.surfaces.mcp.remote import connect_remote
from tests.e2e.hub_process import run_hub, wait_for_event
from tests.e2e.program import COMMAND, Program
from tests.requirements import proves

pytestmark = proves("TASK-MERGE")

SCRIPT = """
set -e
echo "from ada" > b.txt
git add b.txt
git -c user.name=ada -c user.email=ada@example.invalid commit -qm "write b"
"""


def request(url: str, token: str, body: object = None) -> tuple[int, Any]:
    """Ask the hub; status and answer."""
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as reply:  # noqa: S310
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


async def call_with(client: Client, tool: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
    """Call an MCP tool; True for an error, and the answer."""
    async with client:
        result = await client.call_tool(tool, arguments)
        return bool(result.is_error), result.structured_content


def call_tool(url: str, token: str, tool: str, **arguments: str) -> tuple[bool, Any]:
    """Call an MCP tool of the hub."""

    async def call() -> tuple[bool, Any]:
        async with connect_remote(url, token) as (http, address):
            client = Client(streamable_http_client(address, http_client=http))
            return await call_with(client, tool, arguments)

    return asyncio.run(call())


def tool_refusal(url: str, token: str, tool: str, **arguments: str) -> str:
    """Call an MCP tool that refuses; the code."""
    is_error, refused = call_tool(url, token, tool, **arguments)
    assert is_error, refused
    return refused["code"]


def test_work_of_a_started_agent_is_read_and_merged(program: Program, tmp_path: Path) -> None:
    folder = tmp_path / "repository"
    for words in (("init", "-q", "-b", "main", str(folder)), ("commit", "-qm", "first")):
        more = () if words[0] == "init" else ("-C", str(folder))
        person = ("-c", "user.name=mia", "-c", "user.email=mia@example.invalid")
        allowed = ("--allow-empty",) if words[0] == "commit" else ()
        subprocess.run(("git", *more, *person, *words, *allowed), check=True)
    token = program.ask_here("agent", "add", "eve")["token"]
    command = json.dumps(["sh", "-c", SCRIPT])
    settings = f'[agents.ada]\ncommand = {command}\nrepository = "{folder}"\n'
    (program.data / "dragoman.toml").write_text(settings)
    program.prepare("task", "create", "Write", "--id", "T-1", "--ready", "--assignee", "ada")
    program.prepare("task", "create", "Other", "--id", "T-2")
    with run_hub(program) as hub:
        owner = (program.data / "token").read_text().strip()
        wait_for_event(program, "T-1", lambda one: one["body"].get("to") in ("review", "ready"))
        tasks = f"{hub.url}/v1/tasks"
        status, found = request(f"{tasks}/T-1/diff", owner)
        assert (status, found["into"], "+from ada" in found["patch"]) == (200, "main", True)
        assert request(f"{tasks}/T-1/diff?into=nowhere", owner)[1]["code"] == "bad_repository"
        assert request(f"{tasks}/T-1/diff", token)[0] == 403
        assert request(f"{tasks}/T-1/merge", token, {})[0] == 403
        assert request(f"{tasks}/T-2/merge", owner, {})[1]["code"] == "bad_repository"
        assert call_tool(hub.url, owner, "task_diff", task="T-1") == (False, found)
        assert tool_refusal(hub.url, token, "task_diff", task="T-1") == "not_authorized"
        assert tool_refusal(hub.url, token, "task_merge", task="T-1") == "not_authorized"
        assert tool_refusal(hub.url, owner, "task_merge", task="T-2") == "bad_repository"
        assert tool_refusal(hub.url, owner, "task_merge", task="T-1", into="a b") == "invalid_field"
        is_error, merged = call_tool(hub.url, owner, "task_merge", task="T-1", into="main")
        assert (is_error, merged["branch"]) == (False, found["branch"])
        assert (folder / "b.txt").read_text() == "from ada\n"
        assert request(f"{tasks}/T-1/merge", owner, {})[0] == 409
        assert merged["merged"] in program.run("task", "log", "T-1").out
    arguments = [*COMMAND[1:], "--data", f"{program.data}", "mcp"]
    without_hub = Client(StdioServerParameters(command=COMMAND[0], args=arguments))
    asked = call_with(without_hub, "task_diff", {"task": "T-1"})
    is_error, shown = asyncio.run(asked)
    assert not is_error, shown
    assert (shown["branch"], shown["into"]) == (found["branch"], "main")
