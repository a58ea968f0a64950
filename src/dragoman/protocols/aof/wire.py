"""AOF/1 as it travels: the envelope, its five payloads and the tools' arguments, field by field.

Shapes only: what a single field may hold. What the fields must say together is in `check`.
"""

from typing import Annotated, Any, Generic, Literal, Protocol, TypeVar, get_args

from msgspec import UNSET, Meta, Struct, UnsetType

from dragoman.core.events import Status
from dragoman.core.ids import AGENT_FORM, AOF_ID_FORM, SESSION_FORM
from dragoman.core.limits import LINKS, REASON, TEXT, WHOLE

_MOST = 300
"""Longer than any id or name that the grammars allow, so that they say what is wrong."""


def _form(pattern: str) -> Meta:
    """The form of a name, for a JSON Schema only: `check` says what is wrong in words."""
    return Meta(max_length=_MOST, extra_json_schema={"pattern": f"^{pattern}$"})


Name = Annotated[str, Meta(max_length=_MOST)]
TaskId = Annotated[str, _form(AOF_ID_FORM)]
Agent = Annotated[str, _form(AGENT_FORM)]
Session = Annotated[str, _form(SESSION_FORM)]
Moment = Annotated[str, Meta(max_length=_MOST, extra_json_schema={"format": "date-time"})]
Words = Annotated[str, Meta(max_length=TEXT)]
Line = Annotated[str, Meta(max_length=REASON)]
Lines = Annotated[tuple[Line, ...], Meta(max_length=LINKS)]
Count = Annotated[int, Meta(ge=0, le=WHOLE)]

DISPATCHER = "dispatcher"
"""The hub itself, as a message's `toAgent`."""

UNREADABLE = "aof"
"""What a message is called that does not say its type."""

HANDOFF_REF = "outputs/handoff.md"
"""Where the handoff is unless the report says otherwise (S-AOF-10)."""


class Wire(Struct, frozen=True, kw_only=True, rename="camel"):
    """Fields that we do not know are let through: they stay with the original words.

    What was not said is UNSET, so that a message written down again says as much as it did.
    """


class Payload(Protocol):
    """What every payload may repeat of its envelope; it must then say the same."""

    @property
    def task_id(self) -> str | UnsetType:
        """The task that it is about."""
        ...

    @property
    def agent_id(self) -> str | UnsetType:
        """Whoever sends it."""
        ...

    @property
    def from_agent(self) -> str | UnsetType:
        """Whoever sends it."""
        ...

    @property
    def to_agent(self) -> str | UnsetType:
        """Whom it is for."""
        ...


P = TypeVar("P")


class Envelope(Wire, Generic[P], frozen=True, kw_only=True):
    """What every message is wrapped in; its type is the tag of its class."""

    protocol: Literal["aof"]
    version: Literal[1]
    task_id: TaskId
    from_agent: Agent
    to_agent: Agent
    sent_at: Moment
    payload: P
    project_id: Name | UnsetType = UNSET


class TestReport(Wire, frozen=True, kw_only=True):
    """How many tests there were."""

    total: Count
    passed: Count
    failed: Count


class Report(Wire, frozen=True, kw_only=True):
    """How an attempt ended."""

    outcome: Literal["done", "blocked", "needs_review", "partial"]
    summary_ref: Line
    tests: TestReport
    notes: Words
    deliverables: Lines | UnsetType = UNSET
    blockers: Lines | UnsetType = UNSET
    handoff_ref: Line | UnsetType = UNSET


class Completion(Report, frozen=True, kw_only=True):
    """completion.report"""

    task_id: TaskId | UnsetType = UNSET
    agent_id: Agent | UnsetType = UNSET
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


class CompleteTask(Report, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """aof_task_complete: a report without an envelope.

    What a call asks for is all of it: unlike a message it is not passed on, so that a field that we
    do not know is one that its caller has mistyped.
    """

    task_id: TaskId
    cost: Annotated[float, Meta(ge=0)] | UnsetType = UNSET
    """Beyond AOF/1: for the budget, which finds it in the original words."""
    agent_id: Agent | UnsetType = UNSET
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


class Update(Wire, frozen=True, kw_only=True):
    """How it goes."""

    status: Status | UnsetType = UNSET
    progress: Words | UnsetType = UNSET
    blockers: Lines | UnsetType = UNSET
    notes: Words | UnsetType = UNSET


class StatusUpdate(Update, frozen=True, kw_only=True):
    """status.update"""

    task_id: TaskId
    agent_id: Agent
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


class UpdateTask(Update, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """aof_task_update: an update without an envelope; whoever calls it is its agent."""

    task_id: TaskId
    agent_id: Agent | UnsetType = UNSET
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


class HandoffRequest(Wire, frozen=True, kw_only=True):
    """handoff.request: a child task for another agent."""

    task_id: TaskId
    parent_task_id: TaskId
    from_agent: Agent
    to_agent: Agent
    due_by: Moment
    acceptance_criteria: Any = UNSET
    """Taken as [] with a warning when it is no list of strings (S-AOF-7)."""
    expected_outputs: Lines | UnsetType = UNSET
    context_refs: Lines | UnsetType = UNSET
    constraints: Lines | UnsetType = UNSET
    agent_id: Agent | UnsetType = UNSET


class HandoffAnswer(Wire, frozen=True, kw_only=True):
    """handoff.accepted and handoff.rejected."""

    task_id: TaskId
    accepted: bool
    reason: Line | UnsetType = UNSET
    agent_id: Agent | UnsetType = UNSET
    from_agent: Agent | UnsetType = UNSET
    to_agent: Agent | UnsetType = UNSET


class SessionEnd(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """session_end: a stay of an agent is over; without a name, everyone's that has reported."""

    session_id: Session | UnsetType = UNSET


class CompletionReport(
    Envelope[Completion], frozen=True, kw_only=True, tag_field="type", tag="completion.report"
):
    """An agent says how its attempt ended."""


class StatusMessage(
    Envelope[StatusUpdate], frozen=True, kw_only=True, tag_field="type", tag="status.update"
):
    """An agent says how it goes."""


class HandoffRequested(
    Envelope[HandoffRequest], frozen=True, kw_only=True, tag_field="type", tag="handoff.request"
):
    """An agent delegates a child task."""


class HandoffAccepted(
    Envelope[HandoffAnswer], frozen=True, kw_only=True, tag_field="type", tag="handoff.accepted"
):
    """The child's agent takes it."""


class HandoffRejected(
    Envelope[HandoffAnswer], frozen=True, kw_only=True, tag_field="type", tag="handoff.rejected"
):
    """The child's agent does not take it."""


class UnknownMessage(Envelope[dict[str, Any]], frozen=True, kw_only=True):
    """A message of a type that AOF/1 does not have."""

    type: Annotated[str, Meta(max_length=100)]


Message = CompletionReport | StatusMessage | HandoffRequested | HandoffAccepted | HandoffRejected

MESSAGES: dict[str, type[Message]] = {
    str(shape.__struct_config__.tag): shape for shape in get_args(Message)
}
"""Type of message -> its shape."""


def type_of(message: Message) -> str:
    """The type of a message."""
    return str(message.__struct_config__.tag)
