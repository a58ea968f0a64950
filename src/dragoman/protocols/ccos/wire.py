"""CCOS 019 as it travels: TaskRequest, TaskResult and TaskUpdate, as JSON or as CBOR.

The first fields of each are the specification's and are enough; the others are additive
(S-CCOS-2). What was not said is UNSET, so that a message written down again says as much as it did.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import force_setattr

from dragoman.core.ids import AGENT_FORM, WORD_FORM
from dragoman.core.limits import TEXT, WHOLE
from dragoman.text.strict_cbor import is_cbor_map, parse_cbor, to_cbor
from dragoman.text.strict_json import check_sayable, parse_json

MOST_RESULT: Final = 16 * 1024 * 1024
"""The largest TaskResult, in bytes (S-LIMIT)."""

VERSIONS: Final = (1,)
"""The versions of the protocol that are understood; 1 is what a message has that names none."""

_MOST_NAME: Final = 300
"""Longer than any name that the grammars allow, so that they say what is wrong."""

Name = Annotated[str, Meta(min_length=1, max_length=_MOST_NAME)]
IntentId = Annotated[
    str,
    Meta(min_length=1, max_length=_MOST_NAME, extra_json_schema={"pattern": f"^(?:{WORD_FORM})$"}),
]
AgentId = Annotated[
    str,
    Meta(min_length=1, max_length=_MOST_NAME, extra_json_schema={"pattern": f"^(?:{AGENT_FORM})$"}),
]
Goal = Annotated[str, Meta(min_length=1, max_length=TEXT)]
Words = Annotated[str, Meta(max_length=TEXT)]
Moment = Annotated[str, Meta(max_length=_MOST_NAME, extra_json_schema={"format": "date-time"})]
Attempt = Annotated[int, Meta(ge=1, le=WHOLE)]
Progress = Annotated[float, Meta(ge=0, le=100)]


class Envelope(Struct, frozen=True, kw_only=True):
    """What all three share. Fields that we do not know are let through (S-LIMIT)."""

    intent_id: IntentId
    agent_id: AgentId
    request_id: Name | UnsetType = UNSET
    """Names one dispatch; the same when it is sent again, and only one execution counts."""
    attempt: Attempt | UnsetType = UNSET
    """Which request for this intent it is, from 1."""
    meta: dict[str, Any] | UnsetType = UNSET
    """Whatever else is to travel with it; it never changes a decision."""
    protocol_version: int | UnsetType = UNSET
    """Read if present; not written in version 1."""

    def __post_init__(self) -> None:
        if self.protocol_version is not UNSET and self.protocol_version not in VERSIONS:
            known = ", ".join(map(str, VERSIONS))
            raise ValueError(
                f"protocol_version {self.protocol_version} is not spoken here; known: {known}"
            )


class TaskRequest(Envelope, frozen=True, kw_only=True):
    """An intent, or a part of it, for one agent."""

    goal: Goal
    params: dict[str, Any] = {}
    deadline: Moment | UnsetType = UNSET
    """After this a synthetic failure stands, and a result comes too late."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.goal.strip():
            raise ValueError("goal is empty: say what is to be done")


class TaskResult(Envelope, frozen=True, kw_only=True):
    """How it ended: with an output, or with an error, never with both or neither (S-CCOS-1)."""

    success: bool
    output: Any = UNSET
    error: Words | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.error is None:  # a null error is absent
            force_setattr(self, "error", UNSET)
        if self.success:
            if self.error is not UNSET:
                raise ValueError("a success has no error: leave error out, or say success: false")
            if self.output is UNSET:
                force_setattr(self, "output", None)
            return
        if self.output is None:  # how the specification's own shape writes that there is none
            force_setattr(self, "output", UNSET)
        if self.output is not UNSET:
            raise ValueError("a failure has no output: leave output out, or say success: true")
        if not self.why.strip():
            raise ValueError("a failure has an error: say in error what went wrong")

    @property
    def why(self) -> str:
        """What went wrong; empty: nothing did."""
        return self.error or ""


class TaskUpdate(Envelope, frozen=True, kw_only=True):
    """How it goes, before it has ended; also a piece of a result that is streamed."""

    progress: Progress | UnsetType = UNSET
    """A share up to 1, or percent above that."""
    message: Words | UnsetType = UNSET
    sequence: Annotated[int, Meta(ge=0, le=WHOLE)] | UnsetType = UNSET
    """The place of this piece among those of its request."""
    partial: Any = UNSET
    """A piece of the output; the TaskResult has the whole of it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        is_silent = self.message is UNSET or not self.message.strip()
        if self.progress is UNSET and is_silent and self.partial is UNSET:
            raise ValueError("say at least one of progress, message and partial")


class FullRequest(TaskRequest, frozen=True, kw_only=True):
    """A TaskRequest that says more than we know of."""

    others: dict[str, Any]


class FullResult(TaskResult, frozen=True, kw_only=True):
    """A TaskResult that says more than we know of."""

    others: dict[str, Any]


FULL: Final[Mapping[type[Any], type[Any]]] = {TaskRequest: FullRequest, TaskResult: FullResult}
"""Shape -> the same with all fields that a message has."""

_NULL_IS_ABSENT: Final = frozenset(
    {
        "request_id",
        "attempt",
        "meta",
        "protocol_version",
        "deadline",
        "progress",
        "message",
        "sequence",
    }
)

Message = TaskRequest | TaskResult | TaskUpdate
M = TypeVar("M", TaskRequest, TaskResult, TaskUpdate)

KINDS: Final[Mapping[str, type[TaskRequest | TaskResult | TaskUpdate]]] = {
    shape.__name__: shape for shape in (TaskRequest, TaskResult, TaskUpdate)
}
"""Type of message -> its shape."""


def kind_of(value: Mapping[str, Any]) -> str:
    """What a message is, by what it has to say; empty: none of the three."""
    if "success" in value:
        return "TaskResult"
    if "goal" in value:
        return "TaskRequest"
    is_update = any(field in value for field in ("progress", "message", "partial"))
    return "TaskUpdate" if is_update else ""


def succeeded(request: TaskRequest, output: object = None) -> TaskResult:
    """The result of a request that was fulfilled."""
    return TaskResult(
        intent_id=request.intent_id,
        agent_id=request.agent_id,
        request_id=request.request_id,
        attempt=request.attempt,
        success=True,
        output=output,
    )


def failed(request: TaskRequest, error: str) -> TaskResult:
    """The result of a request that was not."""
    return TaskResult(
        intent_id=request.intent_id,
        agent_id=request.agent_id,
        request_id=request.request_id,
        attempt=request.attempt,
        success=False,
        error=error,
    )


def as_value(message: Message) -> dict[str, Any]:
    """The message as a JSON value; the version is not written while it is the first."""
    written: dict[str, Any] = msgspec.to_builtins(message)
    written.pop("protocol_version", None)
    return written.pop("others", {}) | written


def with_others(value: dict[str, Any], shape: type[Any]) -> tuple[dict[str, Any], type[Any]]:
    """A message and its shape, so that what we do not know of it is kept apart, and not lost."""
    known = shape.__struct_encode_fields__
    others = {name: part for name, part in value.items() if name not in known}
    if not others or shape not in FULL:
        return value, shape
    return {name: value[name] for name in value if name in known} | {"others": others}, FULL[shape]


def passed_on(message: TaskRequest | TaskResult) -> dict[str, Any]:
    """What it says beside all that decides anything: `meta`, and what we do not know.

    `meta.hub` is the hub's own word to whoever it starts: nobody else puts anything there.
    """
    others = message.others if isinstance(message, FullRequest | FullResult) else {}
    if message.meta is UNSET:
        return others
    return others | {"meta": {name: part for name, part in message.meta.items() if name != "hub"}}


def as_json(message: Message) -> bytes:
    """The message as JSON; StrictJsonError for what no reader would take as it was meant."""
    return msgspec.json.encode(_sayable(message))


def as_cbor(message: Message) -> bytes:
    """The same as CBOR, in its deterministic form."""
    return to_cbor(_sayable(message))


def _sayable(message: Message) -> dict[str, Any]:
    value = as_value(message)
    check_sayable(value)
    return value


def without_nulls(value: Any) -> Any:
    """The same without optional fields that are null: so the specification writes none."""
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    empty = [name for name in _NULL_IS_ABSENT if name in fields and fields[name] is None]
    return {name: fields[name] for name in fields if name not in empty} if empty else fields


def read(data: bytes, shape: type[M], most_bytes: int = MOST_RESULT) -> M:
    """A message of this shape, from JSON or CBOR.

    Raises StrictJsonError for what is neither, msgspec.ValidationError for another shape.
    """
    parse = parse_cbor if is_cbor_map(data) else parse_json
    return msgspec.convert(without_nulls(parse(data, most_bytes)), shape)
