"""Client of an external work queue: JSON-RPC to a checked address; every failure is an outcome."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from dragoman.engine.workq import ItemState, TransferResult
from dragoman.system.http_client import SafeHttpClient
from dragoman.system.workq_client import WorkqClient
from tests.notify.receiver import Answer, Receiver, hang, receiving, status, text
from tests.requirements import proves

pytestmark = proves("ACP-WORKQ")

TIMEOUT_S = 0.3
OWNED_ITEM = {"item_id": "w", "status": "claimed", "owner": "bob"}


@pytest.fixture
def receiver() -> Generator[Receiver]:
    """Server on this machine."""
    with receiving() as server:
        yield server


def make_client(receiver: Receiver, token: str = "") -> WorkqClient:
    endpoint = SafeHttpClient(receiver.url(), "workq.url", ("127.0.0.1",), seconds=TIMEOUT_S)
    return WorkqClient(endpoint.post_and_read, token)


def answer_with(body: Any) -> Answer:
    """Answer with this body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return text(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))


def result(owner: str, state: str = "claimed") -> Answer:
    return answer_with({"id": 1, "result": {"item_id": "w", "status": state, "owner": owner}})


def error(message: str, code: str = "") -> Answer:
    return answer_with(
        {"id": 1, "error": {"code": -32000, "message": message, "data": {"code": code}}}
    )


def test_ownership_is_transferred(receiver: Receiver) -> None:
    receiver.answers = [result("bob")]
    moved = make_client(receiver, "s3cret").transfer_ownership("w", "alice", "bob")
    assert moved == TransferResult("transferred")
    (request,) = receiver.requests
    assert json.loads(request.body) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "workq.claim",
        "params": {"item_id": "w", "from_agent": "alice", "to_agent": "bob"},
    }
    assert request.headers["authorization"] == "Bearer s3cret"


OUTCOMES: dict[str, tuple[Answer, str]] = {
    "another owner": (result("carol"), "refused"),
    "no such item": (error("gone", "not_found"), "missing"),
    "an error": (error("not now"), "refused"),
    "an error without data": (
        answer_with({"id": 1, "error": {"message": "no", "data": 7}}),
        "refused",
    ),
    "an error without id": (
        answer_with({"id": None, "error": {"message": "?"}}),
        "refused",
    ),
    "an error with another id": (answer_with({"id": 2, "error": {"message": "no"}}), "unavailable"),
    "an answer with another id": (answer_with({"id": 2, "result": OWNED_ITEM}), "unavailable"),
    "an answer without id": (answer_with({"result": OWNED_ITEM}), "unavailable"),
    "a server error": (status(500), "unavailable"),
    "no answer": (hang, "unavailable"),
    "no JSON": (answer_with(b"<p>"), "unavailable"),
    "no item": (answer_with({"id": 1, "result": {"owner": 7}}), "unavailable"),
    "nothing": (answer_with({}), "unavailable"),
    "no object": (answer_with([]), "unavailable"),
    "not UTF-8": (answer_with(b'{"result":"\xff"}'), "unavailable"),
    "malformed error": (answer_with({"id": 1, "error": 7}), "unavailable"),
    "oversized answer": (answer_with({"result": "x" * 100_000}), "unavailable"),
}


@pytest.mark.parametrize("which", OUTCOMES)
def test_failures_are_outcomes(receiver: Receiver, which: str) -> None:
    answer, outcome = OUTCOMES[which]
    receiver.answers = [answer]
    assert make_client(receiver).transfer_ownership("w", "alice", "bob").outcome == outcome


def test_item_is_looked_up(receiver: Receiver) -> None:
    rpc = make_client(receiver)
    receiver.answers = [result("bob"), error("gone", "not_found"), error("no"), status(500)]
    assert [rpc.item_exists("w") for _ in range(4)] == [True, False, None, None]
    receiver.answers = [result("bob"), error("gone", "not_found")]
    assert rpc.item_status("w") == ItemState("w", "claimed", "bob")
    assert rpc.item_status("w") is None
