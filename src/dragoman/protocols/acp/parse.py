"""Parse and validate ACP: recognize a message, fill in defaults, find the faults of a package."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec
from msgspec import UNSET, Raw, Struct

from dragoman.core.handoff.state import MAX_ITEMS, Handoff, all_work_items_of
from dragoman.core.ids import check_agent
from dragoman.core.timestamps import parse_rfc3339
from dragoman.engine.operation import (
    Fault,
    Operation,
    ParsedMessage,
    RawMessage,
    candidate_messages,
    validate_shape,
)
from dragoman.protocols.acp import wire
from dragoman.text.repository_paths import check_path
from dragoman.text.strict_json import get_field

# --- actions ----------------------------------------------------------------------------------

_PACKAGE_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "task": {"priority": "normal"},
    "policy": {"classification": "internal", "requires_human_approval": False},
}
"""Part of a package -> defaults of its fields."""


class ActionCall(Struct, frozen=True):
    """An action with its validated arguments."""

    action: str
    arguments: Any
    filled: dict[str, Any]
    """The arguments as JSON, with defaults filled in."""
    original: Mapping[str, Any] = {}
    """The arguments as they came."""
    looked_up: list[Handoff] = []
    """The handoff, if it was looked up already, so that the reply need not read it again."""
    warnings: list[str] = []
    """Warnings for the caller."""


def parse_action(value: Any) -> ActionCall | Fault:
    """Parse the action in a JSON value, or return its first fault."""
    if not isinstance(value, dict):
        return Fault("schema_invalid", "this is no JSON object with an action")
    fields = cast(dict[str, Any], value)
    action = fields.get("action")
    if not isinstance(action, str) or action not in wire.ACTION_SHAPES:
        return Fault(
            "schema_invalid", f"there are the actions {', '.join(wire.ACTION_NAMES)}", "action"
        )
    shape, stated = wire.ACTION_SHAPES[action], drop_blank_fields(fields)
    full = fill_defaults(stated) if action == "initiate" else stated
    arguments = parse_shape(full, shape)
    if isinstance(arguments, Fault):
        return arguments
    return next(_action_faults(arguments, full), None) or ActionCall(
        action, arguments, full, fields
    )


def drop_blank_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Drop fields that hold their published default, because some clients send all fields."""
    return {
        name: value
        for name, value in fields.items()
        if (type(value), value) != (type(default := wire.CALL_DEFAULTS.get(name)), default)
    }


def fill_defaults(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an initiate, with defaults filled in."""
    full: dict[str, Any] = {"policy": {}, **fields}
    for name, defaults in _PACKAGE_DEFAULTS.items():
        part = full.get(name)
        if isinstance(part, dict):
            full[name] = {**defaults, **cast(dict[str, Any], part)}
    return full


def parse_shape(value: Any, shape: Any) -> Any:
    """Validate a JSON value against a shape; a Fault if it does not fit."""
    return validate_shape(value, shape, "schema_invalid")


# --- messages ---------------------------------------------------------------------------------


def parse_send(value: Any) -> wire.Send | Fault:
    """Parse a message to send; its payload must fit its type and the size limit."""
    sent = parse_shape(value, wire.Send)
    if isinstance(sent, Fault):
        return sent
    size = len(msgspec.json.encode(sent.payload))
    if size > wire.MAX_PAYLOAD_BYTES:
        detail = f"it has {size} bytes, and at most {wire.MAX_PAYLOAD_BYTES} are taken"
        return Fault("message_too_large", detail, "payload")
    if sent.type.startswith("handoff.") and sent.payload.keys() != wire.HANDOFF_PAYLOAD_KEYS:
        detail = f"a {sent.type} carries handoff_id and package_hash, and nothing else"
        return Fault("schema_invalid", detail, "payload")
    return sent


# --- recognition ------------------------------------------------------------------------------

HANDOFF: Final = "acp_handoff"

SEND: Final = "acp_send"


def parse_message(raw: RawMessage, operations: Mapping[str, Operation]) -> ParsedMessage | None:
    """Parse the ACP message in what came in, bare or wrapped; None: it is no ACP message."""
    value = None if raw.is_too_large else raw.value
    for inner in candidate_messages(value):
        name = detect_operation(inner)
        if name:
            return _parsed_message(operations[name], cast(Mapping[str, Any], inner), Raw(raw.text))
    return None


def detect_operation(value: Any) -> str:
    """Operation that a JSON value is meant for; empty: none."""
    if _text_field(value, "action") in wire.ACTION_SHAPES:
        return HANDOFF
    is_addressed = isinstance(get_field(value, "payload"), dict) and "to" in value
    return SEND if is_addressed and _text_field(value, "type") in wire.MESSAGE_TYPES else ""


def _parsed_message(
    operation: Operation, value: Mapping[str, Any], original_text: Raw
) -> ParsedMessage:
    sender = _text_field(value, "from_agent" if operation.name == HANDOFF else "from")
    read = operation.read(value)
    is_faulty = isinstance(read, Fault)
    return ParsedMessage(
        kind=operation.name,
        original_text=original_text,
        sender="" if check_agent(sender) else sender,
        ordering_key=_text_field(value, "handoff_id") or _text_field(value.get("task"), "task_id"),
        operation=None if is_faulty else operation,
        message=None if is_faulty else read,
        fault=read if is_faulty else None,
    )


def _text_field(value: Any, key: str) -> str:
    text = get_field(value, key)
    return text if isinstance(text, str) else ""


# --- faults that a shape cannot express -------------------------------------------------------


def _action_faults(arguments: wire.ActionArguments, full: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults that the shape of an action cannot express."""
    if isinstance(arguments, wire.Initiate):
        yield from deadline_faults(arguments.deadline, arguments.task)
        yield from task_faults(arguments.task)
        yield from artifact_faults(arguments.artifacts, "artifacts")
        yield from item_faults(full)
    if isinstance(arguments, wire.Complete):
        yield from artifact_faults(arguments.final_artifacts, "final_artifacts")


def task_faults(task: wire.Task) -> Iterator[Fault]:
    """Faults of a package's task beyond its shape."""
    if task.deadline is not UNSET:
        yield from moment_faults("task.deadline", task.deadline)


def artifact_faults(artifacts: tuple[wire.Artifact, ...], at: str) -> Iterator[Fault]:
    """Duplicate artifact ids and unsafe paths."""
    names = set[str]()
    for number, artifact in enumerate(artifacts):
        path = f"{at}[{number}]"
        if artifact.artifact_id in names:
            reason = f"{artifact.artifact_id[:80]!a} stands twice"
            yield Fault("schema_invalid", reason, f"{path}.artifact_id")
        names.add(artifact.artifact_id)
        if artifact.ref.type == "file" and (detail := unsafe_path_reason(artifact.ref.path)):
            yield Fault("schema_invalid", detail, f"{path}.ref.path")


def item_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    """Too many work items."""
    count = len(all_work_items_of(package))
    if count > MAX_ITEMS:
        reason = f"it refers to {count} items of a work queue, and at most {MAX_ITEMS} go along"
        yield Fault("schema_invalid", reason, "task.external_refs")


def unsafe_path_reason(path: str) -> str | None:
    """Reason why a path, absolute or relative to a root, must not be followed; None: it may."""
    return check_path(path.removeprefix("/"))


def deadline_faults(stated: str, task: wire.Task | None) -> Iterator[Fault]:
    """Faults of the deadline beside a package: a package has only one."""
    wrong = list(moment_faults("deadline", stated))
    yield from wrong
    within = "" if task is None or task.deadline is UNSET else task.deadline
    if wrong or not stated or not within or any(moment_faults("task.deadline", within)):
        return
    if parse_rfc3339(stated) != parse_rfc3339(within):
        reason = f"task.deadline is another one, {within}: state it once"
        yield Fault("schema_invalid", reason, "deadline")


def moment_faults(field: str, text: str) -> Iterator[Fault]:
    """Faults of a time as text; an empty text is none."""
    try:
        parse_rfc3339(text) if text else None
    except ValueError as error:
        yield Fault("schema_invalid", str(error), field)


def package_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults of a package: the first one of its shape, else those that no shape can express."""
    parsed = parse_shape(package, wire.Package)
    if isinstance(parsed, Fault):
        yield parsed
        return
    yield from task_faults(parsed.task)
    yield from artifact_faults(parsed.artifacts, "artifacts")
    yield from item_faults(package)
