"""Profiles: tools that an agent sees; it can call no others."""

import re

import msgspec
import pytest
from mcp import types
from mcp.client import Client

from dragoman.bootstrap import build_dialects
from dragoman.config import ProfileSettings, parse_settings
from dragoman.core.agent import AgentRecord, RegisterAgent
from dragoman.core.errors import SettingsError
from dragoman.surfaces.mcp.tool import Tool
from dragoman.surfaces.mcp.tools import Profiles, build_tools
from tests.requirements import proves
from tests.surfaces.http.hub_server import START, HubServer
from tests.surfaces.mcp.clients import protocol_error, run_with_client

pytestmark = proves("MCP-PROFILES")

TOOLS = build_tools(build_dialects())
CORE_TOOLS = {name for name, tool in TOOLS.items() if tool.group == "core"}


async def _tool_names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def test_agent_without_profile_sees_all_tools_of_its_role(server: HubServer) -> None:
    assert run_with_client(server, "ada", _tool_names) == TOOLS.keys()
    assert run_with_client(server, "olga", _tool_names) == {
        name for name, tool in TOOLS.items() if tool.is_read_only
    }
    assert {"read", "inbox", "mail_inbox"} < run_with_client(server, "olga", _tool_names)
    assert "mail_send" not in run_with_client(server, "olga", _tool_names)


def test_profile_is_chosen_by_path_or_agent_name(server: HubServer) -> None:
    night = {"claim", "complete", "aof_task_complete", "aof_task_update", "session_end"}

    assert run_with_client(server, "ada", _tool_names, path="/mcp/night") == night
    assert run_with_client(server, "eve", _tool_names) == {"read"}
    assert run_with_client(server, "eve", _tool_names, path="/mcp/night") == night


def test_hidden_tool_cannot_be_called(server: HubServer) -> None:
    error = protocol_error(server, "eve", lambda client: client.call_tool("claim", {}))

    assert error.code == types.INVALID_PARAMS
    assert error.message == "there is no tool 'claim' here; known: read"


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


def test_path_name_and_dialects_choose_tools_in_this_order() -> None:
    profiles = Profiles(TOOLS, {"ada": ProfileSettings(("read", "aof"))})
    record = AgentRecord("bob", "agent", ("klingon",), START)

    def visible_tools(name: str, record: AgentRecord | None, profile: str = "") -> set[str]:
        return set(profiles.visible_to(name, "agent", record, profile))

    aof = {"aof_task_complete", "aof_task_update", "session_end"}
    assert visible_tools("ada", record) == {"read", *aof}
    assert visible_tools("bob", record, "ada") == visible_tools("ada", None)
    assert visible_tools("bob", record) == CORE_TOOLS
    assert visible_tools("bob", None) == TOOLS.keys()


def test_profile_with_unknown_tool_is_refused_at_start() -> None:
    settings = parse_settings('[profiles.night]\ntools = ["claim", "complet"]', {})

    with pytest.raises(SettingsError, match=r"profiles\.night\.tools: .*'complet'.*complete"):
        Profiles(TOOLS, settings.profiles)
