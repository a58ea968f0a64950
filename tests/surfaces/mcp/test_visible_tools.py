"""Tools that an agent sees; it can call no others."""

import re

import msgspec
import pytest
from mcp import types
from mcp.client import Client

from dragoman.bootstrap.dialects import build_dialects
from dragoman.core.agent import RegisterAgent
from dragoman.surfaces.mcp.tool import Tool
from dragoman.surfaces.mcp.tools import build_tools
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer
from tests.surfaces.mcp.clients import protocol_error, run_with_client

pytestmark = proves("MCP-VISIBLE")

TOOLS = build_tools(build_dialects())
CORE_TOOLS = {name for name, tool in TOOLS.items() if tool.group == "core"}


async def _tool_names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def test_agent_sees_all_tools_of_its_role(server: HubServer) -> None:
    assert run_with_client(server, "ada", _tool_names) == TOOLS.keys()
    assert run_with_client(server, "olga", _tool_names) == {
        name for name, tool in TOOLS.items() if tool.is_read_only
    }
    assert {"read", "inbox", "mail_inbox"} < run_with_client(server, "olga", _tool_names)
    assert "mail_send" not in run_with_client(server, "olga", _tool_names)


def test_hidden_tool_cannot_be_called(server: HubServer) -> None:
    error = protocol_error(server, "olga", lambda client: client.call_tool("claim", {}))

    assert error.code == types.INVALID_PARAMS
    assert error.message.startswith("there is no tool 'claim' here; known: inbox, read, ")


def test_agent_sees_tools_of_its_dialects(server: HubServer) -> None:
    server.add_agent("speaker")
    server.submit(RegisterAgent("speaker", speaks=("klingon",)))
    assert run_with_client(server, "speaker", _tool_names) == CORE_TOOLS
    server.submit(RegisterAgent("speaker", speaks=("aof", "agentmail", "acp", "ccos", "saop")))
    assert run_with_client(server, "speaker", _tool_names) == TOOLS.keys()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_tool_mentions_no_tool_of_another_group(tool: Tool) -> None:
    mentioned = set(
        re.findall(r"\w+", tool.description + msgspec.json.encode(tool.schema).decode())
    )
    foreign = {name for name, other in TOOLS.items() if "_" in name and other.group != tool.group}
    assert not mentioned & foreign
