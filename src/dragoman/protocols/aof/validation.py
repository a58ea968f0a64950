"""Validate messages: first the shape, then the values of fields and their consistency.

Every fault has the path of the field at fault. A message is refused for its first fault.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.core.ids import check_agent, check_session, is_aof_id
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.operation import Fault, validate_shape
from dragoman.protocols.aof import wire
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

S = TypeVar("S")

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


def unknown_message_faults(message: wire.UnknownMessage) -> list[Fault]:
    """List the faults of a message of an unknown type."""
    kind = message.type[:_MAX_QUOTED]
    reason = f"{kind!a} is not a type of AOF/1; known: {', '.join(wire.MESSAGES)}"
    return [*_envelope_faults(message), Fault("unknown_type", reason, "type")]


def message_faults(message: wire.Message) -> list[Fault]:
    """List the faults of a message that has the shape of its type."""
    faults = _envelope_faults(message)
    faults += _PAYLOAD_CHECKS[type(message)](message.payload, "payload.")
    payload_task = message.payload.task_id
    if payload_task not in (message.task_id, UNSET):
        reason = f"the payload is about {payload_task}, its envelope about {message.task_id}"
        faults.append(Fault("taskId_mismatch", reason, "payload.taskId"))
    return faults


def _envelope_faults(message: wire.Envelope[Any]) -> list[Fault]:
    return _field_faults(
        "",
        ("taskId", message.task_id, _check_task_id),
        ("fromAgent", message.from_agent, _check_agent_name),
        ("toAgent", message.to_agent, _check_agent_name),
        ("sentAt", message.sent_at, _check_timestamp),
        ("projectId", message.project_id, _check_project),
    )


def completion_faults(
    payload: wire.CompletionPayload | wire.CompleteTaskArguments, prefix: str = ""
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


def update_faults(
    payload: wire.StatusPayload | wire.UpdateTaskArguments, prefix: str = ""
) -> list[Fault]:
    faults = _field_faults(prefix, *_repeated_fields(payload))
    parts = (payload.status, payload.progress, payload.blockers, payload.notes)
    if all(part is UNSET for part in parts):
        reason = "at least one of status, progress, blockers and notes is needed"
        faults.append(envelope_fault(reason, prefix.rstrip(".")))
    return faults


def session_faults(arguments: wire.SessionEndArguments) -> list[Fault]:
    return _field_faults("", ("sessionId", arguments.session_id, _check_session_name))


def _request_faults(payload: wire.HandoffRequestPayload, prefix: str) -> list[Fault]:
    faults = _field_faults(
        prefix,
        *_repeated_fields(payload),
        ("parentTaskId", payload.parent_task_id, _check_task_id),
        ("dueBy", payload.due_by, _check_timestamp),
    )
    faults += _ref_faults(f"{prefix}expectedOutputs", payload.expected_outputs)
    faults += _ref_faults(f"{prefix}contextRefs", payload.context_refs)
    return faults


def _acceptance_faults(payload: wire.HandoffAnswerPayload, prefix: str) -> list[Fault]:
    faults = _field_faults(prefix, *_repeated_fields(payload))
    if not payload.accepted:
        reason = "a handoff.accepted says true; send handoff.rejected to reject"
        faults.append(envelope_fault(reason, f"{prefix}accepted"))
    return faults


def _rejection_faults(payload: wire.HandoffAnswerPayload, prefix: str) -> list[Fault]:
    faults = _field_faults(prefix, *_repeated_fields(payload))
    if payload.accepted:
        reason = "a handoff.rejected says false; send handoff.accepted to accept"
        faults.append(envelope_fault(reason, f"{prefix}accepted"))
    return faults


_PAYLOAD_CHECKS: Final[dict[type[wire.Message], Callable[[Any, str], list[Fault]]]] = {
    wire.CompletionReportMessage: completion_faults,
    wire.StatusUpdateMessage: update_faults,
    wire.HandoffRequestMessage: _request_faults,
    wire.HandoffAcceptedMessage: _acceptance_faults,
    wire.HandoffRejectedMessage: _rejection_faults,
}


def _repeated_fields(payload: wire.Payload) -> tuple[FieldCheck, ...]:
    """Fields that every payload may repeat, in the form that they have in the envelope."""
    return (
        ("taskId", payload.task_id, _check_task_id),
        ("agentId", payload.agent_id, _check_agent_name),
        ("fromAgent", payload.from_agent, _check_agent_name),
        ("toAgent", payload.to_agent, _check_agent_name),
    )


# --- identity ---------------------------------------------------------------------------------


def check_identity(message: wire.Message, speaker: str) -> Fault | None:
    """Check that the sender named in a message is the speaker (S-ROLE)."""
    return next(identity_faults(message, speaker), None)


def identity_faults(message: wire.Message, speaker: str) -> Iterator[Fault]:
    """Yield a fault for every place that names another sender or a second addressee."""
    payload: wire.Payload = message.payload
    for path, name in (
        ("fromAgent", message.from_agent),
        ("payload.agentId", payload.agent_id),
        ("payload.fromAgent", payload.from_agent),
    ):
        if name not in (speaker, UNSET):
            yield _identity_fault(f"{speaker} cannot speak for {name}", path)
    addressee = message.to_agent
    if addressee != wire.DISPATCHER and payload.to_agent not in (addressee, UNSET):
        yield _identity_fault(
            f"the payload is for {payload.to_agent}, its envelope for {addressee}",
            "payload.toAgent",
        )


def check_tool_identity(payload: wire.Payload, speaker: str) -> Fault | None:
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
