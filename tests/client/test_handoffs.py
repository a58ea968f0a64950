"""Handoffs by the SDK: replies and refusals in the form of the protocol."""

from dragoman.client import Hub
from tests.client.backend import Backend, run
from tests.protocols.acp.hub import offer
from tests.requirements import proves

pytestmark = proves("ACP-RESPONSE")


def test_handoff_goes_from_proposal_to_close(backend: Backend) -> None:
    async def hand_over() -> list[str]:
        async with backend.connect("ada") as ada, backend.connect("bob") as bob:
            id = (await ada.call("acp_handoff", offer()))["handoff_id"]
            results: list[str] = []
            steps: list[tuple[str, Hub]] = [
                ("activate", bob),
                ("accept", bob),
                ("activate", bob),
                ("complete", bob),
                ("close", ada),
            ]
            for action, agent in steps:
                reply = await agent.call("acp_handoff", {"action": action, "handoff_id": id})
                results.append(reply["status"] if reply["success"] else reply["error"]["code"])
            return results

    assert run(hand_over()) == [
        "invalid_transition",
        "accepted",
        "activated",
        "completed",
        "closed",
    ]
