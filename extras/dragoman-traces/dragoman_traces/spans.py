"""Export a task's trace as OpenTelemetry spans (GenAI conventions) in OTLP/JSON.

One trace for a task: a root span `invoke_agent`, a span `chat` for each turn, a span `execute_tool`
for each tool call; task transitions and terminal lines are events of the root span. Span ids are
derived from what they name, so that exporting a trace again gives the same spans.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core.timestamps import parse_rfc3339

_KIND_INTERNAL: Final = 1
_KIND_CLIENT: Final = 3
_STATUS_ERROR: Final = 2
_NANOSECONDS_PER_MS: Final = 1_000_000
_MAX_TERMINAL_LINES: Final = 1_000
"""Limit of terminal lines in a trace; the last ones are kept."""
_UP_TO_MILLISECONDS: Final = len("2026-02-21T10:00:00.000")
_ERROR_TYPES: Final = {"failure": "tool_error", "timeout": "timeout"}

_PERSON_PREFIX: Final = "user: "
"""Prefix of an observation that came from a person."""
_encode = msgspec.json.Encoder().encode


class TraceSubject(Struct, frozen=True):
    """Task that a trace is about."""

    created_at: str
    """Time of its creation: two hubs may have tasks of one name."""
    task: str
    title: str
    version: str
    """Version of dragoman."""


def trace_document(
    subject: TraceSubject, turns: Iterable[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Build the trace of a task from its turn envelopes and its events, in their order."""
    trace = _derive_id(16, subject.created_at, subject.task)
    root = _derive_id(8, subject.created_at, subject.task, "root")
    children = [*_turn_spans(subject, turns), *_tool_spans(subject, events)]
    span_events = _span_events(events)
    times = [
        *(int(span["startTimeUnixNano"]) for span in children),
        *(int(span["endTimeUnixNano"]) for span in children),
        *(int(event["timeUnixNano"]) for event in span_events),
    ]
    root_span = _make_span(
        root,
        f"invoke_agent {subject.task}",
        _KIND_INTERNAL,
        (min(times, default=0), max(times, default=0)),
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "dragoman",
            "gen_ai.agent.name": subject.task,
            "dragoman.task.id": subject.task,
            "dragoman.task.title": subject.title,
        },
    )
    root_span["events"] = span_events
    spans = [
        {"traceId": trace, **root_span},
        *({"traceId": trace, "parentSpanId": root, **span} for span in children),
    ]
    scope = {"name": "dragoman", "version": subject.version}
    resource = {"attributes": _attributes({"service.name": "dragoman"})}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]
    }


def _turn_spans(
    subject: TraceSubject, turns: Iterable[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    for turn in turns:
        content, meta = turn["content"], turn["metadata"]
        at = _timestamp_ms(meta) * _NANOSECONDS_PER_MS
        parts = [("reasoning", content["thought"]), ("text", content["action"])]
        yield _make_span(
            _derive_id(
                8,
                subject.created_at,
                subject.task,
                f"turn {turn.get('attempt', 0)}",
                str(int(turn["turn_index"])),
            ),
            f"chat {turn['agent_id']}",
            _KIND_CLIENT,
            (at, at),
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "dragoman",
                "gen_ai.agent.name": turn["agent_id"],
                "gen_ai.conversation.id": subject.task,
                "gen_ai.input.messages": _input_messages(content["observation"]),
                "gen_ai.output.messages": _encode_messages(
                    "assistant", parts, finish_reason="stop"
                ),
                "dragoman.task.id": subject.task,
                "dragoman.turn.index": int(turn["turn_index"]),
                **_turn_attributes(turn),
                "dragoman.turn.confidence": float(meta["confidence"]),
            },
        )


def _turn_attributes(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Known attributes that tell apart turns of the same index."""
    attributes = {
        f"dragoman.turn.{name}": turn.get(name) for name in ("attempt", "by", "after_attempt")
    }
    return {key: value for key, value in attributes.items() if value not in (None, "")}


def _input_messages(observation: str) -> str:
    """Encode an observation as a message from a person or from tools."""
    text = observation.removeprefix(_PERSON_PREFIX)
    return _encode_messages("tool" if text == observation else "user", [("text", text)])


def _encode_messages(role: str, parts: Sequence[tuple[str, str]], **more: str) -> str:
    encoded_parts = [{"type": kind, "content": text} for kind, text in parts if text]
    return _encode(
        [{"role": role, "parts": encoded_parts, **more}] if encoded_parts else []
    ).decode()


def _tool_spans(
    subject: TraceSubject, events: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Pair the start and the end of each tool call; an unpaired one has no duration."""
    started: dict[tuple[str, str], Mapping[str, Any]] = {}
    for event in events:
        payload: Mapping[str, Any] = event["payload"]
        key = (event["session_id"], str(payload.get("call_id", "")))
        if payload["type"] == "TOOL_LIFECYCLE_INVOKED":
            started[key] = payload
        elif payload["type"] == "TOOL_LIFECYCLE_COMPLETED":
            yield _make_tool_span(subject, key, started.pop(key, None), payload)
    for key, payload in started.items():
        yield _make_tool_span(subject, key, payload, None)


def _make_tool_span(
    subject: TraceSubject,
    key: tuple[str, str],
    started: Mapping[str, Any] | None,
    ended: Mapping[str, Any] | None,
) -> dict[str, Any]:
    payload: Mapping[str, Any] = started or ended or {}
    duration_ms = 0 if ended is None else round(ended["duration_ms"])
    at = max(0, _timestamp_ms(payload) - (0 if started else duration_ms))
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": payload["tool"],
        "gen_ai.tool.call.id": key[1],
        "gen_ai.conversation.id": subject.task,
    }
    if started is not None:
        attributes["gen_ai.tool.call.arguments"] = _encode(started["arguments"]).decode()
    error = "" if ended is None else _ERROR_TYPES.get(ended["status"], "")
    if error:
        attributes["error.type"] = error
    if ended is None:
        attributes["dragoman.unfinished"] = True
    span = _make_span(
        _derive_id(8, subject.created_at, subject.task, "tool", *key),
        f"execute_tool {payload['tool']}",
        _KIND_INTERNAL,
        (at * _NANOSECONDS_PER_MS, (at + duration_ms) * _NANOSECONDS_PER_MS),
        attributes,
    )
    if error:
        span["status"] = {"code": _STATUS_ERROR}
    return span


def _span_events(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Task transitions, and the last lines of the terminal."""
    lines = [event["payload"] for event in events if event["payload"]["type"] == "SANDBOX_PULSE"]
    moves = [event["payload"] for event in events if event["payload"]["type"] == "TASK_TRANSITION"]
    selected = [
        *(("task.transition", move, ("from_state", "to_state", "git_hash")) for move in moves),
        *(("sandbox.pulse", line, ("line",)) for line in lines[-_MAX_TERMINAL_LINES:]),
    ]
    span_events = [
        {
            "timeUnixNano": str(_timestamp_ms(payload) * _NANOSECONDS_PER_MS),
            "name": name,
            "attributes": _attributes({f: payload[f] for f in fields if f in payload}),
        }
        for name, payload, fields in selected
    ]
    return sorted(span_events, key=lambda event: int(event["timeUnixNano"]))


def _timestamp_ms(dated: Mapping[str, Any]) -> int:
    """Parse the timestamp to milliseconds; OTLP has no time before 1970, a timestamp a year 0."""
    text: str = dated["timestamp"]
    whole = f"{text.removesuffix('Z')[:_UP_TO_MILLISECONDS]}Z"
    return 0 if text.startswith("0000") else max(0, parse_rfc3339(whole))


def _make_span(
    id: str, name: str, kind: int, times: tuple[int, int], attributes: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "spanId": id,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(times[0]),
        "endTimeUnixNano": str(times[1]),
        "attributes": _attributes(attributes),
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _attribute_value(value)} for key, value in values.items()]


def _attribute_value(value: Any) -> dict[str, Any]:
    """Encode a value in OTLP/JSON, where whole numbers are strings."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value}


def _derive_id(size: int, *parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=size).hexdigest()
