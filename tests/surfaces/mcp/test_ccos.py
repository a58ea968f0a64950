"""CCOS as MCP tools: requests, updates and results."""

from dragoman.bootstrap.dialects import build_dialects
from dragoman.surfaces.mcp.tools import build_tools
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer
from tests.surfaces.mcp.clients import call_once, refusal_of_call

pytestmark = proves("CCOS-MCP")


def test_operations_for_agents_are_tools() -> None:
    tools = [name for name in build_tools(build_dialects()) if name.startswith("ccos_")]
    assert tools == [
        "ccos_result",
        "ccos_update",
        "ccos_delegate",
        "ccos_register",
        "ccos_cancel",
        "ccos_requests",
        "ccos_rank",
        "ccos_intent",
        "ccos_why",
        "ccos_inbox",
    ]


def test_request_is_delegated_and_answered_by_tools(server: HubServer) -> None:
    server.add_agent("olga", "orchestrator")
    call_once(server, "ada", "ccos_register", agent_id="ada", skills=["translate"])
    delegated = call_once(server, "olga", "ccos_delegate", goal="translate it", intent_id="i-1")
    assert delegated["request"]["agent_id"] == "ada"
    (request,) = call_once(server, "ada", "ccos_requests")["requests"]
    ids = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
    call_once(server, "ada", "ccos_update", **ids, progress=0.5)
    assert refusal_of_call(server, "bob", "ccos_result", **ids, success=True) == "anomaly"
    assert (
        call_once(server, "ada", "ccos_result", **ids, success=True, output=1)["state"]
        == "Satisfied"
    )
    assert call_once(server, "olga", "ccos_intent", intent_id="i-1")["result"]["output"] == 1
