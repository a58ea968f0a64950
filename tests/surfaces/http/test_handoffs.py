"""Handoffs over HTTP: the one form of answer, with the status that goes with it."""

from typing import Any

import pytest

from dragoman.core.commands import RegisterAgent
from tests.protocols.acp.hub import offer
from tests.requirements import proves
from tests.surfaces.http.house import Answer, House

pytestmark = proves("ACP-RESPONSE")

CALL = "/v1/acp/acp_handoff"


def act(house: House, action: str, id: str, by: str, **more: Any) -> Answer:
    """An action on a handoff."""
    return house.ask("POST", CALL, {"action": action, "handoff_id": id, **more}, by=by)


def offered(house: House, **more: Any) -> str:
    """An offer of ada's; its id."""
    return house.post(CALL, offer(**more), by="ada")["handoff_id"]


def test_the_whole_way(house: House) -> None:
    id = offered(house)
    for action, by, status in (
        ("accept", "bob", "accepted"),
        ("activate", "bob", "activated"),
        ("complete", "bob", "completed"),
        ("close", "ada", "closed"),
    ):
        answer = act(house, action, id, by)
        assert (answer.status, answer.json["success"]) == (200, True), answer
        assert (answer.json["handoff_id"], answer.json["status"]) == (id, status)
    (row,) = house.post(CALL, {"action": "query", "task_id": "t-1"}, by="bob")["handoffs"]
    assert (row["handoff_id"], row["status"]) == (id, "closed")


@pytest.mark.parametrize(
    ("said", "by", "status", "code"),
    [
        ({"action": "accept", "handoff_id": "gone"}, "bob", 404, "not_found"),
        ({"action": "accept"}, "bob", 422, "schema_invalid"),
        (offer(to="carol"), "ada", 409, "ownership_conflict"),
        (offer(task="t-2", verification={"package_hash": "0" * 64}), "ada", 422, "hash_mismatch"),
        (b'{"action":"query","action":"query"}', "bob", 422, "schema_invalid"),
    ],
)
def test_a_no_has_the_form_of_the_protocol_and_a_status_that_says_so(
    house: House, said: Any, by: str, status: int, code: str
) -> None:
    offered(house)
    answer = house.ask("POST", CALL, said, by=by)
    assert (answer.status, answer.headers["content-type"]) == (status, "application/json")
    assert (answer.json["success"], answer.json["error"]["code"]) == (False, code)


def test_what_the_door_refuses_has_that_form_beside_the_problem(house: House) -> None:
    odd = {"Content-Type": "text/plain"}
    strange = {"Authorization": "Bearer nobody-s"}
    for answer, status, code in (
        (house.ask("POST", CALL, offer(), headers=strange), 401, "unauthenticated"),
        (house.ask("POST", CALL, b"x", by="ada", headers=odd), 415, "unsupported_media_type"),
        (house.ask("GET", CALL, by="ada"), 405, "method_not_allowed"),
        (house.ask("POST", "/v1/acp/nothing", {}, by="ada"), 404, "not_found"),
    ):
        assert (answer.status, answer.code) == (status, code)
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json["success"] is False
        assert answer.json["error"] == {"code": code, "detail": answer.json["detail"]}
    assert "success" not in house.ask("GET", "/v1/nothing", by="ada").json


def test_what_the_gate_says_is_a_no_too(house: House) -> None:
    waits = offered(house, policy={"requires_human_approval": True})
    answer = act(house, "accept", waits, "bob")
    assert (answer.status, answer.json["error"]["code"]) == (409, "approval_required")
    assert answer.json["status"] == "validating"
    assert act(house, "approve", waits, "bob").status == 403
    house.welcome("hera", "human")
    assert act(house, "approve", waits, "hera").status == 200
    assert act(house, "accept", waits, "bob").json["status"] == "accepted"


@proves("ACP-DIALECT")
def test_an_action_is_a_message_like_any_other(house: House) -> None:
    taken = house.post("/v1/messages", offer(), by="ada")
    assert (taken["dialect"], taken["type"], taken["reply"]["status"]) == (
        "acp",
        "acp_handoff",
        "proposed",
    )
    answer = house.ask("POST", "/v1/messages", offer(to="carol"), by="ada")
    assert (answer.status, answer.code) == (409, "ownership_conflict")
    assert answer.json["reply"]["error"]["kind"] == "active_handoff"


@proves("ACP-RESPONSE")
def test_the_same_key_is_answered_once(house: House) -> None:
    key = {"Idempotency-Key": "k-1"}
    first = house.ask("POST", CALL, offer(), by="ada", headers=key)
    again = house.ask("POST", CALL, offer(), by="ada", headers=key)
    assert (first.status, again.json["handoff_id"]) == (200, first.json["handoff_id"])


@proves("ACP-MESSAGES", "ACP-WORKQ")
def test_messages_and_items_have_addresses_of_their_own(house: House) -> None:
    house.do(RegisterAgent("bob"))
    said = {"to": ["bob"], "type": "knowledge.push", "payload": {"a": 1}}
    assert house.post("/v1/acp/acp_send", said, by="ada")["success"]
    (row,) = house.post("/v1/acp/acp_inbox", {}, by="bob")["messages"]
    assert row["payload"] == {"a": 1}
    assert house.post("/v1/acp/workq.create", {"item_id": "w"}, by="ada")["status"] == "open"
    assert house.post("/v1/acp/workq.claim", {"item_id": "w"}, by="ada")["owner"] == "ada"
