"""A package: what a sender gave, as it is handed over, and by what it is known (S-ACP-2)."""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from msgspec.structs import fields

from dragoman.core.handoff_package import hash_of
from dragoman.engine.operation import Fault
from dragoman.protocols.acp.read import artifact_faults, shaped, task_faults
from dragoman.protocols.acp.wire import SCHEMA_VERSION, SECTIONS, Package


def composed(said: Mapping[str, Any]) -> dict[str, Any]:
    """The package of an initiate, before the hub adds what it knows and seals it."""
    given = _part(said, "verification")
    return {
        "task": said["task"],
        "context": said["context"],
        "work_state": said["work_state"],
        "artifacts": said.get("artifacts", []),
        "provenance": _part(said, "provenance"),
        "policy": said["policy"],
        "verification": {"schema_version": given.get("schema_version", SCHEMA_VERSION)},
    }


def hash_as_given(said: Mapping[str, Any]) -> str:
    """The hash of the package exactly as its sender wrote it, nothing filled in."""
    return hash_of({name: said[name] for name in SECTIONS if name in said})


def package_faults(package: Mapping[str, Any]) -> Iterator[Fault]:
    """Everything in which this is no package, part by part."""
    known = {field.name: field for field in fields(Package)}
    for name in package:
        if name not in known:
            yield Fault("schema_invalid", "a package has nothing of this name", name[:64])
    parts = dict[str, Any]()
    for name, field in known.items():
        if name not in package:
            yield Fault("schema_invalid", "it is missing", name)
            continue
        part = shaped(package[name], field.type)
        if isinstance(part, Fault):
            yield Fault(part.code, part.reason, _below(name, part.path))
        else:
            parts[name] = part
    if "task" in parts:
        yield from task_faults(parts["task"])
    if "artifacts" in parts:
        yield from artifact_faults(parts["artifacts"], "artifacts")


def _below(name: str, path: str) -> str:
    joint = "" if not path or path.startswith("[") else "."
    return f"{name}{joint}{path}"


def _part(said: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = said.get(name, {})
    return cast(dict[str, Any], part) if isinstance(part, dict) else {}
