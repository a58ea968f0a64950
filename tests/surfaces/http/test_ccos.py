"""CCOS over HTTP: operations, CBOR, waiting for requests, long outputs, signed results."""

import threading
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dragoman.core.commands import KeyAgent
from dragoman.text.base64url import to_base64url
from dragoman.text.strict_cbor import parse_cbor, to_cbor
from tests.requirements import proves
from tests.surfaces.http.house import House
from tests.surfaces.http.test_signed import KEY, OTHER, post, signed

pytestmark = proves("CCOS-HTTP")

CBOR = {"Content-Type": "application/cbor"}
RESULT: dict[str, Any] = {
    "intent_id": "i-1",
    "agent_id": "ada",
    "success": True,
    "output": {"pages": 3},
}


@pytest.fixture
def intent(house: House) -> dict[str, Any]:
    """Give the answer to a delegation that ada has got."""
    house.post("/v1/ccos/ccos.register", {"agent_id": "ada", "skills": ["translate"]})
    return delegate(house)


def delegate(house: House, name: str = "i-1") -> dict[str, Any]:
    return house.post("/v1/ccos/ccos.delegate", {"goal": "translate it", "intent_id": name})


def state(house: House) -> str:
    return house.post("/v1/ccos/ccos.intent", {"intent_id": "i-1"})["state"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/ccos/ccos.result"])
def test_a_result_may_be_cbor(house: House, intent: dict[str, Any], path: str) -> None:
    assert intent["state"] == "TaskDispatched"
    answer = house.ask("POST", path, to_cbor(RESULT), by="ada", headers=CBOR)
    assert answer.status == 200, answer
    assert state(house) == "Satisfied"


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/ccos/ccos.result"])
@pytest.mark.parametrize("body", [b"\xa1\x61", b"\xff", b"\x9f\x01\xff", b"", b"{}", b"\x01"])
def test_what_is_no_cbor_is_told(house: House, path: str, body: bytes) -> None:
    answer = house.ask("POST", path, body, by="ada", headers=CBOR)
    assert (answer.status, answer.code) == (400, "invalid_json")
    assert "CBOR" in answer.json["detail"]


@proves("CCOS-CBOR")
@pytest.mark.usefixtures("intent")
@pytest.mark.parametrize(
    ("accept", "given"),
    [
        ("application/cbor", "application/cbor"),
        ("application/CBOR;q=0.9, application/json;q=0.5", "application/cbor"),
        ("application/json, application/cbor", "application/json"),
        ("*/*", "application/json"),
    ],
)
def test_an_answer_is_cbor_for_whoever_asks_for_it(house: House, accept: str, given: str) -> None:
    path, headers = "/v1/ccos/ccos.requests", {"Accept": accept}
    answer = house.ask("POST", path, {}, by="ada", headers=headers)
    assert (answer.status, answer.headers["content-type"]) == (200, given)
    read = parse_cbor(answer.body) if given == "application/cbor" else answer.json
    assert read["requests"][0]["request_id"] == "i-1.1"
    assert read == house.post(path, {}, by="ada")
    # A no stays a problem.
    odd = house.ask("POST", path, {"limit": 0}, by="ada", headers=headers)
    assert odd.code


@pytest.mark.usefixtures("intent")
def test_an_anomaly_has_a_code_and_a_status(house: House) -> None:
    answer = house.ask("POST", "/v1/ccos/ccos.result", RESULT | {"error": "both"}, by="ada")
    assert (answer.status, answer.code) == (409, "anomaly")
    assert state(house) == "TaskDispatched"


@proves("CCOS-RECEIPT")
@pytest.mark.usefixtures("intent")
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/ccos/ccos.result"])
def test_a_result_under_an_attempt_s_token_may_be_said_again(house: House, path: str) -> None:
    claimed = house.post("/v1/tasks/i-1/claim", {"agent": "ada"})
    headers = {"Authorization": f"Bearer {claimed['token']}"}
    answers = [
        house.ask("POST", path, RESULT | said, by="", headers=headers)
        for said in ({}, {}, {"output": "another"})
    ]
    assert [one.status for one in answers] == [200, 200, 409]
    assert answers[2].code == "anomaly"
    assert house.post("/v1/ccos/ccos.intent", {"intent_id": "i-1"})["anomalies"] == 1


def test_whoever_waits_for_requests_gets_them_when_they_come(house: House) -> None:
    house.post("/v1/ccos/ccos.register", {"agent_id": "ada", "skills": ["translate"]})
    got: list[Any] = []

    def wait() -> None:
        got.append(house.post("/v1/ccos/ccos.requests?wait=20000", {}, by="ada"))

    waiting = threading.Thread(target=wait)
    waiting.start()
    delegate(house)
    waiting.join(30)
    assert [request["request_id"] for request in got[0]["requests"]] == ["i-1.1"]


@pytest.mark.usefixtures("intent")
def test_five_megabytes_of_output_are_taken(house: House) -> None:
    house.post("/v1/ccos/ccos.result", RESULT | {"output": "x" * 5_000_000}, by="ada")
    assert state(house) == "Satisfied"


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
def test_a_signed_result_is_taken_once(house: House) -> None:
    house.do(KeyAgent("ada", _public(KEY)))
    letter = signed(RESULT)
    assert post(house, letter).json["reply"]["state"] == "Satisfied"
    assert post(house, letter).code == "replayed"
    feedback = {"type": "FeedbackApplied"}
    assert len(house.post("/v1/ccos/ccos.actions", feedback)["actions"]) == 1


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"audience": "another"}, "unauthenticated"),
        ({"expires": "2026-02-09T20:54:59Z"}, "token_expired"),
        ({"agent": "bob"}, "unauthenticated"),
    ],
)
def test_a_result_signed_for_another_hub_or_another_time_is_refused(
    house: House, said: dict[str, Any], code: str
) -> None:
    house.do(KeyAgent("ada", _public(KEY)))
    assert post(house, signed(RESULT, **said)).code == code
    assert state(house) == "TaskDispatched"


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
def test_a_new_key_takes_the_place_of_the_old_one(house: House) -> None:
    house.do(KeyAgent("ada", _public(KEY)))
    house.do(KeyAgent("ada", _public(OTHER)))
    assert post(house, signed(RESULT)).code == "unauthenticated"
    assert post(house, signed(RESULT, OTHER)).status == 200
    assert state(house) == "Satisfied"


@proves("CCOS-SIGNED")
@pytest.mark.usefixtures("intent")
def test_who_signs_speaks_for_itself_only(house: House) -> None:
    house.welcome("eva")
    house.do(KeyAgent("eva", _public(OTHER)))
    told = post(house, signed(RESULT, OTHER, agent="eva"))
    assert (told.status, told.code) == (409, "anomaly")


def _public(key: Ed25519PrivateKey) -> str:
    return to_base64url(key.public_key().public_bytes_raw())
