"""OpenTelemetry spans (GenAI conventions) in OTLP/JSON: one document, or one a line.

A span of a model's answer (`chat` and the like) is a turn: `gen_ai.input.messages` holds the
observation, `gen_ai.output.messages` the thought, the text and the tool requests. A span
`execute_tool` is a tool call with its start and end. Spans are read in the order of their start.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from dragoman_traces.steps import (
    AgentStep,
    AnswerText,
    Observation,
    Record,
    Thought,
    ToolEnd,
    ToolRequest,
    ToolStart,
    ToolStatus,
    as_arguments,
    as_record,
    as_records,
    as_string,
    readable_text,
)

NAME: Final = "otlp"
ANSWER_OPERATIONS: Final = frozenset({"chat", "generate_content", "text_completion"})
"""Operations that are answers of a model."""
TOOL_OPERATION: Final = "execute_tool"
_NANOSECONDS_PER_MS: Final = 1_000_000
_ERROR_CODES: Final = (2, "STATUS_CODE_ERROR")
_TIMEOUT: Final = "timeout"


class OpenTelemetry:
    """Reader of OTLP/JSON documents."""

    name = NAME
    has_whole_answers = True

    def __init__(self) -> None:
        self.session = ""
        self._reported_calls = set[str]()
        """Calls whose results are in their own spans."""

    @staticmethod
    def recognizes(line: Record) -> bool:
        """Tell whether a line can only be such a document."""
        return isinstance(line.get("resourceSpans"), list)

    def steps(self, line: Record) -> Iterator[AgentStep]:
        """Convert a document to steps."""
        for span in sorted(_spans(line), key=_start_ms):
            span_attributes = parse_attributes(span.get("attributes"))
            self.session = (
                self.session
                or as_string(span_attributes.get("gen_ai.conversation.id"))
                or as_string(span.get("traceId"))
            )
            operation = as_string(span_attributes.get("gen_ai.operation.name"))
            if operation in ANSWER_OPERATIONS:
                yield from self._answer_steps(span, span_attributes)
            elif operation == TOOL_OPERATION:
                yield from self._tool_steps(span, span_attributes)

    def _answer_steps(self, span: Record, span_attributes: Record) -> Iterator[AgentStep]:
        at, end = _start_ms(span), _end_ms(span)
        for role, part in _parts_since_answer(
            _decode_messages(span_attributes.get("gen_ai.input.messages"))
        ):
            yield from self._observation_steps(role, part, at)
        answer_id = as_string(span.get("spanId"))
        for message in as_records(_decode_messages(span_attributes.get("gen_ai.output.messages"))):
            for part in as_records(message.get("parts")):
                read_part = _PART_READERS.get(as_string(part.get("type")))
                if read_part is not None:
                    yield from read_part(part, answer_id, end)

    def _observation_steps(self, role: str, part: Record, at: int) -> Iterator[AgentStep]:
        if part.get("type") == "text":
            prefix = "" if role == "tool" else "user: "
            yield Observation(f"{prefix}{as_string(part.get('content'))}", at=at)
        elif (
            part.get("type") == "tool_call_response" and part.get("id") not in self._reported_calls
        ):
            response = readable_text(part.get("response", part.get("result")))
            yield Observation(f"{as_string(part.get('id'))}: {response}", at=at)

    def _tool_steps(self, span: Record, span_attributes: Record) -> Iterator[AgentStep]:
        call_id = as_string(span_attributes.get("gen_ai.tool.call.id")) or as_string(
            span.get("spanId")
        )
        tool = as_string(span_attributes.get("gen_ai.tool.name")) or "unknown"
        tool_arguments = as_arguments(span_attributes.get("gen_ai.tool.call.arguments"))
        output = readable_text(span_attributes.get("gen_ai.tool.call.result"))
        started, ended = _start_ms(span), _end_ms(span)
        if output:
            self._reported_calls.add(call_id)
        yield ToolStart(call_id, tool, tool_arguments, at=started)
        duration_ms = max(0, ended - started)
        yield ToolEnd(
            call_id, _span_status(span, span_attributes), output, tool, duration_ms, at=ended
        )


def parse_attributes(pairs: Any) -> dict[str, Any]:
    """Convert the attributes of a span or a resource to plain values."""
    return {as_string(one.get("key")): _parse_value(one.get("value")) for one in as_records(pairs)}


def _parse_value(value: Any) -> Any:
    """Convert a value of OTLP/JSON, where whole numbers are strings and lists are objects."""
    for kind, inner in as_record(value).items():
        if kind == "intValue":
            with suppress(ValueError, TypeError):
                return int(inner)
        if kind == "arrayValue":
            return [
                _parse_value(item) for item in cast(list[Any], as_record(inner).get("values") or [])
            ]
        if kind == "kvlistValue":
            return parse_attributes(as_record(inner).get("values"))
        return inner
    return None


def _spans(line: Record) -> Iterator[Record]:
    for resource in as_records(line.get("resourceSpans")):
        for scope in as_records(resource.get("scopeSpans")):
            yield from as_records(scope.get("spans"))


def _start_ms(span: Record) -> int:
    return _to_ms(span.get("startTimeUnixNano"))


def _end_ms(span: Record) -> int:
    return _to_ms(span.get("endTimeUnixNano")) or _start_ms(span)


def _to_ms(value: Any) -> int:
    with suppress(ValueError, TypeError):
        return int(value) // _NANOSECONDS_PER_MS
    return 0


def _span_status(span: Record, span_attributes: Record) -> ToolStatus:
    error = as_string(span_attributes.get("error.type"))
    if not error and as_record(span.get("status")).get("code") not in _ERROR_CODES:
        return "success"
    return "timeout" if _TIMEOUT in error.lower() else "failure"


def _decode_messages(value: Any) -> Any:
    """Decode messages, which most exporters write as JSON text and some as objects."""
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return msgspec.json.decode(value.encode()) if isinstance(value, str) else value
    return None


def _parts_since_answer(messages: Any) -> Iterator[tuple[str, Record]]:
    """Yield role and part of the messages after the model's last answer; earlier ones are known."""
    since = list[tuple[str, Record]]()
    for message in as_records(messages):
        role = as_string(message.get("role"))
        if role == "assistant":
            since.clear()
        elif role != "system":
            since += [(role, part) for part in as_records(message.get("parts"))]
    yield from since


def _thought_steps(part: Record, answer: str, at: int) -> Iterator[AgentStep]:
    yield Thought(as_string(part.get("content")), answer=answer, at=at)


def _text_steps(part: Record, answer: str, at: int) -> Iterator[AgentStep]:
    yield AnswerText(as_string(part.get("content")), answer=answer, at=at)


def _request_steps(part: Record, answer: str, at: int) -> Iterator[AgentStep]:
    tool_arguments = as_arguments(part.get("arguments"))
    yield ToolRequest(as_string(part.get("name")), tool_arguments, answer=answer, at=at)


_PART_READERS: Final[dict[str, Callable[[Record, str, int], Iterator[AgentStep]]]] = {
    "reasoning": _thought_steps,
    "text": _text_steps,
    "tool_call": _request_steps,
}
"""Type of a part of an answer -> its reader."""
