"""Nobody speaks for somebody else: every message, every field that names a sender or receiver."""

from typing import Any

import pytest

from dragoman.core.actors import Actor
from tests.protocols.aof.scene import MESSAGES, Scene, request
from tests.requirements import proves

pytestmark = proves("AOF-IDENTITY")

FIELDS = ("fromAgent", "payload.agentId", "payload.fromAgent")
EVE = Actor("agent", "eve", "http")


def spoofed(message: dict[str, Any], field: str, name: str) -> dict[str, Any]:
    """The message with another name in one of its fields."""
    if field == "fromAgent":
        return message | {"fromAgent": name}
    return message | {"payload": message["payload"] | {field.partition(".")[2]: name}}


def prepared(kind: str) -> Scene:
    scene = Scene()
    if kind in ("handoff.accepted", "handoff.rejected"):
        scene.taken(request())
    return scene


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("kind", MESSAGES)
def test_a_field_that_names_somebody_else_is_refused(kind: str, field: str) -> None:
    scene = prepared(kind)
    message = MESSAGES[kind]()
    speaker = Actor("agent", message["fromAgent"], "http")
    before = scene.lab.store.picture_of_tasks()

    turned = scene.turned(spoofed(message, field, "eve"), speaker)

    assert (turned.code, turned.path) == ("identity_mismatch", field)
    assert "eve" in turned.detail
    assert scene.lab.store.picture_of_tasks() == before
    last = scene.lines()[-1]
    assert last["type"] == "protocol.message.rejected"
    assert (last["actor"], last["payload"]["reason"]) == (speaker.name, "identity_mismatch")


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("speaker", [EVE, Actor("human", "eve"), Actor("orchestrator", "eve")])
def test_a_credential_outweighs_all_that_a_message_says(kind: str, speaker: Actor) -> None:
    scene = prepared(kind)
    assert scene.code(MESSAGES[kind](), speaker) == "identity_mismatch"


@pytest.mark.parametrize("kind", MESSAGES)
def test_without_a_credential_the_fields_must_agree(kind: str) -> None:
    scene = prepared(kind)
    assert scene.code(spoofed(MESSAGES[kind](), "payload.agentId", "eve")) == "identity_mismatch"


@pytest.mark.parametrize("kind", MESSAGES)
def test_both_addressees_are_the_same_unless_it_is_the_dispatcher(kind: str) -> None:
    scene = prepared(kind)
    message = spoofed(MESSAGES[kind](), "payload.toAgent", "swe-qa")

    turned = scene.turned(message | {"toAgent": "eve"})
    assert (turned.code, turned.path) == ("identity_mismatch", "payload.toAgent")
    assert scene.code(message | {"toAgent": "dispatcher"}) == ""


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("role", ["observer", "file"])
def test_who_may_only_read_may_not_send(kind: str, role: Any) -> None:
    scene = prepared(kind)
    message = MESSAGES[kind]()
    assert scene.code(message, Actor(role, message["fromAgent"])) == "unauthorized_agent"
