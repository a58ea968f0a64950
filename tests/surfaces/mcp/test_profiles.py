"""Which tools an agent sees, and that it can call no others."""

import re

import msgspec
import pytest
from mcp import types
from mcp.client import Client

from dragoman.bootstrap import dialects
from dragoman.config import ProfileSettings, parse
from dragoman.core.commands import RegisterAgent
from dragoman.core.errors import SettingsError
from dragoman.core.states.agent import AgentRecord
from dragoman.surfaces.mcp.profiles import Profiles
from dragoman.surfaces.mcp.tool import Tool
from dragoman.surfaces.mcp.tools import table
from tests.requirements import proves
from tests.surfaces.http.house import START, House
from tests.surfaces.mcp.clients import fault, talk

pytestmark = proves("MCP-PROFILES")

TOOLS = table(dialects())
CORE = {name for name, tool in TOOLS.items() if tool.group == "core"}


async def _names(client: Client) -> set[str]:
    return {tool.name for tool in (await client.list_tools()).tools}


def test_without_a_profile_an_agent_sees_all_that_fits_it(house: House) -> None:
    assert talk(house, "ada", _names) == TOOLS.keys()
    assert talk(house, "olga", _names) == {name for name, tool in TOOLS.items() if tool.reads}
    assert {"read", "inbox", "mail_inbox"} < talk(house, "olga", _names)
    assert "mail_send" not in talk(house, "olga", _names)


def test_a_profile_is_chosen_by_the_address_or_by_the_name(house: House) -> None:
    night = {"claim", "complete", "aof_task_complete", "aof_task_update", "session_end"}

    assert talk(house, "ada", _names, path="/mcp/night") == night
    assert talk(house, "eve", _names) == {"read"}
    assert talk(house, "eve", _names, path="/mcp/night") == night


def test_a_tool_that_is_not_seen_cannot_be_called(house: House) -> None:
    error = fault(house, "eve", lambda client: client.call_tool("claim", {}))

    assert error.code == types.INVALID_PARAMS
    assert error.message == "there is no tool 'claim' here; known: read"


def test_an_agent_sees_the_tools_of_the_dialects_that_it_speaks(house: House) -> None:
    house.welcome("speaker")
    house.do(RegisterAgent("speaker", speaks=("klingon",)))
    assert talk(house, "speaker", _names) == CORE
    house.do(RegisterAgent("speaker", speaks=("aof", "agentmail", "acp", "ccos", "saop")))
    assert talk(house, "speaker", _names) == TOOLS.keys()


@pytest.mark.parametrize("tool", TOOLS.values(), ids=TOOLS)
def test_a_tool_names_no_other_that_its_reader_may_not_have(tool: Tool) -> None:
    words = set(re.findall(r"\w+", tool.about + msgspec.json.encode(tool.schema).decode()))
    named = {name for name, other in TOOLS.items() if "_" in name and other.group != tool.group}
    assert not words & named


def test_every_rule_in_its_order() -> None:
    profiles = Profiles(TOOLS, {"ada": ProfileSettings(("read", "aof"))})
    known = AgentRecord("bob", "agent", ("klingon",), START)

    def seen(name: str, known: AgentRecord | None, profile: str = "") -> set[str]:
        return set(profiles.seen_by(name, "agent", known, profile))

    aof = {"aof_task_complete", "aof_task_update", "session_end"}
    assert seen("ada", known) == {"read", *aof}
    assert seen("bob", known, "ada") == seen("ada", None)
    assert seen("bob", known) == CORE
    assert seen("bob", None) == TOOLS.keys()


def test_a_profile_with_a_word_that_means_nothing_is_refused_at_the_start() -> None:
    settings = parse('[profiles.night]\ntools = ["claim", "complet"]', {})

    with pytest.raises(SettingsError, match=r"profiles\.night\.tools: .*'complet'.*complete"):
        Profiles(TOOLS, settings.profiles)
