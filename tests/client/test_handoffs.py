"""Handoffs by the SDK: the reply in the form of the protocol, a no as well as a yes."""

from dragoman.client import Hub
from tests.client.stage import Stage, run
from tests.protocols.acp.hub import offer
from tests.requirements import proves

pytestmark = proves("ACP-RESPONSE")


def test_an_agent_hands_over_and_another_takes_over(stage: Stage) -> None:
    async def story() -> list[str]:
        async with stage.connect("ada") as ada, stage.connect("bob") as bob:
            id = (await ada.call("acp_handoff", offer()))["handoff_id"]
            told: list[str] = []
            way: list[tuple[str, Hub]] = [
                ("activate", bob),
                ("accept", bob),
                ("activate", bob),
                ("complete", bob),
                ("close", ada),
            ]
            for action, agent in way:
                reply = await agent.call("acp_handoff", {"action": action, "handoff_id": id})
                told.append(reply["status"] if reply["success"] else reply["error"]["code"])
            return told

    assert run(story()) == ["invalid_transition", "accepted", "activated", "completed", "closed"]
