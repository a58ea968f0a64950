"""Signed messages: what the SDK signs is what the hub takes, once, whatever is lost on the way."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from dragoman.client import NotSent, Refused, Sent, Signer, connect, connect_sync
from dragoman.client.signing import find_signer
from dragoman.core.commands import DescribeAgent, KeyAgent
from dragoman.core.errors import Refusal, SettingsError
from dragoman.engine.reads.intents import find_intent
from dragoman.engine.signed import Envelopes, Opened
from dragoman.text.base64url import to_base64url
from tests.client.stage import Stage, run
from tests.requirements import proves

pytestmark = proves("SDK-SIGNED")

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
RESULT = {"intent_id": "i-1", "agent_id": "ada", "success": True, "output": "fini"}


@pytest.fixture
def sworn(stage: Stage) -> Stage:
    """Give a stage where ada's key is known, and ada can be asked to translate."""
    stage.house.do(KeyAgent("ada", to_base64url(KEY.public_key().public_bytes_raw())))
    stage.house.do(DescribeAgent("ada", ("translate",), trust="T2"))
    return stage


def signer(stage: Stage, key: Ed25519PrivateKey = KEY, audience: str = "stage") -> Signer:
    """What signs for ada, by the hub's own clock."""
    return Signer("ada", key, audience, clock=stage.house.clock)


def test_what_is_signed_is_opened_by_the_hub_s_own_check(sworn: Stage) -> None:
    envelopes = Envelopes(sworn.house.store, sworn.house.clock)
    opened = envelopes.open(signer(sworn).sign(json.dumps(RESULT), "k-1"), "http")
    assert isinstance(opened, Opened)
    assert (opened.principal.actor.name, opened.envelope, opened.counts_by("")) == (
        "ada",
        RESULT,
        "signed:k-1",
    )
    refused = envelopes.open(signer(sworn, OTHER).sign(RESULT), "http")
    assert isinstance(refused, Refusal)
    assert refused.code == "unauthenticated"


def test_a_key_of_the_sender_s_is_covered_by_the_signature(sworn: Stage) -> None:
    letter = json.loads(signer(sworn).sign(RESULT, "k-1"))
    letter["signature"]["key"] = "k-2"
    found = Envelopes(sworn.house.store, sworn.house.clock).open(
        json.dumps(letter).encode(), "http"
    )
    assert isinstance(found, Refusal)
    assert found.code == "unauthenticated"


def test_a_delegated_goal_comes_back_signed_and_counts_once_when_its_answer_is_lost(
    sworn: Stage,
) -> None:
    with connect_sync(sworn.url, sworn.tokens["owner"]) as boss:
        boss.call("ccos.delegate", {"goal": "translate it", "intent_id": "i-1"})

    async def agent() -> tuple[Sent, Sent]:
        hub = connect(sworn.relay.url, sworn.tokens["bob"], signer=signer(sworn))
        async with hub:
            update = {"intent_id": "i-1", "agent_id": "ada", "message": "begun"}
            sworn.relay.swallows.append(b"/v1/signed")
            first = await hub.send(update)
            return first, await hub.send(RESULT)

    update, result = run(agent())
    assert (update.agent, update.repeated) == ("ada", True)  # it was sent twice, signed anew
    assert result.reply["state"] == "Satisfied"
    found = find_intent(sworn.house.store, "i-1")
    assert not isinstance(found, Refusal)
    assert (found.updates, found.state) == (1, "Satisfied")


def test_each_of_many_is_signed_and_what_is_refused_says_why(sworn: Stage) -> None:
    message = {"intent_id": "nobody-asked", "agent_id": "ada", "success": True}
    with connect_sync(sworn.url, sworn.tokens["bob"], signer=signer(sworn)) as hub:
        (answer,) = hub.send_all([message])
    assert isinstance(answer, NotSent)
    assert answer.problem.code == "anomaly"


def test_a_dialect_is_not_dropped_in_silence(sworn: Stage) -> None:
    with connect_sync(sworn.url, sworn.tokens["bob"], signer=signer(sworn)) as hub:
        with pytest.raises(ValueError, match=r"cannot name its dialect \(ccos\)"):
            hub.send(RESULT, dialect="ccos")
        with pytest.raises(ValueError, match="cannot name its dialect"):
            hub.send_all([RESULT], dialect="ccos")


def test_a_key_is_as_long_as_elsewhere_less_what_the_hub_puts_before_it(sworn: Stage) -> None:
    longest = "k" * 249
    with connect_sync(sworn.url, sworn.tokens["owner"]) as boss:
        boss.call("ccos.delegate", {"goal": "translate it", "intent_id": "i-1"})
    with connect_sync(sworn.url, sworn.tokens["bob"], signer=signer(sworn)) as hub:
        assert not hub.send(RESULT, key=longest).repeated
        assert hub.send(RESULT, key=longest).repeated
        (answer,) = hub.send_all([RESULT], key=longest[2:])
        assert isinstance(answer, Sent)
        with pytest.raises(Refused, match="249"):
            hub.send(RESULT, key=longest + "k")


def test_for_another_hub_it_is_no_good(sworn: Stage) -> None:
    lost = signer(sworn, audience="elsewhere")
    with (
        connect_sync(sworn.url, sworn.tokens["bob"], signer=lost) as hub,
        pytest.raises(Refused, match="another hub"),
    ):
        hub.send(RESULT)


@pytest.mark.parametrize("message", ["AOF/1 {}", b"[1]", "[]"])
def test_only_an_object_can_be_signed(message: Any) -> None:
    with pytest.raises(ValueError, match="only a JSON object"):
        Signer("ada", KEY, "stage").sign(message)


def _written(path: Path, form: PrivateFormat, key: Any = KEY) -> str:
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, form, NoEncryption()))
    return str(path)


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.OpenSSH])
def test_the_environment_names_the_key(sworn: Stage, tmp_path: Path, form: PrivateFormat) -> None:
    given = {
        "DRAGOMAN_KEY": _written(tmp_path / "key", form),
        "DRAGOMAN_AGENT": "ada",
        "DRAGOMAN_AUDIENCE": "stage",
    }
    found = find_signer(given)
    assert found is not None
    assert repr(found) == "Signer(ada)"
    # It signs by the clock of the machine, which is not the time on this stage.
    opened = Envelopes(sworn.house.store, sworn.house.clock).open(found.sign(RESULT), "http")
    assert isinstance(opened, Refusal)
    assert "expires" in opened.detail
    assert find_signer({}) is None


def _not_ed25519(path: Path) -> str:
    return _written(path, PrivateFormat.PKCS8, generate_private_key(SECP256R1()))


def _no_key(path: Path) -> str:
    path.touch(mode=0o600)
    path.write_bytes(b"no key")
    return str(path)


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (str, "cannot|is no private key"),
        (_no_key, "is no private key"),
        (_not_ed25519, "is no Ed25519 key"),
    ],
)
def test_a_key_that_cannot_be_used_is_told(
    tmp_path: Path, write: Callable[[Path], str], said: str
) -> None:
    given = {
        "DRAGOMAN_KEY": write(tmp_path / "key"),
        "DRAGOMAN_AGENT": "a",
        "DRAGOMAN_AUDIENCE": "b",
    }
    with pytest.raises(SettingsError, match=said):
        find_signer(given)
    with pytest.raises(SettingsError, match="set DRAGOMAN_AGENT"):
        find_signer({"DRAGOMAN_KEY": "key", "DRAGOMAN_AGENT": "a"})
