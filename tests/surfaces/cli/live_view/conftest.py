"""Fixture of the live view's tests: a served hub with work and trouble in it."""

from collections.abc import Generator

import pytest

from tests.protocols.acp.hub import offer
from tests.surfaces.http.hub_server import HubServer, serving


@pytest.fixture
def server() -> Generator[HubServer]:
    """Give a hub with two agents, an observer, and something of each kind that needs a person."""
    with serving(HubServer()) as served:
        served.add_agent("ada")
        served.add_agent("bob")
        served.add_agent("olga", "observer")
        add_trouble(served)
        yield served


def add_trouble(server: HubServer) -> None:
    """Add work in every status that needs a person."""
    for id in ("asked", "blocked", "reviewed", "failed", "held"):
        body = {"id": id, "title": f"The {id} task", "ready": True, "max_attempts": 1}
        server.post("/v1/tasks", body)
        server.post(f"/v1/tasks/{id}/claim", {"agent": "ada"}, by="ada")
    server.post("/v1/tasks/asked/ask", {"text": "Round up?"}, by="ada")
    server.post("/v1/tasks/blocked/block", {"blockers": ["Which key?"]}, by="ada")
    server.post("/v1/tasks/reviewed/complete", {"notes": "All is done."}, by="ada")
    server.post("/v1/tasks/failed/fail", {"notes": "It broke."}, by="ada")
    server.post("/v1/tasks", {"id": "lost", "title": "Lost", "ready": True, "assignee": "nobody"})
    server.post("/v1/tasks", {"id": "gate", "title": "Gate", "ready": True, "assignee": "ada"})
    message = offer("bob", "gate", policy={"requires_human_approval": True})
    server.post("/v1/acp/acp_handoff", message, by="ada")
    server.post("/v1/tasks", {"id": "free", "title": "Free", "ready": True})
    server.post("/v1/agents/bob/pause", {"reason": "a holiday"})
