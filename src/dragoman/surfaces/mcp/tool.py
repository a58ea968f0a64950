"""One tool: its name, what it is for, the shape of its arguments, and what it does."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from dragoman.core.errors import DragomanError, Refusal, Refused
from dragoman.surfaces.mcp.desk import Desk
from dragoman.text.shape_words import shape_fault
from dragoman.text.strict_json import LARGEST_WHOLE

_LONGEST_PATTERN = 60
_TASK = "task"
_ABOUT_ITS_NAME = frozenset({"task_not_found", "ambiguous_name", "invalid_id"})

Schema = dict[str, Any]


class Told(Struct, frozen=True):
    """The result of a tool."""

    data: Mapping[str, Any]


class Denied(Struct, frozen=True):
    """An error of a tool, which a model can read and act upon."""

    code: str
    detail: str
    reply: Mapping[str, Any] | None = None
    """The same in the form of the tool's dialect, if that has one for it."""
    path: str = ""
    """The argument that it is about, if it is about one."""


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of a tool; an unknown field is an error."""


class AtDesk(Protocol):
    """Runs a function with the context of one request."""

    async def __call__(self, work: Callable[[Desk], Any], *, reads: bool) -> Any:
        """Return the result of the function."""
        ...


class Visit(Struct, frozen=True):
    """One call of a tool."""

    arguments: Mapping[str, Any]
    at_desk: AtDesk
    context: Any
    """The request as the SDK has it."""


class Tool(Struct, frozen=True):
    """One tool."""

    name: str
    about: str
    """Tells an agent when to use it."""
    schema: Schema
    run: Callable[[Visit], Awaitable[Any]]
    """Returns a ToolResult or ToolError, or a result of the SDK's own."""
    group: str
    """The group of the tool: `core`, or a dialect's name. Profiles choose by it."""
    reads: bool = False
    """True if it changes nothing."""


def tool(
    name: str,
    about: str,
    shape: type[Arguments],
    work: Callable[[Desk, Any], Mapping[str, Any]],
    *,
    reads: bool = False,
) -> Tool:
    """Make a tool of the hub: `work` runs with the context and arguments of that shape."""

    async def run(visit: Visit) -> Told | Denied:
        try:
            # Not strict, because a model may write a number as a text.
            given = msgspec.convert(dict(visit.arguments), shape, strict=False)
        except msgspec.ValidationError as error:
            fault = shape_fault(error, shape)
            return Denied("invalid_field", f"{name}: {fault}", path=fault.path)
        answer = await answered(visit, lambda desk: work(desk, given), reads=reads)
        return _placed(answer, shape)

    return Tool(name, about, schema_of(shape), run, "core", reads)


def _placed(answer: Told | Denied, shape: type[Arguments]) -> Told | Denied:
    """Point an error about the name of a task to the argument `task`."""
    is_denied = isinstance(answer, Denied) and not answer.path and answer.code in _ABOUT_ITS_NAME
    is_named = is_denied and _TASK in shape.__struct_fields__
    return replace(answer, path=_TASK) if is_named else answer


async def answered(
    visit: Visit, work: Callable[[Desk], Mapping[str, Any]], *, reads: bool = False
) -> Told | Denied:
    """Run the handler of a tool and add warnings; whatever stops it becomes the tool's error."""

    def remarked(desk: Desk) -> Mapping[str, Any]:
        data = work(desk)
        return {**data, "warnings": desk.remarks} if desk.remarks else data

    try:
        return Told(await visit.at_desk(remarked, reads=reads))
    except TurnedDown as error:
        return Denied(error.code, error.detail, error.reply, error.refusal.path)
    except Refused as error:
        return Denied(error.code, error.detail, path=error.refusal.path)
    except DragomanError as error:
        return Denied(error.code, error.detail)


class TurnedDown(Refused):
    """A refusal of a dialect, raised, with its own form of it."""

    def __init__(self, refusal: Refusal, reply: Mapping[str, Any] | None) -> None:
        super().__init__(refusal)
        self.reply = reply


def schema_of(shape: Any) -> Schema:
    """Build the JSON Schema of arguments: an object, with its definitions beside it."""
    (root,), parts = msgspec.json.schema_components([shape])
    defined = cast(dict[str, Schema], _for_a_model(parts))
    schema = defined.pop(str(root["$ref"]).rpartition("/")[2])
    # The tool has a description of its own.
    schema.pop("description", None)
    return schema | {"$defs": defined} if defined else schema


def _for_a_model(value: Any) -> Any:
    """Drop keywords that are useless to a model: every byte is read at each start."""
    if isinstance(value, dict):
        parts = cast(dict[str, Any], value)
        return {key: _for_a_model(part) for key, part in parts.items() if not _is_noise(key, part)}
    if isinstance(value, list | tuple):
        return [_for_a_model(part) for part in cast(list[Any], value)]
    return value


def _is_noise(key: str, part: Any) -> bool:
    """Return whether a keyword tells a model nothing.

    Such are names of classes, mappings that repeat `anyOf`, patterns that no model can follow,
    empty defaults, empty lists of required fields, and the largest number of all.
    """
    if key == "discriminator":
        return isinstance(part, dict) and "mapping" in part
    if key == "pattern":
        return isinstance(part, str) and len(part) > _LONGEST_PATTERN
    if key == "default":
        return not part and not isinstance(part, dict)
    if key == "maximum":
        return part == LARGEST_WHOLE
    return (key == "title" and isinstance(part, str)) or (key == "required" and not part)
