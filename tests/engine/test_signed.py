"""Signed envelopes: by the registered key, for this hub, until they end, and once."""

import json
import re
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from docs.generate import DOCS
from dragoman.core.actors import Actor
from dragoman.core.commands import KeyAgent, RegisterAgent
from dragoman.core.errors import Refusal
from dragoman.core.moments import to_rfc3339
from dragoman.engine.signed import LONGEST_MS, Envelopes, Opened, sign, signed_bytes
from dragoman.text.base64url import to_base64url
from tests.engine.lab import HUMAN, START, Lab
from tests.requirements import proves

pytestmark = proves("IDENTITY-SIGNED")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
NONCE = "0123456789abcdef"
ENVELOPE: dict[str, Any] = {"protocol": "aof", "n": 1.0, "text": "naïve \U0001f409", "z": {"a": []}}


class Desk(Struct):
    """A hub that opens letters."""

    lab: Lab
    envelopes: Envelopes

    def code(self, letter: object) -> str:
        """The code of the refusal; "" when the letter is opened, "none" when it is no letter."""
        found = self.envelopes.open(json.dumps(letter).encode(), "http")
        if found is None:
            return "none"
        return found.code if isinstance(found, Refusal) else ""


@pytest.fixture
def desk() -> Desk:
    """Give a hub that knows alice's key."""
    lab = Lab()
    key = to_base64url(KEY.public_key().public_bytes_raw())
    lab.do(HUMAN, RegisterAgent("alice", "coordinator"), KeyAgent("alice", key))
    lab.do(HUMAN, RegisterAgent("bob"))
    return Desk(lab, Envelopes(lab.store, lab.clock))


def signed(
    key: Ed25519PrivateKey = KEY, *, life: int = 60_000, envelope: Any = ENVELOPE, **said: str
) -> dict[str, Any]:
    """A letter as an agent writes it."""
    seal = {
        "agent": "alice",
        "nonce": NONCE,
        "audience": "lab",
        "expires": to_rfc3339(START + life),
        "alg": "ed25519",
        **said,
    }
    value = to_base64url(key.sign(signed_bytes(envelope, seal)))
    return {"envelope": envelope, "signature": {**seal, "value": value}}


def test_a_signed_message_speaks_for_its_agent_in_its_role(desk: Desk) -> None:
    opened = desk.envelopes.open(json.dumps(signed()).encode(), "http")
    assert isinstance(opened, Opened)
    assert opened.principal.actor == Actor("coordinator", "alice", "http")
    assert opened.envelope == ENVELOPE
    assert opened.counts_by("") == f"signed:{NONCE}"
    assert opened.counts_by("its-digest") == "signed:its-digest"


def test_how_the_json_is_written_does_not_matter(desk: Desk) -> None:
    letter = signed()
    turned = {name: dict(reversed(letter[name].items())) for name in ("signature", "envelope")}
    spaced = json.dumps(turned, indent=3, ensure_ascii=False).replace("1.0", "1e0")
    assert isinstance(desk.envelopes.open(spaced.encode(), "http"), Opened)


def test_the_worked_example_of_the_docs_makes_a_letter_that_is_opened(desk: Desk) -> None:
    page = (DOCS / "identity.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    namespace: dict[str, Any] = {}
    exec(compile(example, "identity.md", "exec"), namespace)  # noqa: S102  our own page
    said = {name: text for name, text in signed()["signature"].items() if name not in _MADE_BY_IT}
    letter = namespace["sign"](ENVELOPE, said, KEY)
    assert isinstance(desk.envelopes.open(letter, "http"), Opened)


_MADE_BY_IT = ("alg", "value")


def test_what_is_signed_is_a_domain_tag_and_canonical_json() -> None:
    assert (
        signed_bytes({"b": 1.0, "a": "é"}, {"nonce": "n", "value": "v", "alg": "x"})
        == (
            'dragoman envelope v1\n{"envelope":{"a":"é","b":1},"signature":{"alg":"x","nonce":"n"}}'
        ).encode()
    )


def test_a_replay_is_refused_until_and_after_it_ends(desk: Desk) -> None:
    letter = signed()
    assert desk.code(letter) == ""
    assert desk.code(letter) == "replayed"
    assert desk.code(signed(nonce="another-nonce-of-alice")) == ""
    desk.lab.clock.advance(60_000)
    assert desk.code(letter) == "token_expired"


def test_a_clock_that_is_set_back_does_not_open_it_again(desk: Desk) -> None:
    letter = signed()
    desk.lab.clock.advance(50_000)
    assert desk.code(letter) == ""
    desk.lab.clock.advance(15_000)
    assert desk.code(signed(nonce="b" * 16, life=90_000)) == ""
    desk.lab.clock.advance(-60_000)
    assert desk.code(letter) == "replayed"


def test_nonces_are_forgotten_when_they_have_ended(desk: Desk) -> None:
    desk.code(signed())
    desk.lab.clock.advance(2 * LONGEST_MS)
    assert desk.code(signed(nonce="c" * 16, life=2 * LONGEST_MS + 1_000)) == ""
    assert f"{NONCE}" not in repr(vars(desk.envelopes))


def test_a_day_forward_and_back_keeps_no_nonce_for_a_day(desk: Desk) -> None:
    day = 86_400_000
    desk.lab.clock.advance(day)
    assert desk.code(signed(life=day + 1_000)) == ""
    desk.lab.clock.advance(-day)
    assert desk.code(signed(nonce="e" * 16)) == ""
    assert f"{NONCE}" not in repr(vars(desk.envelopes))
    assert desk.code(signed(nonce="e" * 16)) == "replayed"


def test_too_many_at_once_are_sent_away(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.engine.signed.MOST_NONCES", 1)
    assert desk.code(signed()) == ""
    assert desk.code(signed(nonce="d" * 16)) == "overloaded"


@pytest.mark.parametrize(
    ("letter", "code"),
    [
        (signed(OTHER), "unauthenticated"),
        (signed(agent="bob"), "unauthenticated"),
        (signed(agent="malory"), "unauthenticated"),
        (signed(agent="../alice"), "unauthenticated"),
        (signed(audience="another hub"), "unauthenticated"),
        (signed(alg="none"), "invalid_envelope"),
        (signed(more="x"), "invalid_envelope"),
        (signed(nonce="short"), "invalid_envelope"),
        (signed(nonce="n" * 65), "invalid_envelope"),
        (signed(expires="tomorrow"), "invalid_envelope"),
        (signed(life=0), "token_expired"),
        (signed(life=LONGEST_MS), ""),
        (signed(life=LONGEST_MS + 1), "invalid_envelope"),
        (signed(envelope=[1]), "invalid_envelope"),
        (signed(envelope="AOF/1 {}"), "invalid_envelope"),
        ({**signed(), "x": 1}, "none"),
        ({"envelope": ENVELOPE}, "none"),
        (ENVELOPE, "none"),
        ([signed()], "none"),
    ],
    ids=range(19),
)
def test_anything_else_is_refused_or_is_no_letter(desk: Desk, letter: Any, code: str) -> None:
    assert desk.code(letter) == code


def test_who_says_too_much_is_told_all_that_there_is_to_say(desk: Desk) -> None:
    told = desk.envelopes.open(json.dumps(signed(extra="x")).encode(), "http")
    assert isinstance(told, Refusal)
    known = "agent, nonce, audience, expires, value, key, alg"
    assert told.detail == f"signature.extra: there is no such field; known: {known}"


@pytest.mark.parametrize("field", ["agent", "nonce", "audience", "expires", "value"])
def test_no_part_can_be_changed_or_left_out(desk: Desk, field: str) -> None:
    letter = signed()
    seal = letter["signature"]
    changed = {"value": seal["value"][:-2] + "AA", "expires": to_rfc3339(START + 61_000)}
    for other in (changed.get(field, "bob"), "", seal[field] + "="):
        assert desk.code({**letter, "signature": {**seal, field: other}}) == "unauthenticated"
    less = {name: text for name, text in seal.items() if name != field}
    assert desk.code({**letter, "signature": less}) == "invalid_envelope"
    assert desk.code({**letter, "envelope": {**ENVELOPE, "n": 2}}) == "unauthenticated"
    assert desk.code(letter) == ""


def test_an_agent_without_its_key_is_not_believed_any_more(desk: Desk) -> None:
    desk.lab.do(HUMAN, KeyAgent("alice", ""))
    assert desk.code(signed()) == "unauthenticated"


@proves("IDENTITY-ROTATION")
def test_what_the_old_key_has_signed_is_believed_while_it_overlaps(desk: Desk) -> None:
    desk.lab.do(HUMAN, KeyAgent("alice", "A" * 43, overlap_ms=30_000))
    assert desk.code(signed()) == ""
    desk.lab.clock.advance(30_000)
    assert desk.code(signed(nonce="fedcba9876543210")) == "unauthenticated"


@given(said=st.binary(max_size=60))
def test_no_bytes_make_it_fail(said: bytes) -> None:
    lab = Lab()
    assert Envelopes(lab.store, lab.clock).open(said, "http") is None


def test_a_duplicate_key_or_a_number_that_is_none_is_no_letter(desk: Desk) -> None:
    text = json.dumps(signed())
    assert desk.envelopes.open(text.replace('"n": 1.0', '"n": NaN').encode(), "http") is None
    doubled = text.replace('"n": 1.0', '"n": 1.0, "n": 2')
    assert desk.envelopes.open(doubled.encode(), "http") is None


@proves("REDACT-SIGNED")
def test_a_signed_message_with_a_secret_is_refused_and_may_be_sent_again_without(
    desk: Desk,
) -> None:
    lab = desk.lab
    desk.envelopes = Envelopes(lab.store, lab.clock, lab.hub.redaction.refusal)
    envelope = {"notes": "use ghp_" + "a1B2" * 9}
    assert desk.code(signed(envelope=envelope)) == "policy_violation"
    assert desk.code(signed()) == ""


def test_what_is_signed_here_is_opened_here_under_the_sender_s_own_key(desk: Desk) -> None:
    said = {"agent": "alice", "audience": "lab", "expires": to_rfc3339(START + 60_000)}
    first = sign(ENVELOPE, {**said, "nonce": NONCE, "key": "k-1"}, KEY)
    again = sign(ENVELOPE, {**said, "nonce": NONCE[::-1], "key": "k-1"}, KEY)
    for letter in (first, again):  # signed anew, and the same to whoever carries it out
        opened = desk.envelopes.open(json.dumps(letter).encode(), "http")
        assert isinstance(opened, Opened)
        assert (opened.envelope, opened.counts_by("its-digest")) == (ENVELOPE, "signed:k-1")
    letter = sign(ENVELOPE, {**said, "nonce": NONCE.upper(), "key": "k" * 250}, KEY)
    assert desk.code(letter) == "invalid_envelope"
