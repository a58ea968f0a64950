"""The ACP dialect: complete tables, published shapes, recognition of messages."""

from typing import Any

import msgspec
import pytest

from dragoman.core.handoff.state import HANDOFF_FOLDS
from dragoman.core.task_state import TaskHandedOver
from dragoman.engine.request import Accepted, Rejected
from dragoman.protocols.acp import dialect
from dragoman.protocols.acp.wire import ACTION_NAMES, ACTION_SHAPES, HandoffCall
from tests.protocols.acp.hub import ALICE, BOB, AcpHub, offer
from tests.requirements import proves

pytestmark = proves("DIALECT-COMPLETE", "ACP-DIALECT")

ACP = dialect()
MESSAGE = {"to": ["bob"], "type": "status.update", "payload": {"a": 1}, "from": "alice"}


def test_every_handoff_event_is_rendered() -> None:
    assert {*HANDOFF_FOLDS, TaskHandedOver} < ACP.events


def test_operation_names_are_those_of_the_seed() -> None:
    names = [operation.name for operation in ACP.operations]
    assert names[:4] == ["acp_handoff", "acp_send", "acp_inbox", "acp_query"]
    assert {"workq.create", "workq.claim", "workq.release", "workq.get"} < set(names)


def test_published_shape_has_every_argument_of_every_action() -> None:
    assert set(ACTION_SHAPES) == set(ACTION_NAMES)
    known = {field.name for field in msgspec.structs.fields(HandoffCall)}
    for action, shape in ACTION_SHAPES.items():
        assert {field.name for field in msgspec.structs.fields(shape)} <= known, action


MESSAGES: dict[str, tuple[Any, str]] = {
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


@pytest.mark.parametrize("which", MESSAGES)
def test_messages_are_recognized_by_operation(hub: AcpHub, which: str) -> None:
    message, operation = MESSAGES[which]
    routed = hub.router.parse(msgspec.json.encode(message))
    assert (routed.parsed.kind if routed else "") == operation


def test_sender_and_ordering_key_come_from_the_message(hub: AcpHub) -> None:
    answer = hub.router.send(offer(from_agent="alice"), via="inbox")
    assert isinstance(answer, Accepted)
    assert (answer.actor, answer.reply["status"]) == ("alice", "proposed")
    routed = hub.router.parse(offer())
    assert routed is not None
    assert (routed.ordering_key, routed.parsed.sender) == ("t-1", "")
    accept = hub.router.parse({"action": "accept", "handoff_id": "h"})
    assert accept is not None
    assert accept.ordering_key == "h"
    posted = hub.router.send(MESSAGE, speaker=ALICE)
    assert isinstance(posted, Accepted)
    nameless = hub.router.parse({**MESSAGE, "from": "a b"})
    assert nameless is not None
    assert nameless.parsed.sender == ""


def test_invalid_message_is_refused_in_the_form_of_the_dialect(hub: AcpHub) -> None:
    answer = hub.router.send({"action": "accept"}, speaker=BOB)
    assert isinstance(answer, Rejected)
    assert answer.reply == {
        "success": False,
        "error": {"code": "schema_invalid", "detail": answer.detail},
    }
    assert hub.lab.refused(BOB) == ["schema_invalid"]


def test_oversized_message_is_not_recognized(hub: AcpHub) -> None:
    assert hub.router.parse(b'{"action":"query","status":"' + b"x" * 300_000 + b'"}') is None


def test_query_in_a_message_records_nothing(hub: AcpHub) -> None:
    answer = hub.router.send({"action": "query"}, speaker=BOB)
    assert isinstance(answer, Accepted)
    assert answer.reply == {"success": True, "handoffs": [], "cursor": None}
    assert hub.lab.store.head() == 0
