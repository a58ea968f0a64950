"""Secrets leave a message before anybody keeps it; in thoughts, over the borders of chunks too.

Ids and times are left alone (S-SAOP-5); all else is looked through, and what SAOP does not know as
well. Part of a thought is held back where it may be the beginning of a secret: it is kept with the
chunk that follows, or with the final one. A line of a terminal is kept at once: held back is only
that a private key has begun, so that the lines that go on with it are masked. What is held back
changes only with an event that is on record: one that is refused, or was recorded before, leaves it
alone.
"""

import re
from collections.abc import Callable
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.events import Status
from dragoman.protocols.saop.settings import Choices, Masked, Recorded
from dragoman.protocols.saop.shapes import SandboxPulse, ThoughtStream
from dragoman.text.redact import OVER

_OF_TURN: Final = frozenset({"turn_index", "agent_id", "role", "metadata"})
_OF_METADATA: Final = frozenset(
    {"version", "task_id", "timestamp", "confidence", "estimated_complexity"}
)
_OF_EVENT: Final = frozenset({"event_id", "session_id", "payload"})
_OF_PAYLOAD: Final = frozenset({"type", "agent_id", "task_id", "timestamp"})
STATUSES: Final = frozenset(get_args(Status))
is_commit: Final = re.compile(r"[0-9a-fA-F]{7,64}").fullmatch
_PLAIN: Final[dict[str, Callable[[Any], object]]] = {
    "git_hash": lambda value: isinstance(value, str) and is_commit(value),
    "from_state": lambda value: value in STATUSES,
    "to_state": lambda value: value in STATUSES,
}
"""Field of a payload -> whether it says what it is meant to say; else it is looked through."""
_MAY_HOLD: Final = (str, dict, list)
HELD_BACK: Final = (ThoughtStream, SandboxPulse)
"""Payloads of which something may be held back."""
_THOUGHT: Final = ThoughtStream.__struct_config__.tag
_PULSE: Final = SandboxPulse.__struct_config__.tag


class Held(Struct, frozen=True):
    """What is held back once an event is on record, what is until then, and where."""

    key: str
    text: str
    before: str


def place_of(key: str) -> tuple[str, int, str] | None:
    """The session, turn and part of the thought that is held back under a key; None: of none."""
    _, session, *thought = key.split("\n")
    if not thought:
        return None
    turn, part = thought
    return session, int(turn), part


def mask_turn(value: dict[str, Any], choices: Choices) -> Masked:
    """A turn without secrets."""
    turn, masked = _masked(value, _OF_TURN, choices)
    metadata, more = _masked(value["metadata"], _OF_METADATA, choices)
    return {**turn, "metadata": metadata}, masked or more


def mask_event(
    value: dict[str, Any], speaker: str, choices: Choices, is_recorded: Recorded
) -> tuple[dict[str, Any], bool, Held | None]:
    """An event without secrets, whether it had any, and what is then held back."""
    event, masked = _masked(value, _OF_EVENT, choices)
    payload: dict[str, Any] = value["payload"]
    if payload["type"] == _THOUGHT:
        chunk, cut, held = _chunk(value, speaker, choices, is_recorded)
        rest, more = _masked(payload, _OF_PAYLOAD | {"chunk"}, choices)
        return {**event, "payload": {**rest, "chunk": chunk}}, masked or cut or more, held
    if payload["type"] == _PULSE:
        line, covered, held = _line(value, speaker, choices, is_recorded)
        rest, more = _masked(payload, _OF_PAYLOAD | {"line"}, choices)
        told = {"line": line, "masked": True} if covered or more else {}
        return {**event, "payload": {**rest, **told}}, masked or covered or more, held
    plain = {name for name, says in _PLAIN.items() if says(payload.get(name))}
    rest, more = _masked(payload, _OF_PAYLOAD | plain, choices)
    return {**event, "payload": rest}, masked or more, None


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


def _chunk(
    event: dict[str, Any], speaker: str, choices: Choices, is_recorded: Recorded
) -> tuple[str, bool, Held | None]:
    """As much of a thought as can be kept now, whether it had a secret, and what is held back."""
    payload = event["payload"]
    place = speaker, event["session_id"], int(payload["turn_index"]), payload["agent_id"]
    key = "\n".join(map(str, place))
    before = choices.tails.get(key, is_recorded)
    stream = choices.redactor.stream(before)
    text = stream.feed(payload["chunk"])
    held = stream.held
    if payload["is_final"]:
        text, held = text + stream.close(), ""
    return text, bool(stream.found), Held(key, held, before) if before or held else None


def _line(
    event: dict[str, Any], speaker: str, choices: Choices, is_recorded: Recorded
) -> tuple[str, bool, Held | None]:
    """A line of a terminal, whether it had a secret, and what is known of a key for the next."""
    key = f"{speaker}\n{event['session_id']}"
    before = choices.tails.get(key, is_recorded)
    masked = choices.redactor.line(event["payload"]["line"], int(before or OVER))
    since = "" if masked.since == OVER else str(masked.since)
    return masked.text, masked.masked, Held(key, since, before) if before or since else None
