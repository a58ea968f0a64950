"""From JSON to an action: the shape that it asks for, what is usual filled in, nothing wrong."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from msgspec import UNSET, Struct

from dragoman.core.moments import parse_rfc3339
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_items import MAX_ITEMS, all_work_items_of
from dragoman.engine.faults import Fault, validate_shape
from dragoman.protocols.acp.actions import (
    ACTION_NAMES,
    ACTION_SHAPES,
    CALL_DEFAULTS,
    ActionArguments,
    Complete,
    Draft,
    Initiate,
)
from dragoman.protocols.acp.wire import Artifact, Task
from dragoman.text.safe_path import check_path

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
    if not isinstance(action, str) or action not in ACTION_SHAPES:
        return Fault("schema_invalid", f"there are the actions {', '.join(ACTION_NAMES)}", "action")
    shape, stated = ACTION_SHAPES[action], drop_blank_fields(fields)
    full = fill_defaults(stated) if action == "initiate" else stated
    arguments = parse_shape(full, shape)
    if isinstance(arguments, Fault):
        return arguments
    return next(_action_faults(arguments, full), None) or ActionCall(
        action, arguments, full, fields
    )


def drop_blank_fields(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an action without blank fields."""
    shape = ACTION_SHAPES[fields["action"]]
    return {
        name: value for name, value in fields.items() if not _is_blank_field(name, value, shape)
    }


def _is_blank_field(name: str, value: Any, shape: type[ActionArguments]) -> bool:
    """Return whether a field only holds its published default, because a client sends all fields.

    A part of a draft never counts as blank: to empty it is meant.
    """
    if shape is Draft and name in Draft.__struct_fields__:
        return False
    return (
        name in CALL_DEFAULTS
        and value == CALL_DEFAULTS[name]
        and type(value) is type(CALL_DEFAULTS[name])
    )


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


def _action_faults(arguments: ActionArguments, full: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults that the shape of an action cannot express."""
    if isinstance(arguments, Initiate):
        yield from deadline_faults(arguments.deadline, arguments.task)
        yield from task_faults(arguments.task)
        yield from artifact_faults(arguments.artifacts, "artifacts")
        yield from item_faults(full)
    if isinstance(arguments, Complete):
        yield from artifact_faults(arguments.final_artifacts, "final_artifacts")


def task_faults(task: Task) -> Iterator[Fault]:
    """Faults of a package's task beyond its shape."""
    if task.deadline is not UNSET:
        yield from moment_faults("task.deadline", task.deadline)


def artifact_faults(artifacts: tuple[Artifact, ...], at: str) -> Iterator[Fault]:
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


def deadline_faults(stated: str, task: Task | None) -> Iterator[Fault]:
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
