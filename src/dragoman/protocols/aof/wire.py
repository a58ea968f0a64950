"""AOF/1 on the wire: the envelope, its five payloads and the arguments of the tools.

Shapes only: the values that a single field may hold. Rules about fields and between fields are in
`validation`.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core.base import Status
from dragoman.core.ids import AGENT_PATTERN, AOF_ID_PATTERN, SESSION_PATTERN
from dragoman.core.limits import MAX_LINKS, MAX_REASON, MAX_SAFE_INTEGER, MAX_TEXT

_MAX_NAME_CHARS = 300
"""More than any id or name may have, so that the grammar reports its own fault first."""


def _name_pattern(pattern: str) -> Meta:
    """Pattern of a name, for the JSON Schema only: `validation` gives the reason in words."""
    return Meta(max_length=_MAX_NAME_CHARS, extra_json_schema={"pattern": f"^{pattern}$"})


Name = Annotated[str, Meta(max_length=_MAX_NAME_CHARS)]
TaskId = Annotated[str, _name_pattern(AOF_ID_PATTERN)]
Agent = Annotated[str, _name_pattern(AGENT_PATTERN)]
Session = Annotated[str, _name_pattern(SESSION_PATTERN)]
Timestamp = Annotated[
    str, Meta(max_length=_MAX_NAME_CHARS, extra_json_schema={"format": "date-time"})
]
LongText = Annotated[str, Meta(max_length=MAX_TEXT)]
ShortText = Annotated[str, Meta(max_length=MAX_REASON)]
ShortTexts = Annotated[tuple[ShortText, ...], Meta(max_length=MAX_LINKS)]
Count = Annotated[int, Meta(ge=0, le=MAX_SAFE_INTEGER)]

DISPATCHER = "dispatcher"
"""The hub itself, as a message's `toAgent`."""

UNREADABLE_KIND = "aof"
"""Kind of a message that does not state its type."""

DEFAULT_HANDOFF_REF = "outputs/handoff.md"
"""Default of a report's handoff (S-AOF-10)."""


class WireStruct(Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of wire shapes. Unknown fields are accepted and stay in the original text.

    An absent field is UNSET, so that a message encoded again states as much as it did.
    """


class Parties(WireStruct, frozen=True, kw_only=True):
    """Sender and recipient, which a payload may repeat as the envelope has them."""

    agent_id: Agent | UnsetType = UNSET
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


P = TypeVar("P")


class Envelope(WireStruct, Generic[P], frozen=True, kw_only=True):
    """Envelope of every message; its type is the tag of its class."""

    protocol: Literal["aof"]
    version: Literal[1]
    task_id: TaskId
    from_agent: Agent
    to_agent: Agent
    sent_at: Timestamp
    payload: P
    project_id: Name | UnsetType = UNSET


class TestCounts(WireStruct, frozen=True, kw_only=True):
    """Numbers of tests."""

    total: Count
    passed: Count
    failed: Count


class ReportFields(Parties, frozen=True, kw_only=True):
    """Outcome of an attempt."""

    outcome: Literal["done", "blocked", "needs_review", "partial"]
    summary_ref: ShortText
    tests: TestCounts
    notes: LongText
    deliverables: ShortTexts | UnsetType = UNSET
    blockers: ShortTexts | UnsetType = UNSET
    handoff_ref: ShortText | UnsetType = UNSET


class CompletionPayload(ReportFields, frozen=True, kw_only=True):
    """completion.report"""

    task_id: TaskId | UnsetType = UNSET


class CompleteTaskArguments(ReportFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """aof_task_complete: a report without an envelope.

    Unknown fields are refused: arguments of a call are not passed on, so an unknown one is a typing
    error.
    """

    task_id: TaskId
    cost: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    """Beyond AOF/1: for the budget, which reads it from the original text."""


class UpdateFields(WireStruct, frozen=True, kw_only=True):
    """Progress of an attempt."""

    status: Status | UnsetType = UNSET
    progress: LongText | UnsetType = UNSET
    blockers: ShortTexts | UnsetType = UNSET
    notes: LongText | UnsetType = UNSET


class StatusPayload(UpdateFields, frozen=True, kw_only=True):
    """status.update"""

    task_id: TaskId
    agent_id: Agent
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


class UpdateTaskArguments(UpdateFields, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """aof_task_update: an update without an envelope; the caller is its agent."""

    task_id: TaskId
    agent_id: Agent | UnsetType = UNSET
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


class HandoffRequestPayload(WireStruct, frozen=True, kw_only=True):
    """handoff.request: a child task for another agent."""

    task_id: TaskId
    parent_task_id: TaskId
    from_agent: Agent
    to_agent: Agent
    due_by: Timestamp
    acceptance_criteria: Any = UNSET
    """Taken as [] with a warning if it is not a list of strings (S-AOF-7)."""
    expected_outputs: ShortTexts | UnsetType = UNSET
    context_refs: ShortTexts | UnsetType = UNSET
    constraints: ShortTexts | UnsetType = UNSET
    agent_id: Agent | UnsetType = UNSET


class HandoffAnswerPayload(Parties, frozen=True, kw_only=True):
    """handoff.accepted and handoff.rejected: the answer to a handoff.request."""

    task_id: TaskId
    accepted: bool
    reason: ShortText | UnsetType = UNSET


Payload = (
    CompletionPayload
    | CompleteTaskArguments
    | StatusPayload
    | UpdateTaskArguments
    | HandoffRequestPayload
    | HandoffAnswerPayload
)


class SessionEndArguments(WireStruct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """session_end: an agent's session is over; without a name, every session with a report."""

    session_id: Session | UnsetType = UNSET


class CompletionReportMessage(
    Envelope[CompletionPayload], frozen=True, tag_field="type", tag="completion.report"
):
    """An agent reports the outcome of its attempt."""


class StatusUpdateMessage(
    Envelope[StatusPayload], frozen=True, tag_field="type", tag="status.update"
):
    """An agent reports its progress."""


class HandoffRequestMessage(
    Envelope[HandoffRequestPayload], frozen=True, tag_field="type", tag="handoff.request"
):
    """An agent delegates a child task."""


class HandoffAcceptedMessage(
    Envelope[HandoffAnswerPayload], frozen=True, tag_field="type", tag="handoff.accepted"
):
    """The child's agent accepts it."""


class HandoffRejectedMessage(
    Envelope[HandoffAnswerPayload], frozen=True, tag_field="type", tag="handoff.rejected"
):
    """The child's agent rejects it."""


class UnknownMessage(Envelope[dict[str, Any]], frozen=True, kw_only=True):
    """A message of a type that AOF/1 does not have."""

    type: Annotated[str, Meta(max_length=100)]


Message = (
    CompletionReportMessage
    | StatusUpdateMessage
    | HandoffRequestMessage
    | HandoffAcceptedMessage
    | HandoffRejectedMessage
)

MESSAGES: dict[str, type[Message]] = {
    str(shape.__struct_config__.tag): shape for shape in get_args(Message)
}
"""Message type -> its shape."""


def type_of(message: Message) -> str:
    return str(message.__struct_config__.tag)
