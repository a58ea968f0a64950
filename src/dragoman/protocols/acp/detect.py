"""Which messages are ACP: an action on a handoff, or a typed message with a payload."""

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Raw

from dragoman.core.ids import check_agent
from dragoman.engine.faults import Fault
from dragoman.engine.incoming import RawMessage, candidate_messages
from dragoman.engine.operation import Operation, ParsedMessage
from dragoman.protocols.acp.actions import ACTION_SHAPES
from dragoman.protocols.acp.messages import MESSAGE_TYPES
from dragoman.text.strict_json import get_field

HANDOFF: Final = "acp_handoff"
SEND: Final = "acp_send"


def parse_message(raw: RawMessage, operations: Mapping[str, Operation]) -> ParsedMessage | None:
    """Parse the ACP message in what came in, bare or wrapped; None: it is no ACP message."""
    value = None if raw.is_too_large else raw.value
    for inner in candidate_messages(value):
        name = detect_operation(inner)
        if name:
            return _parsed_message(operations[name], cast(Mapping[str, Any], inner), Raw(raw.text))
    return None


def detect_operation(value: Any) -> str:
    """Operation that a JSON value is meant for; empty: none."""
    if _text_field(value, "action") in ACTION_SHAPES:
        return HANDOFF
    is_addressed = isinstance(get_field(value, "payload"), dict) and "to" in value
    return SEND if is_addressed and _text_field(value, "type") in MESSAGE_TYPES else ""


def _parsed_message(
    operation: Operation, value: Mapping[str, Any], original_text: Raw
) -> ParsedMessage:
    sender = _text_field(value, "from_agent" if operation.name == HANDOFF else "from")
    read = operation.validate(value)
    is_faulty = isinstance(read, Fault)
    return ParsedMessage(
        kind=operation.name,
        original_text=original_text,
        sender="" if check_agent(sender) else sender,
        ordering_key=_text_field(value, "handoff_id") or _text_field(value.get("task"), "task_id"),
        operation=None if is_faulty else operation,
        message=None if is_faulty else read,
        fault=read if is_faulty else None,
    )


def _text_field(value: Any, key: str) -> str:
    text = get_field(value, key)
    return text if isinstance(text, str) else ""
