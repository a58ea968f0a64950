"""Handoff actions over HTTP: replies in the form of the protocol, with a matching status."""

from typing import Any

import pytest

from dragoman.core.agent import RegisterAgent
from tests.protocols.acp.hub import offer
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer, Response

pytestmark = proves("ACP-RESPONSE")

PATH = "/v1/acp/acp_handoff"


def act_on_handoff(server: HubServer, action: str, id: str, by: str, **fields: Any) -> Response:
    """Send an action on a handoff."""
    return server.request("POST", PATH, {"action": action, "handoff_id": id, **fields}, by=by)


def propose(server: HubServer, **fields: Any) -> str:
    """Propose a handoff as ada; return its id."""
    return server.post(PATH, offer(**fields), by="ada")["handoff_id"]


def test_handoff_goes_from_proposal_to_close(server: HubServer) -> None:
    id = propose(server)
    for action, by, status in (
        ("accept", "bob", "accepted"),
        ("activate", "bob", "activated"),
        ("complete", "bob", "completed"),
        ("close", "ada", "closed"),
    ):
        response = act_on_handoff(server, action, id, by)
        assert (response.status, response.json["success"]) == (200, True), response
        assert (response.json["handoff_id"], response.json["status"]) == (id, status)
    (row,) = server.post(PATH, {"action": "query", "task_id": "t-1"}, by="bob")["handoffs"]
    assert (row["handoff_id"], row["status"]) == (id, "closed")


@pytest.mark.parametrize(
    ("body", "by", "status", "code"),
    [
        ({"action": "accept", "handoff_id": "gone"}, "bob", 404, "not_found"),
        ({"action": "accept"}, "bob", 422, "schema_invalid"),
        (offer(to="carol"), "ada", 409, "ownership_conflict"),
        (offer(task="t-2", verification={"package_hash": "0" * 64}), "ada", 422, "hash_mismatch"),
        (b'{"action":"query","action":"query"}', "bob", 422, "schema_invalid"),
    ],
)
def test_refusal_has_protocol_form_and_matching_status(
    server: HubServer, body: Any, by: str, status: int, code: str
) -> None:
    propose(server)
    response = server.request("POST", PATH, body, by=by)
    assert (response.status, response.headers["content-type"]) == (status, "application/json")
    assert (response.json["success"], response.json["error"]["code"]) == (False, code)


def test_gate_refusal_has_protocol_form(server: HubServer) -> None:
    handoff = propose(server, policy={"requires_human_approval": True})
    response = act_on_handoff(server, "accept", handoff, "bob")
    assert (response.status, response.json["error"]["code"]) == (409, "approval_required")
    assert response.json["status"] == "validating"
    assert act_on_handoff(server, "approve", handoff, "bob").status == 403
    server.add_agent("hera", "human")
    assert act_on_handoff(server, "approve", handoff, "hera").status == 200
    assert act_on_handoff(server, "accept", handoff, "bob").json["status"] == "accepted"


@proves("ACP-DIALECT")
def test_action_can_be_sent_as_a_message(server: HubServer) -> None:
    accepted = server.post("/v1/messages", offer(), by="ada")
    assert (accepted["dialect"], accepted["type"], accepted["reply"]["status"]) == (
        "acp",
        "acp_handoff",
        "proposed",
    )
    response = server.request("POST", "/v1/messages", offer(to="carol"), by="ada")
    assert (response.status, response.code) == (409, "ownership_conflict")
    assert response.json["reply"]["error"]["kind"] == "active_handoff"


@proves("ACP-RESPONSE")
def test_repeated_idempotency_key_returns_same_handoff(server: HubServer) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = server.request("POST", PATH, offer(), by="ada", headers=key)
    again = server.request("POST", PATH, offer(), by="ada", headers=key)
    assert (first.status, again.json["handoff_id"]) == (200, first.json["handoff_id"])


@proves("ACP-MESSAGES", "ACP-WORKQ")
def test_messages_and_work_items_have_endpoints(server: HubServer) -> None:
    server.submit(RegisterAgent("bob"))
    message = {"to": ["bob"], "type": "knowledge.push", "payload": {"a": 1}}
    assert server.post("/v1/acp/acp_send", message, by="ada")["success"]
    (row,) = server.post("/v1/acp/acp_inbox", {}, by="bob")["messages"]
    assert row["payload"] == {"a": 1}
    assert server.post("/v1/acp/workq.create", {"item_id": "w"}, by="ada")["status"] == "open"
    assert server.post("/v1/acp/workq.claim", {"item_id": "w"}, by="ada")["owner"] == "ada"
