"""`POST /v1/signed`: messages that prove by themselves whose they are."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from dragoman.core.commands import ClaimTask, CreateTask, KeyAgent, MoveTask
from dragoman.core.moments import to_rfc3339
from dragoman.engine.reads.ask import TaskView, find_task
from dragoman.engine.signed import signed_bytes
from dragoman.text.base64url import to_base64url
from tests.requirements import proves
from tests.surfaces.http.house import START, Answer, House

pytestmark = proves("IDENTITY-SIGNED", "HTTP-IDENTITY")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
TASK = "TASK-2026-02-09-001"


@pytest.fixture
def task(house: House) -> str:
    """Give a task that ada holds, whose key is known."""
    house.do(KeyAgent("ada", to_base64url(KEY.public_key().public_bytes_raw())))
    house.do(CreateTask("Mend it", TASK, ready=True))
    return house.do(ClaimTask(TASK, "ada"))


def update(task: str, sender: str = "ada") -> dict[str, Any]:
    """A message."""
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


def signed(envelope: Any, by: Ed25519PrivateKey = KEY, **said: str) -> dict[str, Any]:
    seal = {
        "agent": "ada",
        "nonce": "0123456789abcdef",
        "audience": "house",
        "expires": to_rfc3339(START + 60_000),
        "alg": "ed25519",
        **said,
    }
    value = to_base64url(by.sign(signed_bytes(envelope, seal)))
    return {"envelope": envelope, "signature": {**seal, "value": value}}


def post(house: House, letter: Any) -> Answer:
    """Send it without a token."""
    return house.ask("POST", "/v1/signed", letter, by="")


def notes(house: House) -> int:
    found = find_task(house.store, TASK)
    assert isinstance(found, TaskView)
    return found.task.notes


def test_it_is_carried_out_as_its_signer_s_without_a_token(house: House, task: str) -> None:
    told = post(house, signed(update(task)))
    assert (told.status, told.json["agent"], told.json["reply"]["status"]) == (
        200,
        "ada",
        "in-progress",
    )
    assert notes(house) == 1


def test_a_replay_does_nothing_not_even_after_a_restart(house: House, task: str) -> None:
    letter = signed(update(task))
    post(house, letter)
    assert post(house, letter).code == "replayed"
    house.app.office.envelopes = type(house.app.office.envelopes)(house.store, house.clock)
    again = post(house, letter)
    assert (again.status, again.json["repeated"]) == (200, True)
    assert notes(house) == 1


@proves("AOF-REPEAT")
def test_the_same_message_signed_anew_counts_once(house: House, task: str) -> None:
    message = update(task)
    post(house, signed(message))
    again = post(house, signed(message, nonce="n" * 16))
    turned_around = post(house, signed(dict(reversed(message.items())), nonce="m" * 16))
    assert [(one.status, one.json["repeated"]) for one in (again, turned_around)] == [
        (200, True),
        (200, True),
    ]
    assert notes(house) == 1
    later = message | {"sentAt": "2026-02-09T20:56:00Z"}
    assert not post(house, signed(later, nonce="o" * 16)).json.get("repeated")
    assert notes(house) == 2


def test_a_replay_after_a_restart_does_nothing_in_a_later_attempt_either(
    house: House, task: str
) -> None:
    letter = signed(update(task))
    post(house, letter)
    house.do(MoveTask(task, "ready"))
    house.do(ClaimTask(TASK, "ada"))
    house.app.office.envelopes = type(house.app.office.envelopes)(house.store, house.clock)
    assert post(house, letter).json["repeated"]
    assert notes(house) == 1


@pytest.mark.parametrize(
    ("said", "key", "code", "path"),
    [
        ({"audience": "another"}, KEY, "unauthenticated", "signature.audience"),
        ({"expires": to_rfc3339(START)}, KEY, "token_expired", "signature.expires"),
        ({}, OTHER, "unauthenticated", None),
        ({"agent": "mallory"}, KEY, "unauthenticated", None),
        ({"agent": "bob"}, KEY, "unauthenticated", None),
        ({"nonce": "short"}, KEY, "invalid_envelope", "signature.nonce"),
        ({"expires": "soon"}, KEY, "invalid_envelope", "signature.expires"),
    ],
    ids=["audience", "expired", "wrong-key", "unknown", "no-key", "nonce", "no-time"],
)
def test_anything_else_is_refused(
    house: House,
    task: str,
    said: dict[str, str],
    key: Ed25519PrivateKey,
    code: str,
    path: str | None,
) -> None:
    answer = post(house, signed(update(task), key, **said))
    assert (answer.code, answer.json.get("path")) == (code, path)
    assert notes(house) == 0


def test_its_sender_must_be_its_signer(house: House, task: str) -> None:
    forged = update(task, "bob")
    answer = post(house, signed(forged))
    assert (answer.code, answer.json["path"]) == ("identity_mismatch", "envelope.fromAgent")
    assert notes(house) == 0


@pytest.mark.parametrize("body", [{}, {"envelope": {}}, {"envelope": [], "signature": {}}])
def test_what_is_no_letter_is_told_so(house: House, body: Any) -> None:
    assert post(house, body).code == "invalid_field"


def test_a_message_of_no_dialect_is_told_so(house: House, task: str) -> None:
    assert task
    assert post(house, signed({"hello": "there"})).code == "not_recognized"


@proves("IDENTITY-SIGNED")
def test_a_key_that_is_used_for_another_message_is_told_as_its_sender_wrote_it(
    house: House, task: str
) -> None:
    assert post(house, signed(update(task), nonce="n" * 16, key="kk")).status == 200
    other = {**update(task), "sentAt": "2026-02-09T12:00:01.000Z"}

    refused = post(house, signed(other, nonce="m" * 16, key="kk"))

    assert refused.code == "key_reused"
    assert "the key kk was used before" in refused.json["detail"]
