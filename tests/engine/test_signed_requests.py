"""Signed messages: valid under the registered key, for this hub, until expiry, and once."""

import json
import re
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from docs.generate import DOCS
from dragoman.core.actor import Actor
from dragoman.core.agent import RegisterAgent, SetAgentKey
from dragoman.core.errors import Refusal
from dragoman.core.timestamps import to_rfc3339
from dragoman.engine.signed_requests import (
    MAX_VALIDITY_MS,
    SignedMessageVerifier,
    VerifiedMessage,
    sign_message,
    signed_bytes,
)
from dragoman.text.base64url import encode_base64url
from tests.engine.lab import HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("IDENTITY-SIGNED")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
NONCE = "0123456789abcdef"
ENVELOPE: dict[str, Any] = {"protocol": "aof", "n": 1.0, "text": "naïve \U0001f409", "z": {"a": []}}


class Verifier(Struct):
    """Hub that verifies signed messages."""

    lab: Lab
    envelopes: SignedMessageVerifier

    def code(self, message: object) -> str:
        """Return the refusal code; "" if valid, "none" if it is not a signed message."""
        found = self.envelopes.verify(json.dumps(message).encode(), "http")
        if found is None:
            return "none"
        return found.code if isinstance(found, Refusal) else ""


@pytest.fixture
def verifier() -> Verifier:
    """Hub with alice's public key."""
    lab = Lab()
    key = encode_base64url(KEY.public_key().public_bytes_raw())
    lab.do(HUMAN, RegisterAgent("alice", "coordinator"), SetAgentKey("alice", key))
    lab.do(HUMAN, RegisterAgent("bob"))
    return Verifier(lab, SignedMessageVerifier(lab.store, lab.clock))


def signed_message(
    key: Ed25519PrivateKey = KEY, *, life: int = 60_000, envelope: Any = ENVELOPE, **overrides: str
) -> dict[str, Any]:
    """Sign a message as an agent does."""
    signature = {
        "agent": "alice",
        "nonce": NONCE,
        "audience": "lab",
        "expires": to_rfc3339(START + life),
        "alg": "ed25519",
        **overrides,
    }
    value = encode_base64url(key.sign(signed_bytes(envelope, signature)))
    return {"envelope": envelope, "signature": {**signature, "value": value}}


def test_signed_message_authenticates_its_agent_in_its_role(verifier: Verifier) -> None:
    opened = verifier.envelopes.verify(json.dumps(signed_message()).encode(), "http")
    assert isinstance(opened, VerifiedMessage)
    assert opened.principal.actor == Actor("coordinator", "alice", "http")
    assert opened.envelope == ENVELOPE
    assert opened.idempotency_key("") == f"signed:{NONCE}"
    assert opened.idempotency_key("its-digest") == "signed:its-digest"


def test_json_formatting_does_not_matter(verifier: Verifier) -> None:
    message = signed_message()
    reordered = {name: dict(reversed(message[name].items())) for name in ("signature", "envelope")}
    spaced = json.dumps(reordered, indent=3, ensure_ascii=False).replace("1.0", "1e0")
    assert isinstance(verifier.envelopes.verify(spaced.encode(), "http"), VerifiedMessage)


def test_worked_example_of_the_docs_is_accepted(verifier: Verifier) -> None:
    page = (DOCS / "identity.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(example, "identity.md", "exec"), namespace)  # noqa: S102  our own page
    fields = {
        name: text
        for name, text in signed_message()["signature"].items()
        if name not in _ADDED_BY_SIGN
    }
    message = namespace["sign"](ENVELOPE, fields, KEY)
    assert isinstance(verifier.envelopes.verify(message, "http"), VerifiedMessage)


_ADDED_BY_SIGN = ("alg", "value")


def test_signed_bytes_are_a_domain_tag_and_canonical_json() -> None:
    assert (
        signed_bytes({"b": 1.0, "a": "é"}, {"nonce": "n", "value": "v", "alg": "x"})
        == (
            'dragoman envelope v1\n{"envelope":{"a":"é","b":1},"signature":{"alg":"x","nonce":"n"}}'
        ).encode()
    )


def test_replay_is_refused_until_and_after_expiry(verifier: Verifier) -> None:
    message = signed_message()
    assert verifier.code(message) == ""
    assert verifier.code(message) == "replayed"
    assert verifier.code(signed_message(nonce="another-nonce-of-alice")) == ""
    verifier.lab.clock.advance(60_000)
    assert verifier.code(message) == "token_expired"


def test_clock_set_back_does_not_allow_a_replay(verifier: Verifier) -> None:
    message = signed_message()
    verifier.lab.clock.advance(50_000)
    assert verifier.code(message) == ""
    verifier.lab.clock.advance(15_000)
    assert verifier.code(signed_message(nonce="b" * 16, life=90_000)) == ""
    verifier.lab.clock.advance(-60_000)
    assert verifier.code(message) == "replayed"


def test_expired_nonces_are_forgotten(verifier: Verifier) -> None:
    verifier.code(signed_message())
    verifier.lab.clock.advance(2 * MAX_VALIDITY_MS)
    assert verifier.code(signed_message(nonce="c" * 16, life=2 * MAX_VALIDITY_MS + 1_000)) == ""
    assert f"{NONCE}" not in repr(vars(verifier.envelopes))


def test_clock_jump_forward_and_back_keeps_no_nonce_for_long(verifier: Verifier) -> None:
    day = 86_400_000
    verifier.lab.clock.advance(day)
    assert verifier.code(signed_message(life=day + 1_000)) == ""
    verifier.lab.clock.advance(-day)
    assert verifier.code(signed_message(nonce="e" * 16)) == ""
    assert f"{NONCE}" not in repr(vars(verifier.envelopes))
    assert verifier.code(signed_message(nonce="e" * 16)) == "replayed"


def test_too_many_open_nonces_are_refused_as_overload(
    verifier: Verifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.engine.signed_requests.MAX_NONCES", 1)
    assert verifier.code(signed_message()) == ""
    assert verifier.code(signed_message(nonce="d" * 16)) == "overloaded"


@pytest.mark.parametrize(
    ("message", "code"),
    [
        (signed_message(OTHER), "unauthenticated"),
        (signed_message(agent="bob"), "unauthenticated"),
        (signed_message(agent="malory"), "unauthenticated"),
        (signed_message(agent="../alice"), "unauthenticated"),
        (signed_message(audience="another hub"), "unauthenticated"),
        (signed_message(alg="none"), "invalid_envelope"),
        (signed_message(more="x"), "invalid_envelope"),
        (signed_message(nonce="short"), "invalid_envelope"),
        (signed_message(nonce="n" * 65), "invalid_envelope"),
        (signed_message(expires="tomorrow"), "invalid_envelope"),
        (signed_message(life=0), "token_expired"),
        (signed_message(life=MAX_VALIDITY_MS), ""),
        (signed_message(life=MAX_VALIDITY_MS + 1), "invalid_envelope"),
        (signed_message(envelope=[1]), "invalid_envelope"),
        (signed_message(envelope="AOF/1 {}"), "invalid_envelope"),
        ({**signed_message(), "x": 1}, "none"),
        ({"envelope": ENVELOPE}, "none"),
        (ENVELOPE, "none"),
        ([signed_message()], "none"),
    ],
    ids=range(19),
)
def test_malformed_or_unauthorized_message_is_refused(
    verifier: Verifier, message: Any, code: str
) -> None:
    assert verifier.code(message) == code


def test_unknown_signature_field_is_refused_with_the_known_ones(verifier: Verifier) -> None:
    refusal = verifier.envelopes.verify(json.dumps(signed_message(extra="x")).encode(), "http")
    assert isinstance(refusal, Refusal)
    known = "agent, nonce, audience, expires, value, key, alg"
    assert refusal.detail == f"signature.extra: there is no such field; known: {known}"


@pytest.mark.parametrize("field", ["agent", "nonce", "audience", "expires", "value"])
def test_no_field_can_be_changed_or_omitted(verifier: Verifier, field: str) -> None:
    message = signed_message()
    signature = message["signature"]
    changed = {"value": signature["value"][:-2] + "AA", "expires": to_rfc3339(START + 61_000)}
    for other in (changed.get(field, "bob"), "", signature[field] + "="):
        assert (
            verifier.code({**message, "signature": {**signature, field: other}})
            == "unauthenticated"
        )
    without_field = {name: text for name, text in signature.items() if name != field}
    assert verifier.code({**message, "signature": without_field}) == "invalid_envelope"
    assert verifier.code({**message, "envelope": {**ENVELOPE, "n": 2}}) == "unauthenticated"
    assert verifier.code(message) == ""


def test_removed_key_is_no_longer_trusted(verifier: Verifier) -> None:
    verifier.lab.do(HUMAN, SetAgentKey("alice", ""))
    assert verifier.code(signed_message()) == "unauthenticated"


@proves("IDENTITY-ROTATION")
def test_replaced_key_is_no_longer_trusted(verifier: Verifier) -> None:
    verifier.lab.do(HUMAN, SetAgentKey("alice", "A" * 43))
    assert verifier.code(signed_message()) == "unauthenticated"


@given(data=st.binary(max_size=60))
def test_arbitrary_bytes_are_not_a_signed_message(data: bytes) -> None:
    lab = Lab()
    assert SignedMessageVerifier(lab.store, lab.clock).verify(data, "http") is None


def test_duplicate_key_or_nan_is_not_a_signed_message(verifier: Verifier) -> None:
    text = json.dumps(signed_message())
    assert verifier.envelopes.verify(text.replace('"n": 1.0', '"n": NaN').encode(), "http") is None
    doubled = text.replace('"n": 1.0', '"n": 1.0, "n": 2')
    assert verifier.envelopes.verify(doubled.encode(), "http") is None


@proves("REDACT-SIGNED")
def test_secret_in_a_signed_message_is_refused_and_may_be_resent_without(
    verifier: Verifier,
) -> None:
    lab = verifier.lab
    verifier.envelopes = SignedMessageVerifier(
        lab.store, lab.clock, lab.hub.redaction.check_document
    )
    envelope = {"notes": "use ghp_" + "a1B2" * 9}
    assert verifier.code(signed_message(envelope=envelope)) == "policy_violation"
    assert verifier.code(signed_message()) == ""


def test_own_signature_is_accepted_under_the_sender_key(verifier: Verifier) -> None:
    fields = {"agent": "alice", "audience": "lab", "expires": to_rfc3339(START + 60_000)}
    first = sign_message(ENVELOPE, {**fields, "nonce": NONCE, "key": "k-1"}, KEY)
    again = sign_message(ENVELOPE, {**fields, "nonce": NONCE[::-1], "key": "k-1"}, KEY)
    for message in (first, again):  # Two signatures of one message have the same idempotency key.
        opened = verifier.envelopes.verify(json.dumps(message).encode(), "http")
        assert isinstance(opened, VerifiedMessage)
        assert (opened.envelope, opened.idempotency_key("its-digest")) == (ENVELOPE, "signed:k-1")
    message = sign_message(ENVELOPE, {**fields, "nonce": NONCE.upper(), "key": "k" * 250}, KEY)
    assert verifier.code(message) == "invalid_envelope"
