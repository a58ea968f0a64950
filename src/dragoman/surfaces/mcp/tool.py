"""A tool: name, description, argument shape and handler; its results, errors and schema."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct

from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.surfaces.mcp.context import HubContext
from dragoman.text.error_messages import shape_fault
from dragoman.text.strict_json import MAX_SAFE_INTEGER

_MAX_PATTERN = 60

_MIN_LARGE_LIMIT = 300
"""A limit of a text or a list from which on a model need not know it: it is refused by name."""

Schema = dict[str, Any]


class ToolResult(Struct, frozen=True):
    """The result of a tool."""

    data: Mapping[str, Any]


class ToolError(Struct, frozen=True):
    """An error of a tool, which a model can read and act upon."""

    code: str
    detail: str
    reply: Mapping[str, Any] | None = None
    """The same in the form of the tool's dialect, if that has one for it."""
    path: str = ""
    """The argument that it is about, if it is about one."""


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of a tool; an unknown field is an error."""


class RunInContext(Protocol):
    """Runs a function with the context of one request."""

    async def __call__(self, work: Callable[[HubContext], Any], *, reads: bool) -> Any:
        """Return the result of the function."""
        ...


class ToolCall(Struct, frozen=True):
    """One call of a tool."""

    arguments: Mapping[str, Any]
    run: RunInContext
    context: Any
    """The request as the SDK has it."""


class Pending(Struct, frozen=True):
    """The state of a call that waits, as long as nothing has come."""

    outcome: ToolResult | ToolError
    """The outcome if it is not waited for any longer."""
    seconds: float
    """The time to wait, from the call on."""
    retry: Callable[[ToolCall], Awaitable[Any]]
    """Looks again: returns a ToolResult or ToolError, or a Pending if nothing has come."""


class Tool(Struct, frozen=True):
    """One tool."""

    name: str
    description: str
    """Tells an agent when to use it."""
    schema: Schema
    run: Callable[[ToolCall], Awaitable[Any]]
    """Returns a ToolResult or ToolError, a Pending, or a result of the SDK's own."""
    group: str
    """The group of the tool: `core`, or a dialect's name. Profiles choose by it."""
    is_read_only: bool = False
    """True if it changes nothing."""
    is_listed: bool = True
    """False: called by its name alone, because every model reads the whole list at its start."""


def make_tool(
    name: str,
    description: str,
    shape: type[Struct],
    work: Callable[[HubContext, Any], Mapping[str, Any]],
    *,
    reads: bool = False,
    is_listed: bool = True,
) -> Tool:
    """Make a tool of the hub: `work` runs with the context and arguments of that shape."""

    async def run(call: ToolCall) -> ToolResult | ToolError:
        try:
            # Not strict, because a model may write a number as a text.
            arguments = msgspec.convert(dict(call.arguments), shape, strict=False)
        except msgspec.ValidationError as error:
            shape_error = shape_fault(error, shape)
            return ToolError("invalid_field", f"{name}: {shape_error}", path=shape_error.path)
        return await run_handler(call, lambda context: work(context, arguments), reads=reads)

    return Tool(name, description, argument_schema(shape), run, "core", reads, is_listed)


async def run_handler(
    call: ToolCall, work: Callable[[HubContext], Mapping[str, Any]], *, reads: bool = False
) -> ToolResult | ToolError:
    """Run the handler of a tool and add warnings; whatever stops it becomes the tool's error."""

    def with_warnings(context: HubContext) -> Mapping[str, Any]:
        data = work(context)
        warnings = context.take_warnings()
        return {**data, "warnings": warnings} if warnings else data

    try:
        return ToolResult(await call.run(with_warnings, reads=reads))
    except DialectRefused as error:
        return ToolError(error.code, error.detail, error.reply, error.refusal.path)
    except Refused as error:
        return ToolError(error.code, error.detail, path=error.refusal.path)
    except DragomanError as error:
        return ToolError(error.code, error.detail)


class DialectRefused(Refused):
    """A refusal of a dialect, raised, with its own form of it."""

    def __init__(self, refusal: Refusal, reply: Mapping[str, Any] | None) -> None:
        super().__init__(refusal)
        self.reply = reply


def argument_schema(shape: Any) -> Schema:
    """Build the JSON Schema of arguments: an object, with its definitions beside it."""
    (root,), parts = msgspec.json.schema_components([shape])
    defined = cast(dict[str, Schema], _compact_schema(parts))
    schema = defined.pop(str(root["$ref"]).rpartition("/")[2])
    # The tool has a description of its own.
    schema.pop("description", None)
    required = schema.get("required", ())
    if "properties" in schema:
        fields = cast(Schema, schema["properties"])
        schema["properties"] = {name: fields[name] for name in (*required, *fields)}
    return schema | {"$defs": defined} if defined else schema


def _compact_schema(value: Any) -> Any:
    """Drop keywords that are useless to a model: every byte is read at each start."""
    if isinstance(value, dict):
        parts = _without_null(cast(dict[str, Any], value))
        return {
            key: _compact_schema(part) for key, part in parts.items() if not _is_noise(key, part)
        }
    if isinstance(value, list | tuple):
        return [_compact_schema(part) for part in cast(list[Any], value)]
    return value


def _without_null(schema: Schema) -> Schema:
    """Drop the null of a field that is null where it is left out: to leave it out is simpler."""
    kinds = schema.get("anyOf", ())
    if len(kinds) != 2 or schema.get("default", ...) is not None or {"type": "null"} not in kinds:
        return schema
    (kind,) = (one for one in kinds if one != {"type": "null"})
    rest = {key: part for key, part in schema.items() if key not in ("anyOf", "default")}
    return {**kind, **rest}


def _is_noise(key: str, part: Any) -> bool:
    """Return whether a keyword tells a model nothing.

    Such are names of classes, mappings that repeat `anyOf`, patterns that no model can follow,
    empty defaults, empty lists of required fields, large limits, lower limits of 0 and 1, the
    largest number of all, and that there are no other fields: those are refused by name.
    """
    if key == "discriminator":
        return isinstance(part, dict) and "mapping" in part
    if key == "pattern":
        return isinstance(part, str) and len(part) > _MAX_PATTERN
    if key == "default":
        return not part and not isinstance(part, dict)
    if key == "maximum":
        return part == MAX_SAFE_INTEGER
    if key in ("minimum", "minLength", "minItems"):
        return part in (0, 1)
    if key == "additionalProperties":
        return part is False
    if key in ("maxLength", "maxItems"):
        return isinstance(part, int) and part >= _MIN_LARGE_LIMIT
    return (key == "title" and isinstance(part, str)) or (key == "required" and not part)
