"""Handoffs over MCP: structured replies; refusals are errors."""

from typing import Any

from mcp import types
from mcp.client import Client

from tests.protocols.acp.hub import offer
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer
from tests.surfaces.mcp.clients import call_once, run_with_client

pytestmark = proves("ACP-RESPONSE", "MCP-DIALECTS")


def call_handoff(server: HubServer, by: str, **arguments: Any) -> types.CallToolResult:
    """Call the handoff tool; return its result."""

    async def call(client: Client) -> Any:
        return await client.call_tool("acp_handoff", arguments)

    return run_with_client(server, by, call)


def test_handoff_goes_from_proposal_to_close_by_tool(server: HubServer) -> None:
    id = call_once(server, "ada", "acp_handoff", **offer())["handoff_id"]
    for action, by, status in (
        ("accept", "bob", "accepted"),
        ("activate", "bob", "activated"),
        ("complete", "bob", "completed"),
        ("close", "ada", "closed"),
    ):
        reply = call_once(server, by, "acp_handoff", action=action, handoff_id=id)
        assert (reply["success"], reply["status"]) == (True, status)
    assert call_once(server, "bob", "acp_inbox")["messages"][0]["type"] == "handoff.initiate"


def test_refusal_is_an_error_in_protocol_form(server: HubServer) -> None:
    call_once(server, "ada", "acp_handoff", **offer(task="t-no"))
    result = call_handoff(server, "ada", **offer(to="carol", task="t-no"))
    assert result.is_error
    assert result.structured_content is not None
    assert result.structured_content["success"] is False
    assert result.structured_content["error"]["kind"] == "active_handoff"
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert content.text.startswith("ownership_conflict: ")
