"""A work queue outside: asked by JSON-RPC at a checked address, and whatever it answers is told."""

import json
from collections.abc import Generator
from typing import Any

import pytest

from dragoman.engine.workq import ItemState, Moved
from dragoman.system.fetch import Endpoint
from dragoman.system.workq_rpc import WorkqRpc
from tests.notify.receiver import Answer, Receiver, hang, receiving, status, text
from tests.requirements import proves

pytestmark = proves("ACP-WORKQ")

SOON = 0.3
MINE = {"item_id": "w", "status": "claimed", "owner": "bob"}


@pytest.fixture
def receiver() -> Generator[Receiver]:
    """Give a server on this machine."""
    with receiving() as server:
        yield server


def queue(receiver: Receiver, token: str = "") -> WorkqRpc:
    endpoint = Endpoint(receiver.url(), "workq.url", ("127.0.0.1",), seconds=SOON)
    return WorkqRpc(endpoint.exchange, token)


def said(body: Any) -> Answer:
    """An answer with this body."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return text(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(data), data))


def result(owner: str, state: str = "claimed") -> Answer:
    return said({"id": 1, "result": {"item_id": "w", "status": state, "owner": owner}})


def no(message: str, code: str = "") -> Answer:
    return said({"id": 1, "error": {"code": -32000, "message": message, "data": {"code": code}}})


def test_an_item_is_given_from_one_to_the_other(receiver: Receiver) -> None:
    receiver.answers = [result("bob")]
    moved = queue(receiver, "s3cret").transfer_ownership("w", "alice", "bob")
    assert moved == Moved("transferred")
    (request,) = receiver.requests
    assert json.loads(request.body) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "workq.claim",
        "params": {"item_id": "w", "from_agent": "alice", "to_agent": "bob"},
    }
    assert request.headers["authorization"] == "Bearer s3cret"


TOLD: dict[str, tuple[Answer, str]] = {
    "another owner": (result("carol"), "refused"),
    "no such item": (no("gone", "not_found"), "missing"),
    "a no": (no("not now"), "refused"),
    "a no without data": (said({"id": 1, "error": {"message": "no", "data": 7}}), "refused"),
    "a no to what it could not read": (said({"id": None, "error": {"message": "?"}}), "refused"),
    "a no to another question": (said({"id": 2, "error": {"message": "no"}}), "unavailable"),
    "an answer to another question": (said({"id": 2, "result": MINE}), "unavailable"),
    "an answer to no question": (said({"result": MINE}), "unavailable"),
    "an error of the server": (status(500), "unavailable"),
    "no answer": (hang, "unavailable"),
    "no JSON": (said(b"<p>"), "unavailable"),
    "no item": (said({"id": 1, "result": {"owner": 7}}), "unavailable"),
    "nothing": (said({}), "unavailable"),
    "no object": (said([]), "unavailable"),
    "not UTF-8": (said(b'{"result":"\xff"}'), "unavailable"),
    "an error that is none": (said({"id": 1, "error": 7}), "unavailable"),
    "more than anybody reads": (said({"result": "x" * 100_000}), "unavailable"),
}


@pytest.mark.parametrize("which", TOLD)
def test_whatever_is_wrong_is_an_outcome(receiver: Receiver, which: str) -> None:
    answer, outcome = TOLD[which]
    receiver.answers = [answer]
    assert queue(receiver).transfer_ownership("w", "alice", "bob").outcome == outcome


def test_an_item_is_looked_up(receiver: Receiver) -> None:
    rpc = queue(receiver)
    receiver.answers = [result("bob"), no("gone", "not_found"), no("no"), status(500)]
    assert [rpc.item_exists("w") for _ in range(4)] == [True, False, None, None]
    receiver.answers = [result("bob"), no("gone", "not_found")]
    assert rpc.item_status("w") == ItemState("w", "claimed", "bob")
    assert rpc.item_status("w") is None
