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
from dragoman.engine.redaction import Findings
from dragoman.protocols.saop.settings import Choices, Recorded
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


def mask_turn(value: dict[str, Any], choices: Choices) -> tuple[dict[str, Any], Findings]:
    """A turn without secrets, and where it had which."""
    turn, found = _masked(value, "", _OF_TURN, choices)
    metadata, more = _masked(value["metadata"], "metadata", _OF_METADATA, choices)
    return {**turn, "metadata": metadata}, (*found, *more)


def mask_event(
    value: dict[str, Any], speaker: str, choices: Choices, is_recorded: Recorded
) -> tuple[dict[str, Any], Findings, Held | None]:
    """An event without secrets, where it had which, and what is then held back."""
    event, found = _masked(value, "", _OF_EVENT, choices)
    payload: dict[str, Any] = value["payload"]
    if payload["type"] == _THOUGHT:
        chunk, kinds, held = _chunk(value, speaker, choices, is_recorded)
        rest, more = _masked(payload, "payload", _OF_PAYLOAD | {"chunk"}, choices)
        cut = [("payload.chunk", kind) for kind in kinds]
        return {**event, "payload": {**rest, "chunk": chunk}}, (*found, *cut, *more), held
    if payload["type"] == _PULSE:
        line, kinds, held = _line(value, speaker, choices, is_recorded)
        rest, more = _masked(payload, "payload", _OF_PAYLOAD | {"line"}, choices)
        covered = [("payload.line", kind) for kind in kinds]
        told = {"line": line, "masked": True} if covered or more else {}
        return {**event, "payload": {**rest, **told}}, (*found, *covered, *more), held
    plain = {name for name, says in _PLAIN.items() if says(payload.get(name))}
    rest, more = _masked(payload, "payload", _OF_PAYLOAD | plain, choices)
    return {**event, "payload": rest}, (*found, *more), None


def _masked(
    value: dict[str, Any], path: str, kept: frozenset[str], choices: Choices
) -> tuple[dict[str, Any], Findings]:
    """An object without secrets in its fields, other than those that are kept as they are."""
    looked_at: dict[str, Any] = {
        name: part
        for name, part in value.items()
        if name not in kept and isinstance(part, _MAY_HOLD)
    }
    if not looked_at:
        return value, ()
    masked = choices.redactor.tree(looked_at, path)
    return ({**value, **masked.value}, masked.found) if masked.found else (value, ())


def _chunk(
    event: dict[str, Any], speaker: str, choices: Choices, is_recorded: Recorded
) -> tuple[str, list[str], Held | None]:
    """As much of a thought as can be kept now, the kinds of secrets that were in that, and what is
    held back."""
    payload = event["payload"]
    place = speaker, event["session_id"], int(payload["turn_index"]), payload["agent_id"]
    key = "\n".join(map(str, place))
    before = choices.tails.get(key, is_recorded)
    stream = choices.redactor.stream(before)
    text = stream.feed(payload["chunk"])
    held = stream.held
    if payload["is_final"]:
        text, held = text + stream.close(), ""
    kinds = [kind for kind, _ in stream.found]
    return text, kinds, Held(key, held, before) if before or held else None


def _line(
    event: dict[str, Any], speaker: str, choices: Choices, is_recorded: Recorded
) -> tuple[str, tuple[str, ...], Held | None]:
    """A line of a terminal, the kinds of its secrets, and what is known of a key for the next."""
    key = f"{speaker}\n{event['session_id']}"
    before = choices.tails.get(key, is_recorded)
    masked = choices.redactor.line(event["payload"]["line"], int(before or OVER))
    since = "" if masked.since == OVER else str(masked.since)
    return masked.text, masked.kinds, Held(key, since, before) if before or since else None
