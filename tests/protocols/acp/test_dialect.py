"""ACP as doors are handed it: complete tables, shapes that can be published, messages it hears."""

from typing import Any, get_args

import msgspec
import pytest

from dragoman.core.errors import Refusal
from dragoman.core.events import HandoffEvent, HandoffProposed, TaskHandedOver
from dragoman.engine.plan import Taken, Turned
from dragoman.protocols.acp import dialect
from dragoman.protocols.acp.actions import ACTIONS, SHAPES, HandoffCall
from tests.protocols.acp.desk import ALICE, BOB, Desk, offer
from tests.requirements import proves

pytestmark = proves("DIALECT-COMPLETE", "ACP-DIALECT")

ACP = dialect()
MESSAGE = {"to": ["bob"], "type": "status.update", "payload": {"a": 1}, "from": "alice"}


def test_every_event_of_a_handoff_is_told() -> None:
    told = {event for event, render in ACP.render.items() if render is not None}
    assert {*get_args(HandoffEvent), TaskHandedOver} < told
    render = ACP.render[HandoffProposed]
    assert render is not None


def test_the_operations_have_the_names_of_the_seed() -> None:
    names = [operation.name for operation in ACP.operations]
    assert names[:4] == ["acp_handoff", "acp_send", "acp_inbox", "acp_query"]
    assert {"workq.create", "workq.claim", "workq.release", "workq.get"} < set(names)


def test_the_published_shape_has_every_argument_of_every_action() -> None:
    assert set(SHAPES) == set(ACTIONS)
    known = {field.name for field in msgspec.structs.fields(HandoffCall)}
    for action, shape in SHAPES.items():
        assert {field.name for field in msgspec.structs.fields(shape)} <= known, action


HEARD: dict[str, tuple[Any, str]] = {
    "an action": (offer(), "acp_handoff"),
    "an action in an event": ({"event": "x", "payload": offer()}, "acp_handoff"),
    "a message": (MESSAGE, "acp_send"),
    "a message in an event": ({"message": MESSAGE}, "acp_send"),
    "a message without a receiver": ({"type": "status.update", "payload": {}}, ""),
    "a message without a payload": ({"type": "status.update", "to": ["bob"]}, ""),
    "of another kind": ({"type": "task.assign", "to": ["bob"], "payload": {}}, ""),
    "no word": ({"action": 7}, ""),
    "no object": ([offer()], ""),
}


@pytest.mark.parametrize("which", HEARD)
def test_which_messages_are_heard(desk: Desk, which: str) -> None:
    said, operation = HEARD[which]
    spoken = desk.door.hear(msgspec.json.encode(said))
    assert (spoken.heard.kind if spoken else "") == operation


def test_a_message_is_taken_as_from_whom_it_says(desk: Desk) -> None:
    answer = desk.door.send(offer(from_agent="alice"), via="inbox")
    assert isinstance(answer, Taken)
    assert (answer.actor, answer.reply["status"]) == ("alice", "proposed")
    heard = desk.door.hear(offer())
    assert heard is not None
    assert (heard.line_up, heard.heard.sender) == ("t-1", "")
    on = desk.door.hear({"action": "accept", "handoff_id": "h"})
    assert on is not None
    assert on.line_up == "h"
    posted = desk.door.send(MESSAGE, speaker=ALICE)
    assert isinstance(posted, Taken)
    nameless = desk.door.hear({**MESSAGE, "from": "a b"})
    assert nameless is not None
    assert nameless.heard.sender == ""


def test_a_message_with_a_fault_is_refused_in_the_form_of_the_dialect(desk: Desk) -> None:
    answer = desk.door.send({"action": "accept"}, speaker=BOB)
    assert isinstance(answer, Turned)
    assert answer.reply == {
        "success": False,
        "error": {"code": "schema_invalid", "detail": answer.detail},
    }
    assert desk.lab.refused(BOB) == ["schema_invalid"]


def test_too_large_is_nobodys(desk: Desk) -> None:
    assert desk.door.hear(b'{"action":"query","status":"' + b"x" * 300_000 + b'"}') is None


def test_a_question_in_a_message_is_answered_and_nothing_is_recorded(desk: Desk) -> None:
    answer = desk.door.send({"action": "query"}, speaker=BOB)
    assert isinstance(answer, Taken)
    assert answer.reply == {"success": True, "handoffs": [], "cursor": None}
    assert desk.lab.store.head() == 0


@proves("ACP-RESPONSE")
def test_what_a_door_itself_refuses_is_told_in_the_same_form(desk: Desk) -> None:
    (acp,) = desk.door.dialects
    no = desk.door.no_of(acp, Refusal("rate_limited", "wait 1 s"))
    assert no == {"success": False, "error": {"code": "rate_limited", "detail": "wait 1 s"}}
    no = desk.door.no_of(acp, Refusal("invalid_json", "line 1"))
    assert no["error"]["code"] == "schema_invalid"
