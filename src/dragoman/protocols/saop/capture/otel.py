"""Spans of OpenTelemetry's GenAI conventions, in OTLP/JSON: one document, or one a line.

A span of a model's answer (`chat` and the like) is a turn: `gen_ai.input.messages` has what was
observed, `gen_ai.output.messages` what was thought, said and wanted. A span `execute_tool` is a
tool that began and ended. Spans are taken in the order in which they began.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final, cast

import msgspec

from dragoman.protocols.saop.capture.loose import (
    Record,
    arguments,
    as_text,
    record,
    records,
    text,
)
from dragoman.protocols.saop.capture.steps import (
    Called,
    Observed,
    Planned,
    Returned,
    Spoke,
    Status,
    Step,
    Thought,
)

NAME: Final = "otlp"
ANSWERS: Final = frozenset({"chat", "generate_content", "text_completion"})
"""Operations that are answers of a model."""
TOOL: Final = "execute_tool"
_NANO: Final = 1_000_000
_ERROR: Final = (2, "STATUS_CODE_ERROR")
_TIMEOUT: Final = "timeout"


class Otel:
    """Reader of OTLP/JSON documents."""

    name = NAME
    is_whole = True

    def __init__(self) -> None:
        self.session = ""
        self._told = set[str]()
        """Calls whose results are in their own spans."""

    @staticmethod
    def is_ours(line: Record) -> bool:
        """Tell whether a line can only be such a document."""
        return isinstance(line.get("resourceSpans"), list)

    def steps(self, line: Record) -> Iterator[Step]:
        """Convert a document to steps."""
        for span in sorted(_spans(line), key=_began):
            facts = attributes(span.get("attributes"))
            self.session = (
                self.session
                or text(facts.get("gen_ai.conversation.id"))
                or text(span.get("traceId"))
            )
            operation = text(facts.get("gen_ai.operation.name"))
            if operation in ANSWERS:
                yield from self._answered(span, facts)
            elif operation == TOOL:
                yield from self._used(span, facts)

    def _answered(self, span: Record, facts: Record) -> Iterator[Step]:
        at, end = _began(span), _ended(span)
        for role, part in _since_last_answer(_decoded(facts.get("gen_ai.input.messages"))):
            yield from self._seen(role, part, at)
        answer = text(span.get("spanId"))
        for message in records(_decoded(facts.get("gen_ai.output.messages"))):
            for part in records(message.get("parts")):
                make = _PARTS.get(text(part.get("type")))
                if make is not None:
                    yield from make(part, answer, end)

    def _seen(self, role: str, part: Record, at: int) -> Iterator[Step]:
        if part.get("type") == "text":
            by = "" if role == "tool" else "user: "
            yield Observed(f"{by}{text(part.get('content'))}", at=at)
        elif part.get("type") == "tool_call_response" and part.get("id") not in self._told:
            said = as_text(part.get("response", part.get("result")))
            yield Observed(f"{text(part.get('id'))}: {said}", at=at)

    def _used(self, span: Record, facts: Record) -> Iterator[Step]:
        call = text(facts.get("gen_ai.tool.call.id")) or text(span.get("spanId"))
        tool = text(facts.get("gen_ai.tool.name")) or "unknown"
        given = arguments(facts.get("gen_ai.tool.call.arguments"))
        output = as_text(facts.get("gen_ai.tool.call.result"))
        began, ended = _began(span), _ended(span)
        if output:
            self._told.add(call)
        yield Called(call, tool, given, at=began)
        took = max(0, ended - began)
        yield Returned(call, _status(span, facts), output, tool, took, at=ended)


def attributes(listed: Any) -> dict[str, Any]:
    """Convert the attributes of a span or a resource to plain values."""
    return {text(one.get("key")): _value(one.get("value")) for one in records(listed)}


def _value(value: Any) -> Any:
    """Convert a value of OTLP/JSON, where whole numbers are strings and lists are objects."""
    for kind, said in record(value).items():
        if kind == "intValue":
            with suppress(ValueError, TypeError):
                return int(said)
        if kind == "arrayValue":
            return [_value(item) for item in cast(list[Any], record(said).get("values") or [])]
        if kind == "kvlistValue":
            return attributes(record(said).get("values"))
        return said
    return None


def _spans(line: Record) -> Iterator[Record]:
    for resource in records(line.get("resourceSpans")):
        for scope in records(resource.get("scopeSpans")):
            yield from records(scope.get("spans"))


def _began(span: Record) -> int:
    return _moment(span.get("startTimeUnixNano"))


def _ended(span: Record) -> int:
    return _moment(span.get("endTimeUnixNano")) or _began(span)


def _moment(value: Any) -> int:
    with suppress(ValueError, TypeError):
        return int(value) // _NANO
    return 0


def _status(span: Record, facts: Record) -> Status:
    error = text(facts.get("error.type"))
    if not error and record(span.get("status")).get("code") not in _ERROR:
        return "success"
    return "timeout" if _TIMEOUT in error.lower() else "failure"


def _decoded(value: Any) -> Any:
    """Decode messages, which most exporters write as JSON text and some as objects."""
    with suppress(msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return msgspec.json.decode(value.encode()) if isinstance(value, str) else value
    return None


def _since_last_answer(messages: Any) -> Iterator[tuple[str, Record]]:
    """Yield role and part of the messages after the model's last answer; earlier ones are known."""
    since = list[tuple[str, Record]]()
    for message in records(messages):
        role = text(message.get("role"))
        if role == "assistant":
            since.clear()
        elif role != "system":
            since += [(role, part) for part in records(message.get("parts"))]
    yield from since


def _thought(part: Record, answer: str, at: int) -> Iterator[Step]:
    yield Thought(text(part.get("content")), answer=answer, at=at)


def _spoke(part: Record, answer: str, at: int) -> Iterator[Step]:
    yield Spoke(text(part.get("content")), answer=answer, at=at)


def _planned(part: Record, answer: str, at: int) -> Iterator[Step]:
    given = arguments(part.get("arguments"))
    yield Planned(text(part.get("name")), given, answer=answer, at=at)


_PARTS: Final[dict[str, Callable[[Record, str, int], Iterator[Step]]]] = {
    "reasoning": _thought,
    "text": _spoke,
    "tool_call": _planned,
}
"""Type of a part of an answer -> its reader."""
