"""`POST /v1/signed`: messages signed by their sender."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dragoman.core.agent import SetAgentKey
from dragoman.core.attempt import ClaimTask
from dragoman.core.task_state import CreateTask, MoveTask
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.queries.tasks import TaskView, find_task
from dragoman.engine.signed_requests import signed_bytes
from dragoman.text.base64url import encode_base64url
from tests.requirements import proves
from tests.surfaces.http.hub_server import START, HubServer, Response

pytestmark = proves("IDENTITY-SIGNED", "HTTP-IDENTITY")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
TASK = "TASK-2026-02-09-001"


@pytest.fixture
def task(server: HubServer) -> str:
    """Give a task held by ada, whose key is registered."""
    server.submit(SetAgentKey("ada", encode_base64url(KEY.public_key().public_bytes_raw())))
    server.submit(CreateTask("Mend it", TASK, ready=True))
    return server.submit(ClaimTask(TASK, "ada"))


def update(task: str, sender: str = "ada") -> dict[str, Any]:
    """Build a status update."""
    return {
        "protocol": "aof",
        "version": 1,
        "type": "status.update",
        "taskId": task,
        "fromAgent": sender,
        "toAgent": "dispatcher",
        "sentAt": "2026-02-09T20:55:00Z",
        "payload": {"taskId": task, "agentId": sender, "progress": "half way"},
    }


def sign_message(envelope: Any, by: Ed25519PrivateKey = KEY, **changes: str) -> dict[str, Any]:
    seal = {
        "agent": "ada",
        "nonce": "0123456789abcdef",
        "audience": "house",
        "expires": to_rfc3339(START + 60_000),
        "alg": "ed25519",
        **changes,
    }
    value = encode_base64url(by.sign(signed_bytes(envelope, seal)))
    return {"envelope": envelope, "signature": {**seal, "value": value}}


def post_signed(server: HubServer, message: Any) -> Response:
    """Send a signed message without a token."""
    return server.request("POST", "/v1/signed", message, by="")


def count_notes(server: HubServer) -> int:
    view = find_task(server.store, TASK)
    assert isinstance(view, TaskView)
    return view.task.notes


def test_signed_message_is_applied_as_its_signer_without_token(
    server: HubServer, task: str
) -> None:
    response = post_signed(server, sign_message(update(task)))
    assert (response.status, response.json["agent"], response.json["reply"]["status"]) == (
        200,
        "ada",
        "in-progress",
    )
    assert count_notes(server) == 1


def test_replay_changes_nothing_even_after_restart(server: HubServer, task: str) -> None:
    message = sign_message(update(task))
    post_signed(server, message)
    assert post_signed(server, message).code == "replayed"
    server.app.context.envelopes = type(server.app.context.envelopes)(server.store, server.clock)
    again = post_signed(server, message)
    assert (again.status, again.json["repeated"]) == (200, True)
    assert count_notes(server) == 1


@proves("AOF-REPEAT")
def test_message_signed_again_is_applied_once(server: HubServer, task: str) -> None:
    message = update(task)
    post_signed(server, sign_message(message))
    again = post_signed(server, sign_message(message, nonce="n" * 16))
    reordered = post_signed(server, sign_message(dict(reversed(message.items())), nonce="m" * 16))
    assert [(response.status, response.json["repeated"]) for response in (again, reordered)] == [
        (200, True),
        (200, True),
    ]
    assert count_notes(server) == 1
    later = message | {"sentAt": "2026-02-09T20:56:00Z"}
    assert not post_signed(server, sign_message(later, nonce="o" * 16)).json.get("repeated")
    assert count_notes(server) == 2


def test_replay_after_restart_changes_nothing_in_later_attempt(
    server: HubServer, task: str
) -> None:
    message = sign_message(update(task))
    post_signed(server, message)
    server.submit(MoveTask(task, "ready"))
    server.submit(ClaimTask(TASK, "ada"))
    server.app.context.envelopes = type(server.app.context.envelopes)(server.store, server.clock)
    assert post_signed(server, message).json["repeated"]
    assert count_notes(server) == 1


@pytest.mark.parametrize(
    ("seal", "key", "code", "path"),
    [
        ({"audience": "another"}, KEY, "unauthenticated", "signature.audience"),
        ({"expires": to_rfc3339(START)}, KEY, "token_expired", "signature.expires"),
        ({}, OTHER_KEY, "unauthenticated", None),
        ({"agent": "mallory"}, KEY, "unauthenticated", None),
        ({"agent": "bob"}, KEY, "unauthenticated", None),
        ({"nonce": "short"}, KEY, "invalid_envelope", "signature.nonce"),
        ({"expires": "soon"}, KEY, "invalid_envelope", "signature.expires"),
    ],
    ids=["audience", "expired", "wrong-key", "unknown", "no-key", "nonce", "no-time"],
)
def test_invalid_signature_is_refused(
    server: HubServer,
    task: str,
    seal: dict[str, str],
    key: Ed25519PrivateKey,
    code: str,
    path: str | None,
) -> None:
    response = post_signed(server, sign_message(update(task), key, **seal))
    assert (response.code, response.json.get("path")) == (code, path)
    assert count_notes(server) == 0


def test_sender_must_be_the_signer(server: HubServer, task: str) -> None:
    forged = update(task, "bob")
    response = post_signed(server, sign_message(forged))
    assert (response.code, response.json["path"]) == ("identity_mismatch", "envelope.fromAgent")
    assert count_notes(server) == 0


@pytest.mark.parametrize("body", [{}, {"envelope": {}}, {"envelope": [], "signature": {}}])
def test_body_that_is_no_signed_message_is_refused(server: HubServer, body: Any) -> None:
    assert post_signed(server, body).code == "invalid_field"


def test_signed_message_of_no_dialect_is_refused(server: HubServer, task: str) -> None:
    assert task
    assert post_signed(server, sign_message({"hello": "there"})).code == "not_recognized"


@proves("IDENTITY-SIGNED")
def test_reused_key_is_named_as_the_sender_wrote_it(server: HubServer, task: str) -> None:
    assert post_signed(server, sign_message(update(task), nonce="n" * 16, key="kk")).status == 200
    other_message = {**update(task), "sentAt": "2026-02-09T12:00:01.000Z"}

    refused = post_signed(server, sign_message(other_message, nonce="m" * 16, key="kk"))

    assert refused.code == "key_reused"
    assert "the key kk was used before" in refused.json["detail"]
