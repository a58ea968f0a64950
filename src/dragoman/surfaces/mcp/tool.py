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
    """A yes, with what there is to say."""

    data: Mapping[str, Any]


class Denied(Struct, frozen=True):
    """A no, which a model can read and act upon."""

    code: str
    detail: str
    reply: Mapping[str, Any] | None = None
    """The same in the form of the tool's dialect, if that has one for it."""
    path: str = ""
    """Which argument it is about, where it is about one."""


class Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    """What a tool is given; a name that is not known is a mistake and is told."""


class AtDesk(Protocol):
    """How the tool of one request comes to the desk."""

    async def __call__(self, work: Callable[[Desk], Any], *, reads: bool) -> Any:
        """What the work comes to."""
        ...


class Visit(Struct, frozen=True):
    """One call of a tool."""

    arguments: Mapping[str, Any]
    at_desk: AtDesk
    context: Any
    """The request as the SDK has it."""


class Tool(Struct, frozen=True):
    """One row of the table of tools."""

    name: str
    about: str
    """What an agent reads to know when to use it."""
    schema: Schema
    run: Callable[[Visit], Awaitable[Any]]
    """Answers with Told or Denied, or with a result of the SDK's own."""
    group: str
    """Whose tool it is: `core`, or a dialect's name. Profiles choose by it."""
    reads: bool = False
    """Whether it changes nothing."""


def tool(
    name: str,
    about: str,
    shape: type[Arguments],
    work: Callable[[Desk, Any], Mapping[str, Any]],
    *,
    reads: bool = False,
) -> Tool:
    """A tool of our own: `work` is done at the desk, with arguments of that shape."""

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
    """A no that is about the name of a task is about the argument that is one."""
    is_denied = isinstance(answer, Denied) and not answer.path and answer.code in _ABOUT_ITS_NAME
    is_named = is_denied and _TASK in shape.__struct_fields__
    return replace(answer, path=_TASK) if is_named else answer


async def answered(
    visit: Visit, work: Callable[[Desk], Mapping[str, Any]], *, reads: bool = False
) -> Told | Denied:
    """What the work comes to, with what was remarked; whatever stops it is the tool's error."""

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
    """A dialect's no, raised, with its own form of it."""

    def __init__(self, refusal: Refusal, reply: Mapping[str, Any] | None) -> None:
        super().__init__(refusal)
        self.reply = reply


def schema_of(shape: Any) -> Schema:
    """The JSON Schema of a shape: an object, with what it is made of beside it."""
    (root,), parts = msgspec.json.schema_components([shape])
    defined = cast(dict[str, Schema], _for_a_model(parts))
    schema = defined.pop(str(root["$ref"]).rpartition("/")[2])
    # What it is for is said by the tool.
    schema.pop("description", None)
    return schema | {"$defs": defined} if defined else schema


def _for_a_model(value: Any) -> Any:
    """The schema without what says nothing to a model: every byte is read at each start."""
    if isinstance(value, dict):
        parts = cast(dict[str, Any], value)
        return {key: _for_a_model(part) for key, part in parts.items() if not _is_noise(key, part)}
    if isinstance(value, list | tuple):
        return [_for_a_model(part) for part in cast(list[Any], value)]
    return value


def _is_noise(key: str, part: Any) -> bool:
    """Whether it tells a model nothing.

    Names of classes, a table of what `anyOf` says already, patterns that no model can follow, that
    what may be left out is empty then, that nothing is required, how large a number can be at all.
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
