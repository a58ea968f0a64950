"""CCOS over HTTP: operations, CBOR, long polls, long outputs, signed results."""

import threading
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dragoman.core.agent import SetAgentKey
from dragoman.text.base64url import encode_base64url
from dragoman.text.strict_cbor import encode_cbor, parse_cbor
from tests.requirements import proves
from tests.surfaces.http.hub_server import HubServer
from tests.surfaces.http.test_signed import KEY, OTHER_KEY, post_signed, sign_message

pytestmark = proves("CCOS-HTTP")

CBOR_HEADERS = {"Content-Type": "application/cbor"}
RESULT: dict[str, Any] = {
    "intent_id": "i-1",
    "agent_id": "ada",
    "success": True,
    "output": {"pages": 3},
}


@pytest.fixture
def intent(server: HubServer) -> dict[str, Any]:
    """Give the reply to a delegation that went to ada."""
    server.post("/v1/ccos/ccos.register", {"agent_id": "ada", "skills": ["translate"]})
    return delegate(server)


def delegate(server: HubServer, name: str = "i-1") -> dict[str, Any]:
    return server.post("/v1/ccos/ccos.delegate", {"goal": "translate it", "intent_id": name})


def state_of_intent(server: HubServer) -> str:
    return server.post("/v1/ccos/ccos.intent", {"intent_id": "i-1"})["state"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/ccos/ccos.result"])
def test_result_may_be_cbor(server: HubServer, intent: dict[str, Any], path: str) -> None:
    assert intent["state"] == "TaskDispatched"
    response = server.request("POST", path, encode_cbor(RESULT), by="ada", headers=CBOR_HEADERS)
    assert response.status == 200, response
    assert state_of_intent(server) == "Satisfied"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/ccos/ccos.result"])
@pytest.mark.parametrize("body", [b"\xa1\x61", b"\xff", b"\x9f\x01\xff", b"", b"{}", b"\x01"])
def test_invalid_cbor_is_refused(server: HubServer, path: str, body: bytes) -> None:
    response = server.request("POST", path, body, by="ada", headers=CBOR_HEADERS)
    assert (response.status, response.code) == (400, "invalid_json")
    assert "CBOR" in response.json["detail"]


@proves("CCOS-CBOR")
@pytest.mark.usefixtures("intent")
@pytest.mark.parametrize(
    ("accept", "content_type"),
    [
        ("application/cbor", "application/cbor"),
        ("application/CBOR;q=0.9, application/json;q=0.5", "application/cbor"),
        ("application/json, application/cbor", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_response_is_cbor_when_client_accepts_it(
    server: HubServer, accept: str, content_type: str
) -> None:
    path, headers = "/v1/ccos/ccos.requests", {"Accept": accept}
    response = server.request("POST", path, {}, by="ada", headers=headers)
    assert (response.status, response.headers["content-type"]) == (200, content_type)
    parsed = parse_cbor(response.body) if content_type == "application/cbor" else response.json
    assert parsed["requests"][0]["request_id"] == "i-1.1"
    assert parsed == server.post(path, {}, by="ada")
    # A refusal is a problem document all the same.
    refusal = server.request("POST", path, {"limit": 0}, by="ada", headers=headers)
    assert refusal.code


@pytest.mark.usefixtures("intent")
def test_anomaly_has_code_and_status(server: HubServer) -> None:
    response = server.request("POST", "/v1/ccos/ccos.result", RESULT | {"error": "both"}, by="ada")
    assert (response.status, response.code) == (409, "anomaly")
    assert state_of_intent(server) == "TaskDispatched"


@proves("CCOS-RECEIPT")
@pytest.mark.usefixtures("intent")
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/ccos/ccos.result"])
def test_result_under_attempt_token_may_be_repeated(server: HubServer, path: str) -> None:
    claimed = server.post("/v1/tasks/i-1/claim", {"agent": "ada"})
    headers = {"Authorization": f"Bearer {claimed['token']}"}
    responses = [
        server.request("POST", path, RESULT | changes, by="", headers=headers)
        for changes in ({}, {}, {"output": "another"})
    ]
    assert [response.status for response in responses] == [200, 200, 409]
    assert responses[2].code == "anomaly"
    assert server.post("/v1/ccos/ccos.intent", {"intent_id": "i-1"})["anomalies"] == 1


def test_long_poll_for_requests_returns_when_one_arrives(server: HubServer) -> None:
    server.post("/v1/ccos/ccos.register", {"agent_id": "ada", "skills": ["translate"]})
    received: list[Any] = []

    def wait() -> None:
        received.append(server.post("/v1/ccos/ccos.requests?wait=20000", {}, by="ada"))

    thread = threading.Thread(target=wait)
    thread.start()
    delegate(server)
    thread.join(30)
    assert [request["request_id"] for request in received[0]["requests"]] == ["i-1.1"]


@pytest.mark.usefixtures("intent")
def test_five_megabytes_of_output_are_accepted(server: HubServer) -> None:
    server.post("/v1/ccos/ccos.result", RESULT | {"output": "x" * 5_000_000}, by="ada")
    assert state_of_intent(server) == "Satisfied"


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
def test_signed_result_is_accepted_once(server: HubServer) -> None:
    server.submit(SetAgentKey("ada", _public_key(KEY)))
    message = sign_message(RESULT)
    assert post_signed(server, message).json["reply"]["state"] == "Satisfied"
    assert post_signed(server, message).code == "replayed"
    history = server.post("/v1/ccos/ccos.intent", {"intent_id": "i-1"})["history"]
    assert [one["state"] for one in history].count("FeedbackApplied") == 1


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
@pytest.mark.parametrize(
    ("seal", "code"),
    [
        ({"audience": "another"}, "unauthenticated"),
        ({"expires": "2026-02-09T20:54:59Z"}, "token_expired"),
        ({"agent": "bob"}, "unauthenticated"),
    ],
)
def test_result_signed_for_another_hub_or_time_is_refused(
    server: HubServer, seal: dict[str, Any], code: str
) -> None:
    server.submit(SetAgentKey("ada", _public_key(KEY)))
    assert post_signed(server, sign_message(RESULT, **seal)).code == code
    assert state_of_intent(server) == "TaskDispatched"


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
def test_new_key_replaces_old_key(server: HubServer) -> None:
    server.submit(SetAgentKey("ada", _public_key(KEY)))
    server.submit(SetAgentKey("ada", _public_key(OTHER_KEY)))
    assert post_signed(server, sign_message(RESULT)).code == "unauthenticated"
    assert post_signed(server, sign_message(RESULT, OTHER_KEY)).status == 200
    assert state_of_intent(server) == "Satisfied"


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
def test_signer_cannot_act_for_another_agent(server: HubServer) -> None:
    server.add_agent("eva")
    server.submit(SetAgentKey("eva", _public_key(OTHER_KEY)))
    refusal = post_signed(server, sign_message(RESULT, OTHER_KEY, agent="eva"))
    assert (refusal.status, refusal.code) == (409, "anomaly")


def _public_key(key: Ed25519PrivateKey) -> str:
    return encode_base64url(key.public_key().public_bytes_raw())
