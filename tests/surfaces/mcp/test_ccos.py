"""CCOS as tools: an agent is given a request, says how it goes, and hands its result in."""

from dragoman.bootstrap import dialects
from dragoman.surfaces.mcp.tools import table
from tests.requirements import proves
from tests.surfaces.http.house import House
from tests.surfaces.mcp.clients import once, refused

pytestmark = proves("CCOS-MCP")


def test_what_agents_need_are_tools_and_the_rest_is_for_people() -> None:
    tools = [name for name in table(dialects()) if name.startswith("ccos_")]
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
    ]


def test_a_request_goes_there_and_back_by_tools(house: House) -> None:
    house.welcome("olga", "orchestrator")
    once(house, "ada", "ccos_register", agent_id="ada", skills=["translate"])
    told = once(house, "olga", "ccos_delegate", goal="translate it", intent_id="i-1")
    assert told["request"]["agent_id"] == "ada"
    (request,) = once(house, "ada", "ccos_requests")["requests"]
    said = {key: request[key] for key in ("intent_id", "agent_id", "request_id")}
    once(house, "ada", "ccos_update", **said, progress=0.5)
    assert refused(house, "bob", "ccos_result", **said, success=True) == "anomaly"
    assert once(house, "ada", "ccos_result", **said, success=True, output=1)["state"] == "Satisfied"
    assert once(house, "olga", "ccos_intent", intent_id="i-1")["result"]["output"] == 1
