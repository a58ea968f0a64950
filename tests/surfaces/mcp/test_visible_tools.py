"""Tools that an agent sees; it can call no others."""

import re

import msgspec
import pytest
from mcp import types
from mcp.client import Client

from dragoman.bootstrap.dialects import build_dialects
from dragoman.core.agent import RegisterAgent
from dragoman.core.task_state import CreateTask
from dragoman.surfaces.mcp.tool import Tool
from dragoman.surfaces.mcp.tools import build_tools
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer
from tests.surfaces.mcp.clients import call_once, protocol_error, run_with_client

pytestmark = proves("MCP-VISIBLE")

ALL_TOOLS = build_tools(build_dialects())
TOOLS = {name: tool for name, tool in ALL_TOOLS.items() if tool.is_listed}
CORE_TOOLS = {name for name, tool in TOOLS.items() if tool.group == "core"}


async def _tool_names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def test_agent_is_shown_the_tools_of_daily_work(server: HubServer) -> None:
    assert run_with_client(server, "ada", _tool_names) == CORE_TOOLS
    assert run_with_client(server, "olga", _tool_names) == {"read", "status"}


def test_tools_that_are_not_listed_can_be_called(server: HubServer) -> None:
    assert call_once(server, "ada", "mail_inbox")["messages"] == []
    assert call_once(server, "olga", "mail_inbox")["messages"] == []
    error = protocol_error(server, "olga", lambda client: client.call_tool("mail_send", {}))
    assert error.message.startswith("there is no tool 'mail_send' here")


def test_hidden_tool_cannot_be_called(server: HubServer) -> None:
    error = protocol_error(server, "olga", lambda client: client.call_tool("claim", {}))

    assert error.code == types.INVALID_PARAMS
    assert error.message.startswith("there is no tool 'claim' here; known: read, status, ")


@proves("TASK-ACTIONS")
def test_unlisted_tool_is_called_by_its_name(server: HubServer) -> None:
    task = server.submit(CreateTask("Mend it", ready=True))
    assert "task_note" in ALL_TOOLS
    assert "task_note" not in run_with_client(server, "ada", _tool_names)

    noted = call_once(server, "ada", "task_note", task=task, text="wet")
    error = protocol_error(server, "olga", lambda client: client.call_tool("task_note", {}))

    assert noted == {"task": task, "status": "ready"}
    assert error.message.startswith("there is no tool 'task_note' here")


def test_agent_sees_tools_of_its_dialects(server: HubServer) -> None:
    server.add_agent("speaker")
    server.submit(RegisterAgent("speaker", speaks=("klingon",)))
    assert run_with_client(server, "speaker", _tool_names) == CORE_TOOLS | {"send_message"}
    error = protocol_error(server, "speaker", lambda client: client.call_tool("mail_inbox", {}))
    assert error.message.startswith("there is no tool 'mail_inbox' here")
    server.submit(RegisterAgent("speaker", speaks=("aof", "agentmail", "acp", "ccos", "saop")))
    assert run_with_client(server, "speaker", _tool_names) == TOOLS.keys() | {"send_message"}


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tool_mentions_no_tool_of_another_group(tool: Tool) -> None:
    mentioned = set(
        re.findall(r"\w+", tool.description + msgspec.json.encode(tool.schema).decode())
    )
    foreign = {name for name, other in TOOLS.items() if "_" in name and other.group != tool.group}
    assert not mentioned & foreign
