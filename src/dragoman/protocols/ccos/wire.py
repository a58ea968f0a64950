"""CCOS 019 on the wire: its three messages, as JSON or CBOR, and arguments of operations.

The first fields of TaskRequest, TaskResult and TaskUpdate are those of the specification and are
enough; the others are additive (S-CCOS-2). A field that was not sent is UNSET, so that encoding a
parsed message again adds nothing to it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar, cast

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import force_setattr, replace

from dragoman.core.agent import Trust
from dragoman.core.ids import AGENT_PATTERN, ID_PATTERN
from dragoman.core.limits import (
    MAX_PAGE,
    MAX_REASON,
    MAX_SAFE_INTEGER,
    MAX_SKILL_LENGTH,
    MAX_SKILLS,
    MAX_TEXT,
    WAIT_RANGE_MS,
)
from dragoman.text.strict_cbor import encode_cbor, is_cbor_map, parse_cbor
from dragoman.text.strict_json import check_encodable, parse_json

# --- messages ---------------------------------------------------------------------------------

MAX_RESULT_BYTES: Final = 16 * 1024 * 1024
"""Largest TaskResult in bytes (S-LIMIT)."""

VERSIONS: Final = (1,)
"""Protocol versions that are understood; a message that names none has version 1."""

_MAX_NAME_CHARS: Final = 300
"""Longer than any name that the grammars allow, so that the grammars report the fault."""

Name = Annotated[str, Meta(min_length=1, max_length=_MAX_NAME_CHARS)]

IntentId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=_MAX_NAME_CHARS,
        extra_json_schema={"pattern": f"^(?:{ID_PATTERN})$"},
    ),
]

AgentId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=_MAX_NAME_CHARS,
        extra_json_schema={"pattern": f"^(?:{AGENT_PATTERN})$"},
    ),
]

Goal = Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)]

Words = Annotated[str, Meta(max_length=MAX_TEXT)]

Moment = Annotated[str, Meta(max_length=_MAX_NAME_CHARS, extra_json_schema={"format": "date-time"})]

Attempt = Annotated[int, Meta(ge=1, le=MAX_SAFE_INTEGER)]

Progress = Annotated[float, Meta(ge=0, le=100)]


class Envelope(Struct, frozen=True, kw_only=True):
    """Fields that all three messages share. Unknown fields are accepted (S-LIMIT)."""

    intent_id: IntentId
    agent_id: AgentId
    request_id: Name | UnsetType = UNSET
    """Names one dispatch; the same when it is sent again, and only one execution counts."""
    attempt: Attempt | UnsetType = UNSET
    """Number of the request for this intent, from 1."""
    meta: dict[str, Any] | UnsetType = UNSET
    """Further content; it never changes a decision."""
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
    """After this a synthetic failure is recorded, and a result comes too late."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.goal.strip():
            raise ValueError("goal is empty: say what is to be done")


class TaskResult(Envelope, frozen=True, kw_only=True):
    """Result of a request: an output or an error, never both or neither (S-CCOS-1)."""

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
        if self.output is None:  # the specification's own shape writes null for no output
            force_setattr(self, "output", UNSET)
        if self.output is not UNSET:
            raise ValueError("a failure has no output: leave output out, or say success: true")
        if not self.error_text.strip():
            raise ValueError("a failure has an error: say in error what went wrong")

    @property
    def error_text(self) -> str:
        return self.error or ""


class TaskUpdate(Envelope, frozen=True, kw_only=True):
    """Progress of a request, or a chunk of a streamed result."""

    progress: Progress | UnsetType = UNSET
    """A fraction up to 1, or percent above that."""
    message: Words | UnsetType = UNSET
    sequence: Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)] | UnsetType = UNSET
    """Number of this chunk within its request."""
    partial: Any = UNSET
    """A chunk of the output; the TaskResult has the whole output."""

    def __post_init__(self) -> None:
        super().__post_init__()
        has_no_message = self.message is UNSET or not self.message.strip()
        if self.progress is UNSET and has_no_message and self.partial is UNSET:
            raise ValueError("say at least one of progress, message and partial")


class ExtendedRequest(TaskRequest, frozen=True, kw_only=True):
    """A TaskRequest with unknown fields."""

    others: dict[str, Any]


class ExtendedResult(TaskResult, frozen=True, kw_only=True):
    """A TaskResult with unknown fields."""

    others: dict[str, Any]


EXTENDED_SHAPES: Final[Mapping[type[Any], type[Any]]] = {
    TaskRequest: ExtendedRequest,
    TaskResult: ExtendedResult,
}
"""Shape -> the same with a field for unknown fields."""

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

MESSAGE_SHAPES: Final[Mapping[str, type[TaskRequest | TaskResult | TaskUpdate]]] = {
    shape.__name__: shape for shape in (TaskRequest, TaskResult, TaskUpdate)
}
"""Type of message -> its shape."""


def detect_kind(value: Mapping[str, Any]) -> str:
    """Type of a message, by its fields; empty: none of the three."""
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
    return replace(succeeded(request), success=False, error=error)


def as_value(message: Message) -> dict[str, Any]:
    """The message as a JSON value; version 1 is not written."""
    written: dict[str, Any] = msgspec.to_builtins(message)
    written.pop("protocol_version", None)
    return written.pop("others", {}) | written


def split_unknown_fields(
    value: dict[str, Any], shape: type[Any]
) -> tuple[dict[str, Any], type[Any]]:
    """Move unknown fields of a message aside, to keep them; return it with its shape."""
    known = shape.__struct_encode_fields__
    others = {name: part for name, part in value.items() if name not in known}
    if not others or shape not in EXTENDED_SHAPES:
        return value, shape
    return {name: value[name] for name in value if name in known} | {
        "others": others
    }, EXTENDED_SHAPES[shape]


BRIEFING_META: Final = "briefing"
"""Key of `meta` that holds what earlier attempts, answers and reviews left."""

TASK_META: Final = "task"
"""Key of `meta` that holds the facts about the task."""

_HUB_META: Final = frozenset({"hub", BRIEFING_META, TASK_META})
"""Keys of `meta` that only the hub writes: `hub` has its notes to agents that it starts."""


def extra_fields(message: TaskRequest | TaskResult) -> dict[str, Any]:
    """Further content of a message that decides nothing: `meta` and unknown fields.

    What only the hub writes is removed from `meta`.
    """
    others = message.others if isinstance(message, ExtendedRequest | ExtendedResult) else {}
    if message.meta is UNSET:
        return others
    meta = {name: part for name, part in message.meta.items() if name not in _HUB_META}
    return others | {"meta": meta}


def as_json(message: Message) -> bytes:
    """Encode the message as JSON; StrictJsonError if a strict reader would misread it."""
    return msgspec.json.encode(_checked_value(message))


def as_cbor(message: Message) -> bytes:
    """Encode the message as CBOR, in its deterministic form."""
    return encode_cbor(_checked_value(message))


def _checked_value(message: Message) -> dict[str, Any]:
    value = as_value(message)
    check_encodable(value)
    return value


def drop_null_fields(value: Any) -> Any:
    """Drop optional fields that are null: the specification treats them as absent."""
    if not isinstance(value, dict):
        return value
    fields = cast(dict[str, Any], value)
    empty = [name for name in _NULL_IS_ABSENT if name in fields and fields[name] is None]
    return {name: fields[name] for name in fields if name not in empty} if empty else fields


def read(data: bytes, shape: type[M], most_bytes: int = MAX_RESULT_BYTES) -> M:
    """Parse a message of this shape, from JSON or CBOR.

    Raises StrictJsonError for what is neither, msgspec.ValidationError for another shape.
    """
    parse = parse_cbor if is_cbor_map(data) else parse_json
    return msgspec.convert(drop_null_fields(parse(data, most_bytes)), shape)


# --- arguments of operations ------------------------------------------------------------------

MAX_WHY_ACTIONS: Final = 10_000
"""Largest number of Actions in one answer of `ccos.why`; more are queried by page."""

WordList = tuple[Annotated[str, Meta(min_length=1, max_length=200)], ...]

ShortWordList = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=MAX_SKILL_LENGTH)], ...],
    Meta(max_length=MAX_SKILLS),
]

GoalText = Annotated[str, Meta(min_length=1, max_length=MAX_REASON)]

NewId = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{ID_PATTERN})$", "minLength": 1})]

OptionalId = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{ID_PATTERN})?$"})]

OptionalAgent = Annotated[str, Meta(extra_json_schema={"pattern": f"^(?:{AGENT_PATTERN})?$"})]

OptionalMoment = Annotated[str, Meta(max_length=100, description="RFC 3339; empty: any")]

Count = Annotated[int, Meta(ge=1, le=MAX_PAGE)]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Arguments of an operation; an unknown name is refused."""


class AgentTerms(Arguments, frozen=True, kw_only=True):
    """Terms of an agent."""

    constraints: WordList = ()
    locality: WordList = ()
    """Places where it processes data."""
    trust: Trust | None = None
    """Trust in it, T0 to T2; its own word never raises that."""
    cost: Annotated[float, Meta(ge=0)] = 0.0
    latency_ms: Annotated[int, Meta(ge=0)] = 0
    capacity: Annotated[int, Meta(ge=0)] = 0
    """Largest number of open requests; 0: no limit."""


class Register(AgentTerms, frozen=True, kw_only=True):
    """Skills and terms of an agent, and how it is reached."""

    agent_id: AgentId
    skills: WordList
    speaks: tuple[str, ...] = ()
    """Dialects that it understands; none: unchanged, or ccos."""
    reach: str = ""
    """Its address; empty: it polls for its requests."""


class GoalArguments(Arguments, frozen=True, kw_only=True):
    """Requirements by which an agent is chosen."""

    goal: GoalText
    constraints: ShortWordList = ()
    skills: ShortWordList = ()
    """Skills that the agent must have."""


class RankQuery(GoalArguments, frozen=True, kw_only=True):
    """Query of the agents that a goal would go to."""

    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 20


class Delegate(GoalArguments, frozen=True, kw_only=True):
    """A goal for the agent that is most likely to reach it."""

    intent_id: NewId | None = None
    """Empty: the hub makes one."""
    params: dict[str, Any] = {}
    deadline: OptionalMoment = ""
    """Time at which requests fail; a request that is made after it gets as much time again."""
    within_ms: Annotated[int, Meta(ge=WAIT_RANGE_MS[0], le=WAIT_RANGE_MS[1])] | None = None
    """Instead of it: time limit of each request, from when it is made."""
    plan_id: OptionalId = ""
    follows: OptionalId = ""
    """Intent that it follows up."""


class OneIntent(Arguments, frozen=True, kw_only=True):
    """An intent, by its id."""

    intent_id: IntentId


class WhyQuery(OneIntent, frozen=True, kw_only=True):
    """Query of an intent's causal chain, up to a number of Actions."""

    limit: Annotated[int, Meta(ge=1, le=MAX_WHY_ACTIONS)] = MAX_WHY_ACTIONS


class Cancel(Arguments, frozen=True, kw_only=True):
    """An intent to be cancelled."""

    intent_id: IntentId
    reason: Annotated[str, Meta(max_length=500)] = ""


class IntentQuery(Arguments, frozen=True, kw_only=True):
    """Query of an intent, and of a page of its history."""

    intent_id: IntentId
    after: Annotated[int, Meta(ge=0)] = 0
    """Number of the last entry of the page before."""
    limit: Count = 200


class IntentsQuery(Arguments, frozen=True, kw_only=True):
    """Query of intents; all filters must match."""

    agent_id: str = ""
    plan_id: str = ""
    follows: str = ""
    open: bool = False
    after: Annotated[int, Meta(ge=0)] = 0
    """`next` of the page before."""
    limit: Count = 50


class RequestsQuery(Arguments, frozen=True, kw_only=True):
    """Query of open requests: the caller's, or another agent's."""

    agent_id: OptionalAgent = ""
    limit: Count = 20


class AgentsQuery(Arguments, frozen=True, kw_only=True):
    """Query of the registry."""

    skill: str = ""
    speaks: str | None = None
    after: str = ""
    """Last name of the page before."""
    limit: Count = 100
