"""Types of the HTTP API for the dashboard, in TypeScript, made from the OpenAPI document."""

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

Schema = Mapping[str, Any]

HEAD: Final = "// The shapes of the HTTP API, written by docs/generate.py.\n"

_COMPONENTS: Final = "#/components/schemas/"

_PLAIN: Final = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


def write_types(document: Schema, dialects: Collection[str]) -> str:
    """Write a type for each shape of the API that is of no dialect."""
    components: Schema = document["components"]["schemas"]
    outside = (*dialects, "internal")
    paths = [
        described
        for path, described in document["paths"].items()
        if not path.startswith(tuple(f"/v1/{name}/" for name in outside))
    ]
    names = set[str]()
    open_names = set(_references(paths))
    while open_names:
        names |= open_names
        open_names = {name for one in open_names for name in _references(components[one])} - names
    shapes = (_write_shape(name, components[name]) for name in sorted(names))
    return HEAD + "".join(shapes)


def _references(value: Any) -> Iterator[str]:
    """The names of the components that a part of the document refers to."""
    match value:
        case {"$ref": str(reference)}:
            if reference.startswith(_COMPONENTS):
                yield reference.removeprefix(_COMPONENTS)
        case Mapping():
            for inner in value.values():
                yield from _references(inner)
        case list():
            for inner in value:
                yield from _references(inner)
        case _:
            return


def _write_shape(name: str, schema: Schema) -> str:
    if "properties" not in schema:
        return f"\nexport type {_to_name(name)} = {_write_type(schema)};\n"
    return f"\nexport interface {_to_name(name)} {{\n{''.join(_write_fields(schema))}}}\n"


def _write_fields(schema: Schema) -> Iterator[str]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        # A field with a default is there in every answer, and may be left out of a request.
        mark = "" if name in required else "?"
        key = name if name.isidentifier() else json.dumps(name)
        yield f"  {key}{mark}: {_write_type(field)};\n"


def _write_type(schema: Schema) -> str:
    match schema:
        case {"$ref": str(reference)}:
            return _to_name(reference.rpartition("/")[2])
        case {"enum": list(values)}:
            return " | ".join(json.dumps(value) for value in values)
        case {"anyOf": list(options)} | {"oneOf": list(options)}:
            return " | ".join(dict.fromkeys(map(_write_type, options)))
        case {"type": "array", "items": items}:
            return f"readonly ({_write_type(items)})[]"
        case {"type": "object", "additionalProperties": dict(values)} if values:
            return f"Readonly<Record<string, {_write_type(values)}>>"
        case {"type": "object"}:
            return "Readonly<Record<string, unknown>>"
        case {"type": str(kind)}:
            return _PLAIN.get(kind, "unknown")
        case _:
            return "unknown"


def _to_name(name: str) -> str:
    return "".join(part for part in name if part.isalnum() or part == "_")
