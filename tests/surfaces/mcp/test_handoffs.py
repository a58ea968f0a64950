"""Handoffs through MCP: the same form, structured, and marked as an error when it is a no."""

from typing import Any

from mcp import types
from mcp.client import Client

from tests.protocols.acp.hub import offer
from tests.requirements import proves
from tests.surfaces.http.house import House
from tests.surfaces.mcp.clients import once, talk

pytestmark = proves("ACP-RESPONSE", "MCP-DIALECTS")


def called(house: House, by: str, **said: Any) -> types.CallToolResult:
    """What a call of the tool comes to."""

    async def call(client: Client) -> Any:
        return await client.call_tool("acp_handoff", said)

    return talk(house, by, call)


def test_the_whole_way_by_a_tool(house: House) -> None:
    id = once(house, "ada", "acp_handoff", **offer())["handoff_id"]
    for action, by, status in (
        ("accept", "bob", "accepted"),
        ("activate", "bob", "activated"),
        ("complete", "bob", "completed"),
        ("close", "ada", "closed"),
    ):
        told = once(house, by, "acp_handoff", action=action, handoff_id=id)
        assert (told["success"], told["status"]) == (True, status)
    assert once(house, "bob", "acp_inbox")["messages"][0]["type"] == "handoff.initiate"


def test_a_no_is_an_error_in_the_form_of_the_protocol(house: House) -> None:
    once(house, "ada", "acp_handoff", **offer(task="t-no"))
    result = called(house, "ada", **offer(to="carol", task="t-no"))
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["success"] is False
    assert result.structured_content["error"]["kind"] == "active_handoff"
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert content.text.startswith("ownership_conflict: ")
