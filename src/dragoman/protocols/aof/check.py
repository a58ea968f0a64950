"""What is wrong with a message: its shape first, then what its fields say and say together.

Every finding has the path of what is wrong; a message is refused for the first one, `lint` lists
them all.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeGuard, TypeVar, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import fields

from dragoman.core.ids import check_agent, check_session, is_aof_id
from dragoman.core.moments import parse_rfc3339
from dragoman.engine.faults import Fault, in_shape
from dragoman.protocols.aof.wire import (
    DISPATCHER,
    MESSAGES,
    CompleteTask,
    Completion,
    CompletionReport,
    Count,
    Envelope,
    HandoffAccepted,
    HandoffAnswer,
    HandoffRejected,
    HandoffRequest,
    HandoffRequested,
    Message,
    Payload,
    SessionEnd,
    StatusMessage,
    StatusUpdate,
    UnknownMessage,
    UpdateTask,
)
from dragoman.text.safe_path import why_unsafe
from dragoman.text.shape_words import MISSING, NO_OBJECT, below

_USUAL_MOMENT: Final = re.compile(
    r"[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3])(?::[0-5]\d){2}\.\d{3}Z",
    re.ASCII,
)
"""Spelling of nearly every timestamp; anything that matches is valid."""

_SHOWN: Final = 40
_REMEMBERED: Final = 4_096
"""The same few names come again and again."""

_STEP: Final = re.compile(r"[^.\[]+|\[\d+\]")

S = TypeVar("S")
T = TypeVar("T", bound=Struct)
Field = tuple[str, str | UnsetType, Callable[[str], str | None]]
"""Path, value, and the check that returns the reason for a wrong value."""


def envelope_fault(reason: str, path: str = "") -> Fault:
    """Build a fault of the envelope."""
    return Fault("invalid_envelope", reason, path)


def shaped(value: Any, shape: type[S]) -> S | Fault:
    """Convert a parsed JSON value to this shape, or return its first fault."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError:
        pass
    return in_shape(with_whole_numbers(value), shape, "invalid_envelope")


def shape_faults(value: Any, shape: type[Struct], at: str = "") -> Iterator[Fault]:
    """Yield everything that keeps a parsed JSON value from having this shape."""
    if not isinstance(value, dict):
        yield envelope_fault(NO_OBJECT, at)
        return
    given = cast(Mapping[str, Any], value)
    for field in fields(shape):
        path = below(at, field.encode_name)
        if field.encode_name not in given:
            if field.required:
                yield envelope_fault(MISSING, path)
            continue
        inner, kind = given[field.encode_name], cast(type[Any], field.type)
        if _is_struct(kind):
            yield from shape_faults(inner, kind, path)
            continue
        read = shaped(inner, kind)
        if isinstance(read, Fault):
            yield envelope_fault(read.reason, below(path, read.path))


def salvaged(value: Any, shape: type[T]) -> T:
    """Convert what can be used of a value that may not have the shape; the rest counts as absent.

    Only for finding further faults: required fields may be UNSET in the result.
    """
    given = cast(Mapping[str, Any], value if isinstance(value, dict) else {})
    return shape(
        **{
            field.name: _salvaged(given.get(field.encode_name, UNSET), field.type)
            for field in fields(shape)
        }
    )


def _salvaged(value: Any, kind: Any) -> Any:
    if _is_struct(kind):
        return salvaged(value, kind)
    read = UNSET if value is UNSET else shaped(value, kind)
    if read is UNSET or isinstance(read, Fault):
        return 0 if kind == Count else UNSET
    return read


def apart_from(known: Sequence[Fault], found: Iterable[Fault]) -> Iterator[Fault]:
    """Yield faults whose path is not that of a known fault, nor above or below it."""
    places = [_steps(fault.path) for fault in known]
    for fault in found:
        steps = _steps(fault.path)
        if not any(all(map(str.__eq__, steps, place)) for place in places):
            yield fault


def _steps(path: str) -> list[str]:
    return _STEP.findall(path)


def _is_struct(kind: Any) -> TypeGuard[type[Struct]]:
    return isinstance(kind, type) and issubclass(kind, Struct)


def with_whole_numbers(value: Any) -> Any:
    """Write 1.0 as 1: JSON has one kind of number, and some writers use fractions."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        items = cast(Mapping[str, Any], value).items()
        return {name: with_whole_numbers(inner) for name, inner in items}
    if isinstance(value, list):
        return [with_whole_numbers(inner) for inner in cast(list[Any], value)]
    return value


def unknown_type(message: UnknownMessage) -> Fault:
    """Return the first fault of a message of an unknown type."""
    return unknown_faults(message, message.type)[0]


def unknown_faults(message: UnknownMessage, kind: str) -> list[Fault]:
    """List the faults of a message of an unknown type."""
    reason = f"{kind[:_SHOWN]!a} is not a type of AOF/1; known: {', '.join(MESSAGES)}"
    return [*_envelope_faults(message), Fault("unknown_type", reason, "type")]


def message_faults(message: Message) -> list[Fault]:
    """List the faults of a message that has the shape of its type."""
    faults = _envelope_faults(message)
    faults += _FAULTS[type(message)](message.payload, "payload.")
    repeated = message.payload.task_id
    if repeated is not UNSET and message.task_id not in (repeated, UNSET):
        reason = f"the payload is about {repeated}, its envelope about {message.task_id}"
        faults.append(Fault("taskId_mismatch", reason, "payload.taskId"))
    return faults


def _envelope_faults(message: Envelope[Any]) -> list[Fault]:
    return _wrong(
        "",
        ("taskId", message.task_id, _why_no_task_id),
        ("fromAgent", message.from_agent, _why_no_agent),
        ("toAgent", message.to_agent, _why_no_agent),
        ("sentAt", message.sent_at, _why_no_moment),
        ("projectId", message.project_id, _why_no_project),
    )


def completion_faults(payload: Completion | CompleteTask, at: str = "") -> list[Fault]:
    """List the faults of a report."""
    faults = _wrong(
        at,
        *_names(payload),
        ("summaryRef", payload.summary_ref, why_unsafe),
        ("handoffRef", payload.handoff_ref, why_unsafe),
    )
    faults += _wrong_refs(f"{at}deliverables", payload.deliverables)
    tests = payload.tests
    if tests.passed + tests.failed > tests.total:
        reason = f"{tests.passed} passed and {tests.failed} failed are more than {tests.total}"
        faults.append(envelope_fault(reason, f"{at}tests"))
    if payload.outcome == "blocked" and not any(map(str.strip, payload.blockers or ())):
        faults.append(
            envelope_fault("Required for blocked: say what blocks the work", f"{at}blockers")
        )
    return faults


def update_faults(payload: StatusUpdate | UpdateTask, at: str = "") -> list[Fault]:
    """List the faults of an update."""
    faults = _wrong(at, *_names(payload))
    said = (payload.status, payload.progress, payload.blockers, payload.notes)
    if all(part is UNSET for part in said):
        reason = "at least one of status, progress, blockers and notes is needed"
        faults.append(envelope_fault(reason, at.rstrip(".")))
    return faults


def session_faults(arguments: SessionEnd) -> list[Fault]:
    """List the faults of the end of a session."""
    return _wrong("", ("sessionId", arguments.session_id, _why_no_session))


def _request_faults(payload: HandoffRequest, at: str) -> list[Fault]:
    faults = _wrong(
        at,
        *_names(payload),
        ("parentTaskId", payload.parent_task_id, _why_no_task_id),
        ("dueBy", payload.due_by, _why_no_moment),
    )
    faults += _wrong_refs(f"{at}expectedOutputs", payload.expected_outputs)
    faults += _wrong_refs(f"{at}contextRefs", payload.context_refs)
    return faults


def _acceptance_faults(payload: HandoffAnswer, at: str) -> list[Fault]:
    faults = _wrong(at, *_names(payload))
    if not payload.accepted:
        reason = "a handoff.accepted says true; send handoff.rejected to reject"
        faults.append(envelope_fault(reason, f"{at}accepted"))
    return faults


def _rejection_faults(payload: HandoffAnswer, at: str) -> list[Fault]:
    faults = _wrong(at, *_names(payload))
    if payload.accepted:
        reason = "a handoff.rejected says false; send handoff.accepted to accept"
        faults.append(envelope_fault(reason, f"{at}accepted"))
    return faults


_FAULTS: Final[dict[type[Message], Callable[[Any, str], list[Fault]]]] = {
    CompletionReport: completion_faults,
    StatusMessage: update_faults,
    HandoffRequested: _request_faults,
    HandoffAccepted: _acceptance_faults,
    HandoffRejected: _rejection_faults,
}


def _names(payload: Payload) -> tuple[Field, ...]:
    """Fields that every payload may repeat, in the form that they have in the envelope."""
    return (
        ("taskId", payload.task_id, _why_no_task_id),
        ("agentId", payload.agent_id, _why_no_agent),
        ("fromAgent", payload.from_agent, _why_no_agent),
        ("toAgent", payload.to_agent, _why_no_agent),
    )


def impostor(message: Message, speaker: str) -> Fault | None:
    """Check that the sender named in a message is the speaker (S-ROLE)."""
    return next(impostors(message, speaker), None)


def impostors(message: Message, speaker: str) -> Iterator[Fault]:
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


def impostor_in_tool(payload: Payload, speaker: str) -> Fault | None:
    """Check the sender named in a tool's arguments, which have no envelope."""
    for path, name in (("agentId", payload.agent_id), ("fromAgent", payload.from_agent)):
        if name not in (speaker, UNSET):
            return _identity_fault(f"{speaker} cannot speak for {name}", path)
    return None


def _identity_fault(reason: str, path: str) -> Fault:
    return Fault("identity_mismatch", reason, path)


def _wrong(at: str, *fields: Field) -> list[Fault]:
    """Collect the faults of the given fields that are present."""
    return [
        envelope_fault(reason, at + path)
        for path, text, why_wrong in fields
        if text is not UNSET and (reason := why_wrong(text)) is not None
    ]


def _wrong_refs(path: str, refs: tuple[str, ...] | UnsetType) -> list[Fault]:
    return [
        envelope_fault(reason, f"{path}[{index}]")
        for index, ref in enumerate(refs or ())
        if (reason := why_unsafe(ref)) is not None
    ]


@lru_cache(_REMEMBERED)
def _why_no_task_id(text: str) -> str | None:
    if is_aof_id(text):
        return None
    return (
        f"{text[:_SHOWN]!a} is not an AOF task id like TASK-2026-02-09-057; for a task with "
        "another name, dragoman task show prints it as aofId"
    )


@lru_cache(_REMEMBERED)
def _why_no_agent(text: str) -> str | None:
    refusal = check_agent(text)
    return None if refusal is None else refusal.detail


def _why_no_project(text: str) -> str | None:
    return None if text.isprintable() else "it has an invisible or control character"


def _why_no_session(text: str) -> str | None:
    refusal = check_session(text)
    return None if refusal is None else refusal.detail


def _why_no_moment(text: str) -> str | None:
    if _USUAL_MOMENT.fullmatch(text):
        return None
    try:
        parse_rfc3339(text)
    except ValueError as error:
        return str(error)
    return None
