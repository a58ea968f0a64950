"""Secrets leave a message before anybody keeps it; in thoughts, over the borders of chunks too.

Ids and times are left alone (S-SAOP-5); all else is looked through, and what SAOP does not know as
well. Part of a thought is held back where it may be the beginning of a secret: it is kept with the
chunk that follows, or with the final one. A line of a terminal is kept at once: held back is only
that a private key has begun, so that the lines that go on with it are masked.
"""

import re
from collections.abc import Callable
from typing import Any, Final, get_args

from msgspec import Struct

from dragoman.core.events import Status
from dragoman.engine.redaction import Findings
from dragoman.protocols.saop.settings import Choices
from dragoman.protocols.saop.shapes import Event, SandboxPulse, ThoughtStream
from dragoman.text.redact import OVER

_OF_TURN: Final = frozenset({"turn_index", "agent_id", "role", "metadata"})
_OF_METADATA: Final = frozenset(
    {"version", "task_id", "timestamp", "confidence", "estimated_complexity"}
)
_OF_EVENT: Final = frozenset({"event_id", "session_id", "payload"})
_OF_PAYLOAD: Final = frozenset({"type", "agent_id", "task_id", "timestamp"})
_OF_CHUNK: Final = _OF_PAYLOAD | {"chunk"}
_OF_LINE: Final = _OF_PAYLOAD | {"line"}
STATUSES: Final = frozenset(get_args(Status))
is_commit: Final = re.compile(r"[0-9a-fA-F]{7,64}").fullmatch
_PLAIN: Final[dict[str, Callable[[Any], object]]] = {
    "git_hash": lambda value: isinstance(value, str) and is_commit(value),
    "from_state": lambda value: value in STATUSES,
    "to_state": lambda value: value in STATUSES,
}
"""Field of a payload -> test of its value; a value that passes is stored unmasked."""
_MAY_HOLD: Final = (str, dict, list)
_THOUGHT: Final = ThoughtStream.__struct_config__.tag
_PULSE: Final = SandboxPulse.__struct_config__.tag


class MaskedEvent(Struct, frozen=True):
    """A masked event, its findings, and the text that it carries over."""

    envelope: dict[str, Any]
    found: Findings
    held: str = ""


def key_of(event: Event, speaker: str) -> str:
    """Key of the chunked text that an event is part of; empty for any other event."""
    payload = event.payload
    if isinstance(payload, ThoughtStream):
        place = speaker, event.session_id, int(payload.turn_index), payload.agent_id
        return "\n".join(map(str, place))
    return f"{speaker}\n{event.session_id}" if isinstance(payload, SandboxPulse) else ""


def place_of(key: str) -> tuple[str, int, str] | None:
    """Parse a key to the session, turn index and role of its thought; None: no thought's key."""
    _, session, *thought = key.split("\n")
    if not thought:
        return None
    turn, part = thought
    return session, int(turn), part


def mask_turn(value: dict[str, Any], choices: Choices) -> tuple[dict[str, Any], Findings]:
    """Mask the secrets of a turn, and return the findings."""
    turn, found = _masked(value, "", _OF_TURN, choices)
    metadata, more = _masked(value["metadata"], "metadata", _OF_METADATA, choices)
    return {**turn, "metadata": metadata}, (*found, *more)


def mask_event(value: dict[str, Any], before: str, choices: Choices) -> MaskedEvent:
    """Mask an event that continues the carried-over text."""
    event, found = _masked(value, "", _OF_EVENT, choices)
    payload: dict[str, Any] = value["payload"]
    if payload["type"] == _THOUGHT:
        chunk, kinds, held = _chunk(payload, before, choices)
        rest, more = _masked(payload, "payload", _OF_CHUNK, choices)
        cut = [("payload.chunk", kind) for kind in kinds]
        told = {**event, "payload": {**rest, "chunk": chunk}}
        return MaskedEvent(told, (*found, *cut, *more), held)
    if payload["type"] == _PULSE:
        masked = choices.redactor.line(payload["line"], int(before or OVER))
        rest, more = _masked(payload, "payload", _OF_LINE, choices)
        covered = [("payload.line", kind) for kind in masked.kinds]
        told = {"line": masked.text, "masked": True} if covered or more else {}
        since = "" if masked.since == OVER else str(masked.since)
        told = {**event, "payload": {**rest, **told}}
        return MaskedEvent(told, (*found, *covered, *more), since)
    plain = {name for name, says in _PLAIN.items() if says(payload.get(name))}
    rest, more = _masked(payload, "payload", _OF_PAYLOAD | plain, choices)
    return MaskedEvent({**event, "payload": rest}, (*found, *more))


def _masked(
    value: dict[str, Any], path: str, kept: frozenset[str], choices: Choices
) -> tuple[dict[str, Any], Findings]:
    """Mask the fields of an object, except those that are left alone."""
    looked_at: dict[str, Any] = {
        name: part
        for name, part in value.items()
        if name not in kept and isinstance(part, _MAY_HOLD)
    }
    if not looked_at:
        return value, ()
    masked = choices.redactor.tree(looked_at, path)
    return ({**value, **masked.value}, masked.found) if masked.found else (value, ())


def _chunk(payload: dict[str, Any], before: str, choices: Choices) -> tuple[str, list[str], str]:
    """Mask a chunk: the text to store now, the kinds of secrets in it, and the new carry-over."""
    stream = choices.redactor.stream(before)
    text = stream.feed(payload["chunk"])
    if payload["is_final"]:
        text += stream.close()
    return text, [kind for kind, _ in stream.found], stream.held
