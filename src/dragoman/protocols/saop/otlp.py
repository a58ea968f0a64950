"""A task's trace as OpenTelemetry spans (GenAI conventions) in OTLP/JSON, for any collector.

One trace for a task: a span `invoke_agent` around all, a span `chat` for each turn, a span
`execute_tool` for each call of a tool; moves of the task and lines of its terminal are events of
the first. Ids follow from what they name, so that sending it again gives the same spans.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from dragoman.core.moments import nearest_moment

_INTERNAL: Final = 1
_CLIENT: Final = 3
_ERROR: Final = 2
_NANO: Final = 1_000_000
_MOST_LINES: Final = 1_000
"""Limit of terminal lines in a trace; the last ones are kept."""
_ERRORS: Final = {"failure": "tool_error", "timeout": "timeout"}

_PERSON: Final = "user: "
"""Prefix of an observation that came from a person."""
_encode = msgspec.json.Encoder().encode


class Subject(Struct, frozen=True):
    """Task that a trace is about, with its ledger."""

    ledger: str
    task: str
    title: str
    version: str
    """Version of dragoman."""


def document(
    about: Subject, turns: Iterable[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Build the trace of a task from its turn envelopes and its events, in their order."""
    trace = _digest(16, about.ledger, about.task)
    root = _digest(8, about.ledger, about.task, "root")
    children = [*_answers(about, turns), *_tools(about, events)]
    happened = _happened(events)
    times = [
        *(int(span["startTimeUnixNano"]) for span in children),
        *(int(span["endTimeUnixNano"]) for span in children),
        *(int(event["timeUnixNano"]) for event in happened),
    ]
    first = _span(
        root,
        f"invoke_agent {about.task}",
        _INTERNAL,
        (min(times, default=0), max(times, default=0)),
        {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": "dragoman",
            "gen_ai.agent.name": about.task,
            "dragoman.task.id": about.task,
            "dragoman.task.title": about.title,
        },
    )
    first["events"] = happened
    spans = [
        {"traceId": trace, **first},
        *({"traceId": trace, "parentSpanId": root, **span} for span in children),
    ]
    scope = {"name": "dragoman", "version": about.version}
    resource = {"attributes": _attributes({"service.name": "dragoman"})}
    return {
        "resourceSpans": [{"resource": resource, "scopeSpans": [{"scope": scope, "spans": spans}]}]
    }


def _answers(about: Subject, turns: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for turn in turns:
        content, meta = turn["content"], turn["metadata"]
        at = _moment(meta) * _NANO
        said = [("reasoning", content["thought"]), ("text", content["action"])]
        yield _span(
            _digest(
                8, about.ledger, about.task, f"turn {turn.get('attempt', 0)}", str(_index(turn))
            ),
            f"chat {turn['agent_id']}",
            _CLIENT,
            (at, at),
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.provider.name": "dragoman",
                "gen_ai.agent.name": turn["agent_id"],
                "gen_ai.conversation.id": about.task,
                "gen_ai.input.messages": _observed(content["observation"]),
                "gen_ai.output.messages": _messages("assistant", said, finish_reason="stop"),
                "dragoman.task.id": about.task,
                "dragoman.turn.index": _index(turn),
                **_place(turn),
                "dragoman.turn.confidence": float(meta["confidence"]),
            },
        )


def _place(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Known attributes that tell apart turns of the same index."""
    facts = {f"dragoman.turn.{name}": turn.get(name) for name in ("attempt", "by", "beside")}
    return {key: value for key, value in facts.items() if value not in (None, "")}


def _index(turn: Mapping[str, Any]) -> int:
    return int(turn["turn_index"])


def _observed(observation: str) -> str:
    """Encode an observation as a message from a person or from tools."""
    said = observation.removeprefix(_PERSON)
    return _messages("tool" if said == observation else "user", [("text", said)])


def _messages(role: str, parts: Sequence[tuple[str, str]], **more: str) -> str:
    said = [{"type": kind, "content": text} for kind, text in parts if text]
    return _encode([{"role": role, "parts": said, **more}] if said else []).decode()


def _tools(about: Subject, events: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Pair the start and the end of each tool call; an unpaired one has no duration."""
    began: dict[tuple[str, str], Mapping[str, Any]] = {}
    for event in events:
        payload: Mapping[str, Any] = event["payload"]
        key = (event["session_id"], str(payload.get("call_id", "")))
        if payload["type"] == "TOOL_LIFECYCLE_INVOKED":
            began[key] = payload
        elif payload["type"] == "TOOL_LIFECYCLE_COMPLETED":
            yield _tool(about, key, began.pop(key, None), payload)
    for key, payload in began.items():
        yield _tool(about, key, payload, None)


def _tool(
    about: Subject,
    key: tuple[str, str],
    began: Mapping[str, Any] | None,
    ended: Mapping[str, Any] | None,
) -> dict[str, Any]:
    either: Mapping[str, Any] = began or ended or {}
    took = 0 if ended is None else round(ended["duration_ms"])
    at = max(0, _moment(either) - (0 if began else took))
    facts: dict[str, Any] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": either["tool"],
        "gen_ai.tool.call.id": key[1],
        "gen_ai.conversation.id": about.task,
    }
    if began is not None:
        facts["gen_ai.tool.call.arguments"] = _encode(began["arguments"]).decode()
    error = "" if ended is None else _ERRORS.get(ended["status"], "")
    if error:
        facts["error.type"] = error
    if ended is None:
        facts["dragoman.unfinished"] = True
    span = _span(
        _digest(8, about.ledger, about.task, "tool", *key),
        f"execute_tool {either['tool']}",
        _INTERNAL,
        (at * _NANO, (at + took) * _NANO),
        facts,
    )
    if error:
        span["status"] = {"code": _ERROR}
    return span


def _happened(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Task transitions, and the last lines of the terminal."""
    lines = [event["payload"] for event in events if event["payload"]["type"] == "SANDBOX_PULSE"]
    moves = [event["payload"] for event in events if event["payload"]["type"] == "TASK_TRANSITION"]
    told = [
        *(("task.transition", move, ("from_state", "to_state", "git_hash")) for move in moves),
        *(("sandbox.pulse", line, ("line",)) for line in lines[-_MOST_LINES:]),
    ]
    found = [
        {
            "timeUnixNano": str(_moment(payload) * _NANO),
            "name": name,
            "attributes": _attributes({f: payload[f] for f in fields if f in payload}),
        }
        for name, payload, fields in told
    ]
    return sorted(found, key=lambda event: int(event["timeUnixNano"]))


def _moment(dated: Mapping[str, Any]) -> int:
    """Parse the timestamp to milliseconds; OTLP has no time before 1970."""
    return max(0, nearest_moment(dated["timestamp"]))


def _span(
    id: str, name: str, kind: int, times: tuple[int, int], facts: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "spanId": id,
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(times[0]),
        "endTimeUnixNano": str(times[1]),
        "attributes": _attributes(facts),
    }


def _attributes(facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in facts.items()]


def _value(value: Any) -> dict[str, Any]:
    """Encode a value in OTLP/JSON, where whole numbers are strings."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": value}


def _digest(size: int, *named: str) -> str:
    return blake2b("\0".join(named).encode(), digest_size=size).hexdigest()
