"""A package: what a sender gave, as it is handed over, and by what it is known (S-ACP-2)."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, cast, get_args, get_origin

from msgspec import UNSET, UnsetType, defstruct
from msgspec.structs import FieldInfo, fields

from dragoman.core.moments import parse_rfc3339
from dragoman.core.states.handoff_package import hash_of
from dragoman.engine.faults import Fault
from dragoman.protocols.acp.actions import SHAPES, Initiate
from dragoman.protocols.acp.read import (
    artifact_faults,
    completed,
    deadline_faults,
    item_faults,
    meant_by,
    shaped,
    task_faults,
)
from dragoman.protocols.acp.wire import (
    SCHEMA_VERSION,
    SECTIONS,
    Artifact,
    Artifacts,
    Package,
    Task,
)
from dragoman.text.shape_words import MISSING, below, no_such_field


def composed(said: Mapping[str, Any]) -> dict[str, Any]:
    """Compose the package of an initiate, before the hub completes and seals it.

    A deadline beside the package goes into it, so that it is hashed too.
    """
    given = _part(said, "verification")
    deadline = {"deadline": said["deadline"]} if said.get("deadline") else {}
    return {
        "task": {**said["task"], **deadline},
        "context": said["context"],
        "work_state": said["work_state"],
        "artifacts": said.get("artifacts", []),
        "provenance": _part(said, "provenance"),
        "policy": said["policy"],
        "verification": {"schema_version": given.get("schema_version", SCHEMA_VERSION)},
    }


def due_at_of(given: Initiate) -> int | None:
    """Parse the deadline of an initiate, if one is stated."""
    stated = given.deadline or given.task.deadline or ""
    return parse_rfc3339(stated) if stated else None


def hash_as_given(said: Mapping[str, Any]) -> str:
    """Hash of the package exactly as its sender wrote it, without defaults."""
    return hash_of({name: said[name] for name in SECTIONS if name in said})


def package_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    """Find every fault of a package, part by part."""
    yield from _faults_of(package, Package)
    yield from _beyond_shape(package)


def offer_faults(said: Mapping[str, Any]) -> Iterator[Fault]:
    """Find every fault of the arguments of an initiate."""
    full = completed(said)
    yield from _faults_of(full, Initiate)
    yield from _beyond_shape(full)
    deadline, task = full.get("deadline"), shaped(full.get("task"), Task)
    if isinstance(deadline, str):
        yield from deadline_faults(deadline, task if isinstance(task, Task) else None)


def action_faults(said: Mapping[str, Any], first: Fault) -> Iterator[Fault]:
    """Find every fault of the arguments of an action; `first` is the one that is known."""
    if said["action"] == "initiate":
        found = list(offer_faults(meant_by(said)))
    else:
        found = list(_faults_of(meant_by(said), SHAPES[said["action"]]))
    yield from found or (first,)


def _beyond_shape(given: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults that the shapes of a package's parts cannot express."""
    task, artifacts = shaped(given.get("task"), Task), shaped(given.get("artifacts"), Artifacts)
    if isinstance(task, Task):
        yield from task_faults(task)
    if isinstance(artifacts, tuple):
        yield from artifact_faults(cast(tuple[Artifact, ...], artifacts), "artifacts")
    yield from item_faults(given)


def _faults_of(given: Mapping[str, Any], shape: Any, at: str = "") -> Iterator[Fault]:
    """Missing, unknown and invalid fields of an object, key by key."""
    known = _fields_of(shape)
    for name in given:
        if name not in known:
            yield Fault("schema_invalid", no_such_field(name, known), below(at, name[:64]))
    for name, field in known.items():
        if name not in given:
            if field.required:
                yield Fault("schema_invalid", MISSING, below(at, name))
            continue
        value = given[name]
        if isinstance(value, dict) and _is_shape(field.type):
            yield from _faults_of(cast(dict[str, Any], value), field.type, below(at, name))
            continue
        found = shaped({name: value}, _any_of(shape))
        if isinstance(found, Fault):
            first = Fault(found.code, found.reason, below(at, found.path))
            yield from [*_faults_in(value, _items_of(field.type), below(at, name))] or (first,)


def _faults_in(value: Any, shape: Any, at: str) -> Iterator[Fault]:
    """The same for each object in a list."""
    if shape is None or not isinstance(value, list):
        return
    for number, one in enumerate(cast(list[Any], value)):
        if isinstance(one, dict):
            yield from _faults_of(cast(dict[str, Any], one), shape, f"{at}[{number}]")


@cache
def _items_of(type: Any) -> Any:
    """Shape of the items of a list; None if they are no objects."""
    inner = get_args(type)
    if get_origin(type) is Annotated:
        return _items_of(inner[0])
    return inner[0] if get_origin(type) is tuple and _is_shape(inner[0]) else None


def _is_shape(type: Any) -> bool:
    return hasattr(type, "__struct_fields__")


@cache
def _fields_of(shape: Any) -> Mapping[str, FieldInfo]:
    """Fields of a shape by name; cached, because finding them takes longer than all checks."""
    return {field.name: field for field in fields(shape)}


@cache
def _any_of(shape: Any) -> Any:
    """The same shape with every field optional."""
    of_any = [(name, field.type | UnsetType, UNSET) for name, field in _fields_of(shape).items()]
    return defstruct(shape.__name__, of_any, frozen=True)


def _part(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = said.get(name, {})
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}
