"""Secrets leave a message before anybody keeps it; in thoughts, over the borders of chunks too.

Ids and times are left alone (S-SAOP-5); all else is looked through, and what SAOP does not know as
well. Part of a thought is held back where it may be the beginning of a secret: it is kept with the
chunk that follows, or with the final one.
"""

from typing import Any, Final

from dragoman.protocols.saop.settings import Choices, Masked, Tail
from dragoman.protocols.saop.shapes import SandboxPulse, ThoughtStream

_OF_TURN: Final = frozenset({"turn_index", "agent_id", "role", "metadata"})
_OF_METADATA: Final = frozenset(
    {"version", "task_id", "timestamp", "confidence", "estimated_complexity"}
)
_OF_EVENT: Final = frozenset({"event_id", "session_id", "payload"})
_OF_PAYLOAD: Final = frozenset(
    {"type", "agent_id", "call_id", "task_id", "timestamp", "git_hash", "from_state", "to_state"}
)
_MAY_HOLD: Final = (str, dict, list)
_THOUGHT: Final = ThoughtStream.__struct_config__.tag
_PULSE: Final = SandboxPulse.__struct_config__.tag


def mask_turn(value: dict[str, Any], choices: Choices) -> Masked:
    """A turn without secrets."""
    turn, masked = _masked(value, _OF_TURN, choices)
    metadata, more = _masked(value["metadata"], _OF_METADATA, choices)
    return {**turn, "metadata": metadata}, masked or more


def mask_event(value: dict[str, Any], choices: Choices) -> Masked:
    """An event without secrets."""
    event, masked = _masked(value, _OF_EVENT, choices)
    payload: dict[str, Any] = value["payload"]
    if payload["type"] == _THOUGHT:
        chunk, cut = _chunk(value, payload, choices)
        rest, more = _masked(payload, _OF_PAYLOAD | {"chunk"}, choices)
        return {**event, "payload": {**rest, "chunk": chunk}}, masked or cut or more
    rest, more = _masked(payload, _OF_PAYLOAD, choices)
    if more and payload["type"] == _PULSE:
        rest = {**rest, "masked": True}
    return {**event, "payload": rest}, masked or more


def _masked(value: dict[str, Any], kept: frozenset[str], choices: Choices) -> Masked:
    """An object without secrets in its fields, other than those that are kept as they are."""
    looked_at: dict[str, Any] = {
        name: part
        for name, part in value.items()
        if name not in kept and isinstance(part, _MAY_HOLD)
    }
    if not looked_at:
        return value, False
    masked = choices.redactor.tree(looked_at)
    return ({**value, **masked.value}, True) if masked.found else (value, False)


def _chunk(event: dict[str, Any], payload: dict[str, Any], choices: Choices) -> tuple[str, bool]:
    """As much of a thought as can be kept now, and whether it had a secret."""
    key = f"{event['session_id']}\n{payload['turn_index']}\n{payload['agent_id']}"
    id = event["event_id"].lower()
    last = choices.tails.get(key)
    before = ""
    if last is not None:
        before = last.before if last.event_id == id else last.held
    stream = choices.redactor.stream(before)
    text = stream.feed(payload["chunk"])
    held = stream.held
    if payload["is_final"]:
        text, held = text + stream.close(), ""
    if before or held or last is not None:
        choices.tails.put(key, Tail(id, before, held))
    return text, bool(stream.found)
