"""Which messages are ACP: an action on a handoff, or a typed message with a payload."""

from collections.abc import Mapping
from typing import Any, Final, cast

from msgspec import Raw

from dragoman.core.ids import check_agent
from dragoman.engine.faults import Fault
from dragoman.engine.incoming import Incoming, layers
from dragoman.engine.operation import Heard, Operation
from dragoman.protocols.acp.actions import SHAPES
from dragoman.protocols.acp.messages import TYPES
from dragoman.text.strict_json import field_of

HANDOFF: Final = "acp_handoff"
SEND: Final = "acp_send"


def hear(incoming: Incoming, operations: Mapping[str, Operation]) -> Heard | None:
    """Parse the ACP message in what came in, bare or wrapped; None: it is no ACP message."""
    value = None if incoming.is_too_large else incoming.value
    for inner in layers(value):
        name = whose(inner)
        if name:
            return _heard(operations[name], cast(Mapping[str, Any], inner), Raw(incoming.text))
    return None


def whose(value: Any) -> str:
    """Operation that a JSON value is meant for; empty: none."""
    if _word(value, "action") in SHAPES:
        return HANDOFF
    is_addressed = isinstance(field_of(value, "payload"), dict) and "to" in value
    return SEND if is_addressed and _word(value, "type") in TYPES else ""


def _heard(operation: Operation, value: Mapping[str, Any], said: Raw) -> Heard:
    sender = _word(value, "from_agent" if operation.name == HANDOFF else "from")
    read = operation.read(value)
    is_faulty = isinstance(read, Fault)
    return Heard(
        kind=operation.name,
        said=said,
        sender="" if check_agent(sender) else sender,
        line_up=_word(value, "handoff_id") or _word(value.get("task"), "task_id"),
        operation=None if is_faulty else operation,
        message=None if is_faulty else read,
        fault=read if is_faulty else None,
    )


def _word(value: Any, key: str) -> str:
    word = field_of(value, key)
    return word if isinstance(word, str) else ""
