"""A package: what a sender gave, as it is handed over, and by what it is known (S-ACP-2)."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, cast, get_args, get_origin

from msgspec import UNSET, UnsetType, defstruct
from msgspec.structs import FieldInfo, fields

from dragoman.core.moments import parse_rfc3339
from dragoman.core.states.handoff_package import compute_package_hash
from dragoman.engine.faults import Fault
from dragoman.protocols.acp.actions import ACTION_SHAPES, Initiate
from dragoman.protocols.acp.read import (
    artifact_faults,
    deadline_faults,
    drop_blank_fields,
    fill_defaults,
    item_faults,
    parse_shape,
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
from dragoman.text.shape_words import MISSING, join_path, unknown_field_message


def compose_package(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Compose the package of an initiate, before the hub completes and seals it.

    A deadline beside the package goes into it, so that it is hashed too.
    """
    verification = _object_field(fields, "verification")
    deadline = {"deadline": fields["deadline"]} if fields.get("deadline") else {}
    return {
        "task": {**fields["task"], **deadline},
        "context": fields["context"],
        "work_state": fields["work_state"],
        "artifacts": fields.get("artifacts", []),
        "provenance": _object_field(fields, "provenance"),
        "policy": fields["policy"],
        "verification": {"schema_version": verification.get("schema_version", SCHEMA_VERSION)},
    }


def parse_due_at(arguments: Initiate) -> int | None:
    """Parse the deadline of an initiate, if one is stated."""
    stated = arguments.deadline or arguments.task.deadline or ""
    return parse_rfc3339(stated) if stated else None


def hash_as_sent(fields: Mapping[str, Any]) -> str:
    """Hash of the package exactly as its sender wrote it, without defaults."""
    return compute_package_hash({name: fields[name] for name in SECTIONS if name in fields})


def package_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    """Find every fault of a package, part by part."""
    yield from _shape_faults(package, Package)
    yield from _content_faults(package)


def offer_faults(fields: Mapping[str, Any]) -> Iterator[Fault]:
    """Find every fault of the arguments of an initiate."""
    full = fill_defaults(fields)
    yield from _shape_faults(full, Initiate)
    yield from _content_faults(full)
    deadline, task = full.get("deadline"), parse_shape(full.get("task"), Task)
    if isinstance(deadline, str):
        yield from deadline_faults(deadline, task if isinstance(task, Task) else None)


def argument_faults(fields: Mapping[str, Any], first: Fault) -> Iterator[Fault]:
    """Find every fault of the arguments of an action; `first` is the one that is known."""
    if fields["action"] == "initiate":
        found = list(offer_faults(drop_blank_fields(fields)))
    else:
        found = list(_shape_faults(drop_blank_fields(fields), ACTION_SHAPES[fields["action"]]))
    yield from found or (first,)


def _content_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    """Faults that the shapes of a package's parts cannot express."""
    task, artifacts = (
        parse_shape(package.get("task"), Task),
        parse_shape(package.get("artifacts"), Artifacts),
    )
    if isinstance(task, Task):
        yield from task_faults(task)
    if isinstance(artifacts, tuple):
        yield from artifact_faults(cast(tuple[Artifact, ...], artifacts), "artifacts")
    yield from item_faults(package)


def _shape_faults(candidate: Mapping[str, Any], shape: Any, at: str = "") -> Iterator[Fault]:
    """Missing, unknown and invalid fields of an object, key by key."""
    known = _shape_fields(shape)
    for name in candidate:
        if name not in known:
            yield Fault(
                "schema_invalid", unknown_field_message(name, known), join_path(at, name[:64])
            )
    for name, field in known.items():
        if name not in candidate:
            if field.required:
                yield Fault("schema_invalid", MISSING, join_path(at, name))
            continue
        value = candidate[name]
        if isinstance(value, dict) and _is_struct(field.type):
            yield from _shape_faults(cast(dict[str, Any], value), field.type, join_path(at, name))
            continue
        found = parse_shape({name: value}, _optional_shape(shape))
        if isinstance(found, Fault):
            first = Fault(found.code, found.reason, join_path(at, found.path))
            yield from [
                *_item_shape_faults(value, _item_shape(field.type), join_path(at, name))
            ] or (first,)


def _item_shape_faults(value: Any, shape: Any, at: str) -> Iterator[Fault]:
    """The same for each object in a list."""
    if shape is None or not isinstance(value, list):
        return
    for number, one in enumerate(cast(list[Any], value)):
        if isinstance(one, dict):
            yield from _shape_faults(cast(dict[str, Any], one), shape, f"{at}[{number}]")


@cache
def _item_shape(type: Any) -> Any:
    """Shape of the items of a list; None if they are no objects."""
    inner = get_args(type)
    if get_origin(type) is Annotated:
        return _item_shape(inner[0])
    return inner[0] if get_origin(type) is tuple and _is_struct(inner[0]) else None


def _is_struct(type: Any) -> bool:
    return hasattr(type, "__struct_fields__")


@cache
def _shape_fields(shape: Any) -> Mapping[str, FieldInfo]:
    """Fields of a shape by name; cached, because finding them takes longer than all checks."""
    return {field.name: field for field in fields(shape)}


@cache
def _optional_shape(shape: Any) -> Any:
    """The same shape with every field optional."""
    of_any = [(name, field.type | UnsetType, UNSET) for name, field in _shape_fields(shape).items()]
    return defstruct(shape.__name__, of_any, frozen=True)


def _object_field(fields: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = fields.get(name, {})
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}
