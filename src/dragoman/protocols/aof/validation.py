"""Validate messages: first the shape, then the values of fields and their consistency.

Every fault has the path of the field at fault. A message is refused for its first fault; `lint`
lists them all.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeGuard, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields

from dragoman.core.ids import check_agent, check_session, is_aof_id
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.operation import Fault, validate_shape
from dragoman.protocols.aof.wire import (
    DISPATCHER,
    MESSAGES,
    CompleteTaskArguments,
    CompletionPayload,
    CompletionReportMessage,
    Count,
    Envelope,
    HandoffAcceptedMessage,
    HandoffAnswerPayload,
    HandoffRejectedMessage,
    HandoffRequestMessage,
    HandoffRequestPayload,
    Message,
    Payload,
    SessionEndArguments,
    StatusPayload,
    StatusUpdateMessage,
    UnknownMessage,
    UpdateTaskArguments,
)
from dragoman.text.error_messages import MISSING, NO_OBJECT, join_path
from dragoman.text.repository_paths import check_path

# --- shapes -----------------------------------------------------------------------------------

_COMMON_TIMESTAMP: Final = re.compile(
    r"[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3])(?::[0-5]\d){2}\.\d{3}Z",
    re.ASCII,
)
"""Spelling of nearly every timestamp; anything that matches is valid."""

_MAX_QUOTED: Final = 40

_CACHE_SIZE: Final = 4_096
"""The same few names come again and again."""

_PATH_STEP: Final = re.compile(r"[^.\[]+|\[\d+\]")

S = TypeVar("S")

T = TypeVar("T", bound=Struct)

FieldCheck = tuple[str, str | UnsetType, Callable[[str], str | None]]
"""Path, value, and the check that returns the reason for a wrong value."""


def envelope_fault(reason: str, path: str = "") -> Fault:
    """Build a fault of the envelope."""
    return Fault("invalid_envelope", reason, path)


def convert_shape(value: Any, shape: type[S]) -> S | Fault:
    """Convert a parsed JSON value to this shape, or return its first fault."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError:
        pass
    return validate_shape(normalize_integers(value), shape, "invalid_envelope")


def shape_faults(value: Any, shape: type[Struct], parent: str = "") -> Iterator[Fault]:
    """Yield everything that keeps a parsed JSON value from having this shape."""
    if not isinstance(value, dict):
        yield envelope_fault(NO_OBJECT, parent)
        return
    members = cast(Mapping[str, Any], value)
    for field in fields(shape):
        path = join_path(parent, field.encode_name)
        if field.encode_name not in members:
            if field.required:
                yield envelope_fault(MISSING, path)
            continue
        inner, kind = members[field.encode_name], cast(type[Any], field.type)
        if _is_struct(kind):
            yield from shape_faults(inner, kind, path)
            continue
        converted = convert_shape(inner, kind)
        if isinstance(converted, Fault):
            yield envelope_fault(converted.reason, join_path(path, converted.path))


def salvage(value: Any, shape: type[T]) -> T:
    """Convert what can be used of a value that may not have the shape; the rest counts as absent.

    Only for finding further faults: required fields may be UNSET in the result.
    """
    members = cast(Mapping[str, Any], value if isinstance(value, dict) else {})
    return shape(
        **{
            field.name: _salvage_field(members.get(field.encode_name, UNSET), field.type)
            for field in fields(shape)
        }
    )


def _salvage_field(value: Any, kind: Any) -> Any:
    if _is_struct(kind):
        return salvage(value, kind)
    converted = UNSET if value is UNSET else convert_shape(value, kind)
    if converted is UNSET or isinstance(converted, Fault):
        return 0 if kind == Count else UNSET
    return converted


def independent_faults(known: Sequence[Fault], found: Iterable[Fault]) -> Iterator[Fault]:
    """Yield faults whose path is not that of a known fault, nor above or below it."""
    known_steps = [_path_steps(fault.path) for fault in known]
    for fault in found:
        steps = _path_steps(fault.path)
        if not any(all(map(str.__eq__, steps, prefix)) for prefix in known_steps):
            yield fault


def _path_steps(path: str) -> list[str]:
    return _PATH_STEP.findall(path)


def _is_struct(kind: Any) -> TypeGuard[type[Struct]]:
    return isinstance(kind, type) and issubclass(kind, Struct)


def normalize_integers(value: Any) -> Any:
    """Write 1.0 as 1: JSON has one kind of number, and some writers use fractions."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        items = cast(Mapping[str, Any], value).items()
        return {name: normalize_integers(inner) for name, inner in items}
    if isinstance(value, list):
        return [normalize_integers(inner) for inner in cast(list[Any], value)]
    return value


# --- messages and payloads --------------------------------------------------------------------


def unknown_type_fault(message: UnknownMessage) -> Fault:
    """Return the first fault of a message of an unknown type."""
    return unknown_message_faults(message, message.type)[0]


def unknown_message_faults(message: UnknownMessage, kind: str) -> list[Fault]:
    """List the faults of a message of an unknown type."""
    reason = f"{kind[:_MAX_QUOTED]!a} is not a type of AOF/1; known: {', '.join(MESSAGES)}"
    return [*_envelope_faults(message), Fault("unknown_type", reason, "type")]


def message_faults(message: Message) -> list[Fault]:
    """List the faults of a message that has the shape of its type."""
    faults = _envelope_faults(message)
    faults += _PAYLOAD_CHECKS[type(message)](message.payload, "payload.")
    payload_task = message.payload.task_id
    if payload_task is not UNSET and message.task_id not in (payload_task, UNSET):
        reason = f"the payload is about {payload_task}, its envelope about {message.task_id}"
        faults.append(Fault("taskId_mismatch", reason, "payload.taskId"))
    return faults


def _envelope_faults(message: Envelope[Any]) -> list[Fault]:
    return _field_faults(
        "",
        ("taskId", message.task_id, _check_task_id),
        ("fromAgent", message.from_agent, _check_agent_name),
        ("toAgent", message.to_agent, _check_agent_name),
        ("sentAt", message.sent_at, _check_timestamp),
        ("projectId", message.project_id, _check_project),
    )


def completion_faults(
    payload: CompletionPayload | CompleteTaskArguments, prefix: str = ""
) -> list[Fault]:
    """List the faults of a report."""
    faults = _field_faults(
        prefix,
        *_repeated_fields(payload),
        ("summaryRef", payload.summary_ref, check_path),
        ("handoffRef", payload.handoff_ref, check_path),
    )
    faults += _ref_faults(f"{prefix}deliverables", payload.deliverables)
    tests = payload.tests
    if tests.passed + tests.failed > tests.total:
        reason = f"{tests.passed} passed and {tests.failed} failed are more than {tests.total}"
        faults.append(envelope_fault(reason, f"{prefix}tests"))
    if payload.outcome == "blocked" and not any(map(str.strip, payload.blockers or ())):
        faults.append(
            envelope_fault("Required for blocked: say what blocks the work", f"{prefix}blockers")
        )
    return faults


def update_faults(payload: StatusPayload | UpdateTaskArguments, prefix: str = "") -> list[Fault]:
    """List the faults of an update."""
    faults = _field_faults(prefix, *_repeated_fields(payload))
    parts = (payload.status, payload.progress, payload.blockers, payload.notes)
    if all(part is UNSET for part in parts):
        reason = "at least one of status, progress, blockers and notes is needed"
        faults.append(envelope_fault(reason, prefix.rstrip(".")))
    return faults


def session_faults(arguments: SessionEndArguments) -> list[Fault]:
    """List the faults of the end of a session."""
    return _field_faults("", ("sessionId", arguments.session_id, _check_session_name))


def _request_faults(payload: HandoffRequestPayload, prefix: str) -> list[Fault]:
    faults = _field_faults(
        prefix,
        *_repeated_fields(payload),
        ("parentTaskId", payload.parent_task_id, _check_task_id),
        ("dueBy", payload.due_by, _check_timestamp),
    )
    faults += _ref_faults(f"{prefix}expectedOutputs", payload.expected_outputs)
    faults += _ref_faults(f"{prefix}contextRefs", payload.context_refs)
    return faults


def _acceptance_faults(payload: HandoffAnswerPayload, prefix: str) -> list[Fault]:
    faults = _field_faults(prefix, *_repeated_fields(payload))
    if not payload.accepted:
        reason = "a handoff.accepted says true; send handoff.rejected to reject"
        faults.append(envelope_fault(reason, f"{prefix}accepted"))
    return faults


def _rejection_faults(payload: HandoffAnswerPayload, prefix: str) -> list[Fault]:
    faults = _field_faults(prefix, *_repeated_fields(payload))
    if payload.accepted:
        reason = "a handoff.rejected says false; send handoff.accepted to accept"
        faults.append(envelope_fault(reason, f"{prefix}accepted"))
    return faults


_PAYLOAD_CHECKS: Final[dict[type[Message], Callable[[Any, str], list[Fault]]]] = {
    CompletionReportMessage: completion_faults,
    StatusUpdateMessage: update_faults,
    HandoffRequestMessage: _request_faults,
    HandoffAcceptedMessage: _acceptance_faults,
    HandoffRejectedMessage: _rejection_faults,
}


def _repeated_fields(payload: Payload) -> tuple[FieldCheck, ...]:
    """Fields that every payload may repeat, in the form that they have in the envelope."""
    return (
        ("taskId", payload.task_id, _check_task_id),
        ("agentId", payload.agent_id, _check_agent_name),
        ("fromAgent", payload.from_agent, _check_agent_name),
        ("toAgent", payload.to_agent, _check_agent_name),
    )


# --- identity ---------------------------------------------------------------------------------


def check_identity(message: Message, speaker: str) -> Fault | None:
    """Check that the sender named in a message is the speaker (S-ROLE)."""
    return next(identity_faults(message, speaker), None)


def identity_faults(message: Message, speaker: str) -> Iterator[Fault]:
    """Yield a fault for every place that names another sender or a second addressee."""
    payload: Payload = message.payload
    for path, name in (
        ("fromAgent", message.from_agent),
        ("payload.agentId", payload.agent_id),
        ("payload.fromAgent", payload.from_agent),
    ):
        if name not in (speaker, UNSET):
            yield _identity_fault(f"{speaker} cannot speak for {name}", path)
    addressee = message.to_agent
    if addressee not in (DISPATCHER, UNSET) and payload.to_agent not in (addressee, UNSET):
        yield _identity_fault(
            f"the payload is for {payload.to_agent}, its envelope for {addressee}",
            "payload.toAgent",
        )


def check_tool_identity(payload: Payload, speaker: str) -> Fault | None:
    """Check the sender named in a tool's arguments, which have no envelope."""
    for path, name in (("agentId", payload.agent_id), ("fromAgent", payload.from_agent)):
        if name not in (speaker, UNSET):
            return _identity_fault(f"{speaker} cannot speak for {name}", path)
    return None


def _identity_fault(reason: str, path: str) -> Fault:
    return Fault("identity_mismatch", reason, path)


# --- single fields ----------------------------------------------------------------------------


def _field_faults(prefix: str, *fields: FieldCheck) -> list[Fault]:
    """Collect the faults of the given fields that are present."""
    return [
        envelope_fault(reason, prefix + path)
        for path, text, check in fields
        if text is not UNSET and (reason := check(text)) is not None
    ]


def _ref_faults(path: str, refs: tuple[str, ...] | UnsetType) -> list[Fault]:
    return [
        envelope_fault(reason, f"{path}[{index}]")
        for index, ref in enumerate(refs or ())
        if (reason := check_path(ref)) is not None
    ]


@lru_cache(_CACHE_SIZE)
def _check_task_id(text: str) -> str | None:
    if is_aof_id(text):
        return None
    return (
        f"{text[:_MAX_QUOTED]!a} is not an AOF task id like TASK-2026-02-09-057; for a task with "
        "another name, dragoman task show prints it as aofId"
    )


@lru_cache(_CACHE_SIZE)
def _check_agent_name(text: str) -> str | None:
    refusal = check_agent(text)
    return None if refusal is None else refusal.detail


def _check_project(text: str) -> str | None:
    return None if text.isprintable() else "it has an invisible or control character"


def _check_session_name(text: str) -> str | None:
    refusal = check_session(text)
    return None if refusal is None else refusal.detail


def _check_timestamp(text: str) -> str | None:
    if _COMMON_TIMESTAMP.fullmatch(text):
        return None
    try:
        parse_rfc3339(text)
    except ValueError as error:
        return str(error)
    return None
