"""Signed messages: the hub accepts what the SDK signs, once, whatever response is lost."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dragoman.client import AcceptedMessage, Refused, RejectedMessage, Signer, connect, connect_sync
from dragoman.client.signing import find_signer
from dragoman.core.agent import DescribeAgent, SetAgentKey
from dragoman.core.errors import Refusal, SettingsError
from dragoman.engine.queries.intents import find_intent
from dragoman.engine.signed_requests import SignedMessageVerifier, VerifiedMessage
from dragoman.text.base64url import encode_base64url
from tests.client.backend import Backend, run
from tests.requirements import proves

pytestmark = proves("SDK-SIGNED")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))
RESULT = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": "fini"}


@pytest.fixture
def keyed_backend(backend: Backend) -> Backend:
    """Give a backend that knows ada's key, and that ada can translate."""
    backend.server.submit(SetAgentKey("ada", encode_base64url(KEY.public_key().public_bytes_raw())))
    backend.server.submit(DescribeAgent("ada", ("translate",), trust="T2"))
    return backend


def signer(backend: Backend, key: Ed25519PrivateKey = KEY, audience: str = "stage") -> Signer:
    """Build a signer for ada that uses the clock of the hub."""
    return Signer("ada", key, audience, clock=backend.server.clock)


def test_signed_message_passes_the_hubs_check(keyed_backend: Backend) -> None:
    envelopes = SignedMessageVerifier(keyed_backend.server.store, keyed_backend.server.clock)
    opened = envelopes.verify(signer(keyed_backend).sign(json.dumps(RESULT), "k-1"), "http")
    assert isinstance(opened, VerifiedMessage)
    assert (opened.principal.actor.name, opened.envelope, opened.idempotency_key("")) == (
        "ada",
        RESULT,
        "signed:k-1",
    )
    refused = envelopes.verify(signer(keyed_backend, OTHER_KEY).sign(RESULT), "http")
    assert isinstance(refused, Refusal)
    assert refused.code == "unauthenticated"


def test_idempotency_key_is_covered_by_the_signature(keyed_backend: Backend) -> None:
    message = json.loads(signer(keyed_backend).sign(RESULT, "k-1"))
    message["signature"]["key"] = "k-2"
    refusal = SignedMessageVerifier(keyed_backend.server.store, keyed_backend.server.clock).verify(
        json.dumps(message).encode(), "http"
    )
    assert isinstance(refusal, Refusal)
    assert refusal.code == "unauthenticated"


def test_signed_result_is_applied_once_when_its_response_is_lost(
    keyed_backend: Backend,
) -> None:
    with connect_sync(keyed_backend.url, keyed_backend.tokens["owner"]) as owner_hub:
        owner_hub.call("ccos.delegate", {"goal": "translate it", "intent_id": "i-1"})

    async def agent() -> tuple[AcceptedMessage, AcceptedMessage]:
        hub = connect(
            keyed_backend.relay.url, keyed_backend.tokens["bob"], signer=signer(keyed_backend)
        )
        async with hub:
            update = {"intent_id": "i-1", "agent_id": "ada", "message": "begun"}
            keyed_backend.relay.responses_to_drop.append(b"/v1/signed")
            first = await hub.send(update)
            return first, await hub.send(RESULT)

    update, result = run(agent())
    # It was sent twice, with a new signature.
    assert (update.agent, update.repeated) == ("ada", True)
    assert result.reply["state"] == "Satisfied"
    intent = find_intent(keyed_backend.server.store, "i-1")
    assert not isinstance(intent, Refusal)
    assert (intent.updates, intent.state) == (1, "Satisfied")


def test_batch_is_signed_and_refusals_have_codes(keyed_backend: Backend) -> None:
    message = {"intent_id": "nobody-asked", "agent_id": "ada", "success": True}
    with connect_sync(
        keyed_backend.url, keyed_backend.tokens["bob"], signer=signer(keyed_backend)
    ) as hub:
        (answer,) = hub.send_all([message])
    assert isinstance(answer, RejectedMessage)
    assert answer.problem.code == "anomaly"


def test_dialect_of_a_signed_message_is_refused(keyed_backend: Backend) -> None:
    with connect_sync(
        keyed_backend.url, keyed_backend.tokens["bob"], signer=signer(keyed_backend)
    ) as hub:
        with pytest.raises(ValueError, match=r"cannot name its dialect \(ccos\)"):
            hub.send(RESULT, dialect="ccos")
        with pytest.raises(ValueError, match="cannot name its dialect"):
            hub.send_all([RESULT], dialect="ccos")


def test_key_of_a_signed_message_is_limited_to_249_characters(keyed_backend: Backend) -> None:
    longest = "k" * 249
    with connect_sync(keyed_backend.url, keyed_backend.tokens["owner"]) as owner_hub:
        owner_hub.call("ccos.delegate", {"goal": "translate it", "intent_id": "i-1"})
    with connect_sync(
        keyed_backend.url, keyed_backend.tokens["bob"], signer=signer(keyed_backend)
    ) as hub:
        assert not hub.send(RESULT, key=longest).repeated
        assert hub.send(RESULT, key=longest).repeated
        (answer,) = hub.send_all([RESULT], key=longest[2:])
        assert isinstance(answer, AcceptedMessage)
        with pytest.raises(Refused, match="249"):
            hub.send(RESULT, key=longest + "k")


def test_message_signed_for_another_hub_is_refused(keyed_backend: Backend) -> None:
    foreign_signer = signer(keyed_backend, audience="elsewhere")
    with (
        connect_sync(keyed_backend.url, keyed_backend.tokens["bob"], signer=foreign_signer) as hub,
        pytest.raises(Refused, match="another hub"),
    ):
        hub.send(RESULT)


@pytest.mark.parametrize("message", ["AOF/1 {}", b"[1]", "[]"])
def test_only_json_objects_can_be_signed(message: Any) -> None:
    with pytest.raises(ValueError, match="only a JSON object"):
        Signer("ada", KEY, "stage").sign(message)


def _write_key(path: Path, form: PrivateFormat, key: Any = KEY) -> str:
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()))
    return str(path)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.OpenSSH])
def test_key_is_found_by_the_environment(
    keyed_backend: Backend, tmp_path: Path, form: PrivateFormat
) -> None:
    variables = {
        "DRAGOMAN_KEY": _write_key(tmp_path / "key", form),
        "DRAGOMAN_AGENT": "ada",
        "DRAGOMAN_AUDIENCE": "stage",
    }
    found = find_signer(variables)
    assert found is not None
    assert repr(found) == "Signer(ada)"
    # It signs by the clock of the machine, which is not that of the hub.
    opened = SignedMessageVerifier(keyed_backend.server.store, keyed_backend.server.clock).verify(
        found.sign(RESULT), "http"
    )
    assert isinstance(opened, Refusal)
    assert "expires" in opened.detail
    assert find_signer({}) is None


def _write_other_key_type(path: Path) -> str:
    return _write_key(path, PrivateFormat.PKCS8, generate_private_key(SECP256R1()))


def _write_garbage(path: Path) -> str:
    path.touch(mode=0o600)
    path.write_bytes(b"no key")
    return str(path)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (str, "cannot|is no private key"),
        (_write_garbage, "is no private key"),
        (_write_other_key_type, "is no Ed25519 key"),
    ],
)
def test_unusable_key_is_refused(
    tmp_path: Path, write: Callable[[Path], str], message: str
) -> None:
    variables = {
        "DRAGOMAN_KEY": write(tmp_path / "key"),
        "DRAGOMAN_AGENT": "a",
        "DRAGOMAN_AUDIENCE": "b",
    }
    with pytest.raises(SettingsError, match=message):
        find_signer(variables)
    with pytest.raises(SettingsError, match="set DRAGOMAN_AGENT"):
        find_signer({"DRAGOMAN_KEY": "key", "DRAGOMAN_AGENT": "a"})
