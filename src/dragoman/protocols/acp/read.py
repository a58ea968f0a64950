"""From JSON to an action: the shape that it asks for, what is usual filled in, nothing wrong."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from msgspec import UNSET, Struct

from dragoman.core.moments import parse_rfc3339
from dragoman.core.states.handoff import Handoff
from dragoman.core.states.handoff_items import MOST_ITEMS, all_items
from dragoman.engine.faults import Fault, in_shape
from dragoman.protocols.acp.actions import (
    ACTIONS,
    SHAPES,
    USUAL,
    Action,
    Complete,
    Draft,
    Initiate,
)
from dragoman.protocols.acp.wire import Artifact, Task
from dragoman.text.safe_path import why_unsafe

_USUAL: Final[Mapping[str, Mapping[str, Any]]] = {
    "task": {"priority": "normal"},
    "policy": {"classification": "internal", "requires_human_approval": False},
}
"""Part of a package -> defaults of its fields."""


class Asked(Struct, frozen=True):
    """An action with its validated arguments."""

    action: str
    given: Any
    said: dict[str, Any]
    """The arguments as JSON, with defaults filled in."""
    words: Mapping[str, Any] = {}
    """The arguments as they came."""
    seen: list[Handoff] = []
    """The handoff, if it was looked up already, so that the reply need not read it again."""
    warnings: list[str] = []
    """Warnings for the caller."""


def read_action(value: Any) -> Asked | Fault:
    """Parse the action in a JSON value, or return its first fault."""
    if not isinstance(value, dict):
        return Fault("schema_invalid", "this is no JSON object with an action")
    said = cast(dict[str, Any], value)
    action = said.get("action")
    if not isinstance(action, str) or action not in SHAPES:
        return Fault("schema_invalid", f"there are the actions {', '.join(ACTIONS)}", "action")
    shape, meant = SHAPES[action], meant_by(said)
    full = completed(meant) if action == "initiate" else meant
    given = shaped(full, shape)
    if isinstance(given, Fault):
        return given
    return next(_faults(given, full), None) or Asked(action, given, full, said)


def meant_by(said: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an action without blank fields."""
    shape = SHAPES[said["action"]]
    return {name: value for name, value in said.items() if not _is_blank(name, value, shape)}


def _is_blank(name: str, value: Any, shape: type[Action]) -> bool:
    """Return whether a field only holds its published default, because a client sends all fields.

    A part of a draft never counts as blank: to empty it is meant.
    """
    if shape is Draft and name in Draft.__struct_fields__:
        return False
    return name in USUAL and value == USUAL[name] and type(value) is type(USUAL[name])


def completed(said: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of an initiate, with defaults filled in."""
    full: dict[str, Any] = {"policy": {}, **said}
    for name, usual in _USUAL.items():
        part = full.get(name)
        if isinstance(part, dict):
            full[name] = {**usual, **cast(dict[str, Any], part)}
    return full


def shaped(value: Any, shape: Any) -> Any:
    """Validate a JSON value against a shape; a Fault if it does not fit."""
    return in_shape(value, shape, "schema_invalid")


def _faults(given: Action, full: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults that the shape of an action cannot express."""
    if isinstance(given, Initiate):
        yield from deadline_faults(given.deadline, given.task)
        yield from task_faults(given.task)
        yield from artifact_faults(given.artifacts, "artifacts")
        yield from item_faults(full)
    if isinstance(given, Complete):
        yield from artifact_faults(given.final_artifacts, "final_artifacts")


def task_faults(task: Task) -> Iterator[Fault]:
    """Faults of a package's task beyond its shape."""
    if task.deadline is not UNSET:
        yield from moment_faults("task.deadline", task.deadline)


def artifact_faults(artifacts: tuple[Artifact, ...], at: str) -> Iterator[Fault]:
    """Duplicate artifact ids and unsafe paths."""
    names = set[str]()
    for number, artifact in enumerate(artifacts):
        here = f"{at}[{number}]"
        if artifact.artifact_id in names:
            reason = f"{artifact.artifact_id[:80]!a} stands twice"
            yield Fault("schema_invalid", reason, f"{here}.artifact_id")
        names.add(artifact.artifact_id)
        if artifact.ref.type == "file" and (why := why_astray(artifact.ref.path)):
            yield Fault("schema_invalid", why, f"{here}.ref.path")


def item_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    """Too many work items."""
    count = len(all_items(package))
    if count > MOST_ITEMS:
        reason = f"it refers to {count} items of a work queue, and at most {MOST_ITEMS} go along"
        yield Fault("schema_invalid", reason, "task.external_refs")


def why_astray(path: str) -> str | None:
    """Reason why a path, absolute or relative to a root, must not be followed; None: it may."""
    return why_unsafe(path.removeprefix("/"))


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
