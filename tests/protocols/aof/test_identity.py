"""Sender and recipient fields of every message must agree with the caller."""

from typing import Any

import pytest

from dragoman.core.actor import Actor
from tests.protocols.aof.hub import MESSAGES, AofHub, request
from tests.requirements import proves

pytestmark = proves("AOF-IDENTITY")

FIELDS = ("fromAgent", "payload.agentId", "payload.fromAgent")
EVE = Actor("agent", "eve", "http")


def spoof(message: dict[str, Any], field: str, name: str) -> dict[str, Any]:
    """Copy the message with another name in one of its fields."""
    if field == "fromAgent":
        return message | {"fromAgent": name}
    return message | {"payload": message["payload"] | {field.partition(".")[2]: name}}


def prepare_hub(kind: str) -> AofHub:
    hub = AofHub()
    if kind in ("handoff.accepted", "handoff.rejected"):
        hub.accept(request())
    return hub


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", MESSAGES)
def test_field_that_names_another_agent_is_refused(kind: str, field: str) -> None:
    hub = prepare_hub(kind)
    message = MESSAGES[kind]()
    speaker = Actor("agent", message["fromAgent"], "http")
    before = hub.lab.store.picture_of_tasks()

    rejection = hub.reject(spoof(message, field, "eve"), speaker)

    assert (rejection.code, rejection.path) == ("identity_mismatch", field)
    assert "eve" in rejection.detail
    assert hub.lab.store.picture_of_tasks() == before
    last = hub.lines()[-1]
    assert last["type"] == "protocol.message.rejected"
    assert (last["actor"], last["payload"]["reason"]) == (speaker.name, "identity_mismatch")


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("speaker", [EVE, Actor("human", "eve"), Actor("orchestrator", "eve")])
def test_credential_outweighs_the_message(kind: str, speaker: Actor) -> None:
    hub = prepare_hub(kind)
    assert hub.code(MESSAGES[kind](), speaker) == "identity_mismatch"


@pytest.mark.parametrize("kind", MESSAGES)
def test_sender_fields_must_agree_without_a_credential(kind: str) -> None:
    hub = prepare_hub(kind)
    assert hub.code(spoof(MESSAGES[kind](), "payload.agentId", "eve")) == "identity_mismatch"


@pytest.mark.parametrize("kind", MESSAGES)
def test_both_recipients_must_agree_except_for_the_dispatcher(kind: str) -> None:
    hub = prepare_hub(kind)
    message = spoof(MESSAGES[kind](), "payload.toAgent", "swe-qa")

    rejection = hub.reject(message | {"toAgent": "eve"})
    assert (rejection.code, rejection.path) == ("identity_mismatch", "payload.toAgent")
    assert hub.code(message | {"toAgent": "dispatcher"}) == ""


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("role", ["observer", "file"])
def test_read_only_roles_cannot_send(kind: str, role: Any) -> None:
    hub = prepare_hub(kind)
    message = MESSAGES[kind]()
    assert hub.code(message, Actor(role, message["fromAgent"])) == "unauthorized_agent"
