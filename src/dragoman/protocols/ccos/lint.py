"""Lint a CCOS 019 message without sending it, for developers of agents and their CI."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec import UNSET
from msgspec.structs import fields

from dragoman.core.ids import check_agent, check_id
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.operation import Fault, LintResult
from dragoman.protocols.ccos.parse import parse_shape
from dragoman.protocols.ccos.wire import MESSAGE_SHAPES, Message, as_value, detect_kind
from dragoman.text.error_messages import NO_OBJECT


def lint(value: Any, kind: str, strict: bool) -> LintResult:
    """Lint one message.

    Strict also reports what the hub accepts: names that it would refuse, and unknown fields.
    """
    if not isinstance(value, dict):
        return _invalid(kind, Fault("", NO_OBJECT))
    fields = cast(Mapping[str, Any], value)
    detected = detect_kind(fields)
    kind_checked = kind or detected
    if not kind_checked:
        reason = f"it says nothing by which it is one of {', '.join(MESSAGE_SHAPES)}"
        return _invalid("", Fault("", reason))
    if detected and detected != kind_checked:
        return _invalid(detected, Fault("", f"this is a {detected}, not a {kind_checked}"))
    read = parse_shape(fields, MESSAGE_SHAPES[kind_checked])
    if isinstance(read, Fault):
        return _invalid(kind_checked, read)
    issues = tuple(_to_issue(fault) for fault in _extra_faults(fields, read, strict=strict))
    return LintResult(not issues, kind_checked, as_value(read), issues)


def _extra_faults(message: Mapping[str, Any], read: Message, *, strict: bool) -> Iterator[Fault]:
    deadline = getattr(read, "deadline", UNSET)
    if isinstance(deadline, str):
        try:
            parse_rfc3339(deadline)
        except ValueError as error:
            yield Fault("", str(error), "deadline")
    if not strict:
        return
    for path, refusal in (
        ("intent_id", check_id(read.intent_id, "intent id")),
        ("agent_id", check_agent(read.agent_id)),
    ):
        if refusal is not None:
            yield Fault("", refusal.detail, path)
    known = {field.encode_name for field in fields(read)}
    for name in message:
        if name not in known:
            yield Fault("", "CCOS 019 has no such field; put it into meta", name)


def _invalid(kind: str, fault: Fault) -> LintResult:
    return LintResult(False, kind, None, (_to_issue(fault),))


def _to_issue(fault: Fault) -> dict[str, str]:
    return {"path": fault.path, "reason": fault.reason}
