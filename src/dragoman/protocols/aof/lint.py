"""Lint an AOF/1 message without sending it, for developers of agents and their CI."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Raw, Struct
from msgspec.structs import fields

from dragoman.engine.operation import Fault, LintResult
from dragoman.protocols.aof import validation
from dragoman.protocols.aof.parse import DetectedMessage, is_aof, text_field, unwrap
from dragoman.protocols.aof.translate import CRITERIA_NOT_STRINGS, string_list
from dragoman.protocols.aof.wire import (
    MESSAGES,
    CompletionPayload,
    HandoffRequestMessage,
    Message,
    UnknownMessage,
)
from dragoman.text.strict_json import MAX_BYTES

_COST = "payload.cost"
_NOT_AOF = validation.envelope_fault('this is not AOF/1, whose protocol is "aof"', "protocol")


def lint(value: Any, kind: str, strict: bool) -> LintResult:
    """Lint one JSON value, bare or wrapped like any message.

    Of a message that has not the shape of its type the first fault is listed, else all. Strict
    linting also fails for what a hub accepts: fields that AOF/1 does not know, acceptance criteria
    that are taken as [], and a cost that counts as nothing. Otherwise these are listed, and the
    message is ok.
    """
    found = DetectedMessage(Raw(), value) if is_aof(value) else unwrap(value, MAX_BYTES)
    if found is None:
        return _lint_result(value, [_NOT_AOF], ())
    if found.fault is not None:
        return _lint_result(
            value, [validation.envelope_fault(found.fault.reason, found.fault.path)], ()
        )
    envelope = found.value
    shape = MESSAGES.get(text_field(envelope, "type"), UnknownMessage)
    message = validation.convert_shape(envelope, shape)
    if isinstance(message, Fault):
        return _lint_result(envelope, [message], ())
    faults = [*_kind_faults(envelope, kind), *_content_faults(message)]
    warnings = [*_unknown_fields(envelope, message, ""), *_criteria_faults(message)]
    return _lint_result(envelope, faults + warnings * strict, warnings * (not strict))


def _content_faults(message: Message | UnknownMessage) -> Iterator[Fault]:
    """Yield faults of the content that a hub would refuse whatever its state."""
    if isinstance(message, UnknownMessage):
        yield from validation.unknown_message_faults(message)
        return
    yield from validation.message_faults(message)
    yield from validation.identity_faults(message, message.from_agent)
    if (
        isinstance(message, HandoffRequestMessage)
        and message.payload.parent_task_id == message.task_id
    ):
        yield validation.envelope_fault("a task cannot be a part of itself", "payload.parentTaskId")


def _lint_result(message: Any, faults: Iterable[Fault], warnings: Iterable[Fault]) -> LintResult:
    faults = list(faults)
    issues = [{"path": issue.path, "reason": issue.reason} for issue in (*faults, *warnings)]
    return LintResult(not faults, text_field(message, "type"), message, tuple(issues))


def _kind_faults(envelope: Any, kind: str) -> Iterator[Fault]:
    if kind and text_field(envelope, "type") != kind:
        yield validation.envelope_fault(f"this is no {kind}", "type")


def _unknown_fields(value: Any, converted: Struct, prefix: str) -> Iterator[Fault]:
    if not isinstance(value, dict):
        return
    known = {field.encode_name: getattr(converted, field.name) for field in fields(converted)}
    if not prefix:
        known["type"] = ""  # the tag of a shape is none of its fields
    for name, inner in cast(Mapping[str, Any], value).items():
        if name not in known:
            yield from _describe_unknown_field(f"{prefix}{name}", inner, converted)
        elif isinstance(known[name], Struct):
            yield from _unknown_fields(inner, known[name], f"{prefix}{name}.")


def _describe_unknown_field(path: str, value: Any, converted: Struct) -> Iterator[Fault]:
    """Describe an unknown field; the cost of a report is known, because budgets use it."""
    if not (isinstance(converted, CompletionPayload) and path == _COST):
        yield validation.envelope_fault("AOF/1 knows no such field", path)
    elif isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
        yield validation.envelope_fault("a cost is a number from 0 on; this one is ignored", path)


def _criteria_faults(message: Message | UnknownMessage) -> Iterator[Fault]:
    if not isinstance(message, HandoffRequestMessage):
        return
    if string_list(message.payload.acceptance_criteria) is None:
        yield validation.envelope_fault(CRITERIA_NOT_STRINGS, "payload.acceptanceCriteria")
