"""Tokens of attempts: who gets one for an attempt claimed for another agent, and its limits."""

import pytest

from dragoman.core.base import Role
from dragoman.core.task_state import CreateTask
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer

pytestmark = proves("ROLE-OWN-GATE")


@pytest.mark.parametrize(
    ("by", "agent", "is_issued"),
    [
        ("boss", "ada", True),
        ("boss", "nobody-knows", True),
        ("boss", "pat", False),
        ("boss", "cora", False),
        ("boss", "boss", False),
        ("ada", "ada", False),
        ("owner", "pat", True),
        ("owner", "ada", True),
    ],
)
def test_attempt_token_goes_only_to_authorized_claimer(
    server: HubServer, by: str, agent: str, *, is_issued: bool
) -> None:
    roles: dict[str, Role] = {"boss": "orchestrator", "pat": "human", "cora": "coordinator"}
    for name, role in roles.items():
        server.add_agent(name, role)
    task = server.submit(CreateTask("Mend it", ready=True))
    response = server.request("POST", f"/v1/tasks/{task}/claim", {"agent": agent}, by=by)
    assert (response.status, response.json["token"] is not None) == (200, is_issued)


def test_orchestrator_cannot_approve_work_it_reported_for_another(server: HubServer) -> None:
    server.add_agent("boss", "orchestrator")
    task = server.submit(CreateTask("Mend it", ready=True))
    claimed = server.request("POST", f"/v1/tasks/{task}/claim", {"agent": "ada"}, by="boss")
    server.tokens["as-ada"] = claimed.json["token"]
    reported = server.request("POST", f"/v1/tasks/{task}/report", {"outcome": "done"}, by="as-ada")
    assert reported.json["status"] == "review"
    approved = server.request("POST", f"/v1/tasks/{task}/move", {"to": "done"}, by="boss")
    assert approved.code == "not_authorized"
    assert server.request("POST", f"/v1/tasks/{task}/move", {"to": "done"}).status == 200


@pytest.mark.parametrize("path", ["/v1/work", "/v1/tasks/T/claim"])
@pytest.mark.parametrize("by", ["owner", "boss"])
def test_observer_cannot_be_assigned_work(server: HubServer, path: str, by: str) -> None:
    server.add_agent("boss", "orchestrator")
    server.add_agent("otto", "observer")
    server.submit(CreateTask("Mend it", "T", ready=True))
    assert server.request("POST", path, {"agent": "otto"}, by=by).code == "not_authorized"
    assert server.request("GET", "/v1/tasks/T").json["status"] == "ready"


def test_agent_made_observer_cannot_use_its_attempt_token(server: HubServer) -> None:
    server.submit(CreateTask("Mend it", "T", ready=True))
    claimed = server.request("POST", "/v1/work", {"agent": "ada"})
    server.tokens["as-ada"] = claimed.json["token"]
    server.add_agent("ada", "observer")
    assert server.request("GET", "/v1/tasks/T", by="as-ada").status == 200
    for path, body in (
        ("/v1/tasks/T/report", {"outcome": "done"}),
        ("/v1/tasks/T/heartbeat", {}),
        ("/v1/tasks/T/release", {}),
    ):
        assert server.request("POST", path, body, by="as-ada").code == "not_authorized"
