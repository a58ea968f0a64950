"""Notices as SAOP events, and turns and events as notices (S-NOTICE).

A turn has a confidence, for which there is no neutral value: what is no turn travels as an event
NOTICE.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import msgspec

from dragoman.core.notice import Notice, NoticeReader, Translation, present, read_notice
from dragoman.protocols.saop.translate import SentEvent, SentTurn
from dragoman.protocols.saop.wire import NoticePayload, TaskTransition
from dragoman.text.keyed_digest import uuid8

# --- messages as notices ----------------------------------------------------------------------


def to_notice(message: SentTurn | SentEvent) -> Notice:
    """Read a turn or an event as a notice."""
    if isinstance(message, SentTurn):
        return _read_turn(message)
    payload = message.event.payload
    head = {"session": message.event.session_id}
    if isinstance(payload, NoticePayload):
        own = {
            "task": payload.task_id,
            "sender": payload.from_agent,
            "recipient": payload.to_agent,
            "text": payload.text,
            "at": payload.timestamp,
        }
        return read_notice(payload.kind, payload.details, **head, **own)
    if isinstance(payload, TaskTransition):
        kind = _KINDS_BY_STATE.get(payload.to_state, "progress")
        return read_notice(
            kind,
            {},
            **head,
            task=payload.task_id,
            at=payload.timestamp,
            status=payload.to_state,
            commit=payload.git_hash or "",
            details={"from_state": payload.from_state},
        )
    return read_notice("progress", {}, **head, **_spoken(payload))


_KINDS_BY_STATE: Final[Mapping[str, str]] = {
    "in-progress": "accepted",
    "review": "result",
    "done": "result",
    "blocked": "failed",
    "deadletter": "failed",
    "cancelled": "withdrawn",
}
"""State that a task is said to be in -> what that says; others say its progress."""


def _read_turn(message: SentTurn) -> Notice:
    turn = message.turn
    return read_notice(
        "progress",
        {},
        task=turn.metadata.task_id,
        at=turn.metadata.timestamp,
        text=turn.content.thought,
        details={
            "turn_index": turn.turn_index,
            "role": turn.role,
            "action": turn.content.action,
            "observation": turn.content.observation,
            "confidence": turn.metadata.confidence,
            "estimated_complexity": turn.metadata.estimated_complexity,
        },
    )


def _spoken(payload: Any) -> dict[str, Any]:
    """Words and details of a live event."""
    body: dict[str, Any] = msgspec.to_builtins(payload)
    details = {name: body[name] for name in body if name not in ("type", "timestamp")}
    said = details.pop(_WORDS.get(body["type"], ""), "")
    details["event"] = body["type"]
    return {"text": said, "at": body.get("timestamp", ""), "details": details}


_WORDS: Final[Mapping[str, str]] = {
    "THOUGHT_STREAM": "chunk",
    "SANDBOX_PULSE": "line",
    "TOOL_LIFECYCLE_INVOKED": "tool",
    "TOOL_LIFECYCLE_COMPLETED": "tool",
}
"""Type of a live event -> its words."""


# --- notices as messages ----------------------------------------------------------------------

_TURN_DETAILS: Final = (
    "turn_index",
    "role",
    "action",
    "observation",
    "confidence",
    "estimated_complexity",
)


def from_notice(notice: Notice) -> Translation:
    """Write a notice as a turn, if it was one, or as an event NOTICE."""
    reader = NoticeReader(notice)
    if notice.kind == "progress" and all(name in notice.details for name in _TURN_DETAILS):
        return _write_turn(reader)
    payload = {
        "type": "NOTICE",
        "task_id": reader.take("task"),
        "kind": notice.kind,
        **present(from_agent=reader.take("sender"), to_agent=reader.take("recipient")),
        "text": reader.take("text"),
        "timestamp": reader.take_or_fill("at", "saop.timestamp"),
    }
    session = reader.take("session")
    if not session:
        session = reader.fill("saop.session_id", notice.task or "unknown")
    payload["details"] = reader.rest()
    digest = sha256(msgspec.json.encode([session, payload])).digest()
    message = {"event_id": uuid8(digest), "session_id": session, "payload": payload}
    return reader.finish(message, is_notice=True)


def _write_turn(reader: NoticeReader) -> Translation:
    details = {name: reader.take_detail(name) for name in _TURN_DETAILS}
    role = details["role"]
    return reader.finish(
        {
            "turn_index": details["turn_index"],
            "agent_id": role,
            "role": role,
            "content": {
                "thought": reader.take("text"),
                "action": details["action"],
                "observation": details["observation"],
            },
            "metadata": {
                "version": "1.0.0",
                "task_id": reader.take("task"),
                "timestamp": reader.take_or_fill("at", "saop.timestamp"),
                "confidence": details["confidence"],
                "estimated_complexity": details["estimated_complexity"],
            },
        }
    )
